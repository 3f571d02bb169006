from collections.abc import Iterable
from typing import Any

import pytest

from spark_app.eventlog.findings import Finding
from tests.unit.eventlog.diagnoses.plans import MINUTE, application, found, node, ran, scan
from tests.unit.eventlog.log import Line

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}
SHOPS = [f"(isnotnull(shop#1L) AND ((shop#1L % 60) = {shop}))" for shop in range(30)]


def asked(conditions: Iterable[str], line: str = "collect at /jobs/job.py:7", size: int = 900) -> list[Line]:
    """Queries of a line of the program, a minute each, which filter the same files."""
    lines: list[Line] = []
    for number, condition in enumerate(conditions):
        rows = scan(files=3, size=size or number + 1)
        start, *rest = ran(number, node("Filter", rows, text=f"Filter {condition}", number_of_output_rows=1))
        lines += [start | {"description": line.replace("NUMBER", str(number))}, *rest]
    return lines


def looped(lines: list[Line]) -> list[Finding]:
    """What the rule says."""
    return found(application(lines), "query_loop", **NEVER)


def test_a_query_for_each_value_is_found() -> None:
    """All but the longest are saved, or half of that."""
    (finding,) = looped(asked(SHOPS))
    assert finding.text.startswith(
        "30 queries read the same rows one by one, each for another value of (shop % 60) = 0, 1, 2, …: from query 0 "
        "(collect at jobs/job.py:7) to query 29"
    )
    assert "df.groupBy((shop % 60)).agg(...)" in finding.advice
    assert (finding.cost_low_ms, finding.cost_ms) == (29 * MINUTE / 2, 29 * MINUTE)


def test_a_limit_that_moves_needs_an_aggregate_for_each() -> None:
    """Rows above several limits are no groups."""
    (finding,) = looped(asked(f"(isnotnull(price#1) AND (price#1 > {limit}.0))" for limit in range(30)))
    assert "F.sum(F.when(price > value, ...))" in finding.advice


def test_a_figure_of_each_column_needs_one_aggregation() -> None:
    """As the nulls of thirty columns; groups of each column are no figures of all rows."""

    def of(keys: str) -> list[Line]:
        lines = asked(f"isnull(c{each}#{each})" for each in range(30))
        text = f"HashAggregate(keys=[{keys}], functions=[count(1)])"
        for line in lines:
            if "sparkPlanInfo" in line:
                line["sparkPlanInfo"] = node("HashAggregate", line["sparkPlanInfo"], text=text)
        return lines

    (finding,) = looped(of(""))
    assert "each for another figure: count(1) where isnull(c0), count(1) where isnull(c1)" in finding.text
    assert "F.count(F.when(condition, 1))" in finding.advice
    assert looped(of("shop#9")) == []


@pytest.mark.parametrize(
    "lines",
    [
        asked(SHOPS[:9]),
        asked(SHOPS[:1] * 30),
        asked(SHOPS, line="collect at /jobs/job.py:NUMBER"),
        asked(SHOPS, size=0),
        asked(f"(isnotnull(shop#1) AND (cast(shop#1 as int) = {shop}))" for shop in range(30)),
    ],
    ids=["few", "equal", "of several lines", "of other files", "a lost filter"],
)
def test_other_queries_are_no_loop(lines: list[Line]) -> None:
    """A query that reads its own partition reads it once."""
    assert looped(lines) == []

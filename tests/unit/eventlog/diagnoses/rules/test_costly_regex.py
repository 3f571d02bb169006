from typing import Any

import pytest

from spark_app.eventlog.findings import Finding
from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran
from tests.unit.eventlog.log import Line

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}
WHOLE = r"(.*)\s\[(.*)\](.*)status=(.*)\s+took=(.*)ms"


def extracted(pattern: str) -> Node:
    """A projection that takes a group of a match; it counts nothing."""
    text = f"Project [id#1L, regexp_extract(message#0, {pattern}, 2) AS status#4, concat(id#1L, x) AS y#5]"
    return node("Project", node("Scan parquet ", number_of_output_rows=200_000), text=text)


def matched(pattern: str, rows: int = 200_000) -> Node:
    """A filter by a pattern."""
    text = f"Filter (isnotnull(message#0) AND RLIKE(message#0, {pattern}))"
    return node("Filter", node("Scan parquet ", number_of_output_rows=rows), text=text, number_of_output_rows=9)


def judged(plan: Node, rdds: tuple[Line, ...] = ()) -> list[Finding]:
    """What the rule says of a stage whose only task takes a minute."""
    lines = ran(1, plan, rdds=rdds)
    for line in lines:
        if line["Event"] == "SparkListenerTaskEnd":
            line["Task Metrics"]["Executor Run Time"] = MINUTE
    return found(application(lines), "costly_regex", **NEVER)


def test_a_pattern_of_the_whole_line_is_found() -> None:
    """All that is beyond 5 µs for each row is the most that it costs."""
    (finding,) = judged(extracted(WHOLE))
    assert finding.text == (
        f"Query 1 (Query 1): matches {WHOLE} with each of 200,000 rows, in a stage whose tasks took 1 min 00 s, 300 µs "
        "of a processor a row"
    )
    assert finding.severity == "info"
    assert finding.advice.startswith(f"Shorten {WHOLE}: leave out what stands before and behind")
    assert "(status= and what follows)" in finding.advice


def test_a_repetition_within_a_repetition_is_found() -> None:
    """One is enough: the ways double with each character."""
    (finding,) = judged(matched(r"^(\w+)+$"))
    assert r"^(\w+)+$" in finding.text
    assert "or make the inner repetition possessive" in finding.advice


@pytest.mark.parametrize(
    "plan",
    [extracted(r"status=(\d+)"), extracted("took=(.*)ms"), extracted(r"a\.*b\.*c"), matched(WHOLE, rows=30_000_000)],
    ids=["words", "one wildcard", "dots", "quick"],
)
def test_other_patterns_are_not(plan: Node) -> None:
    """A row that takes 2 µs tries few ways."""
    assert judged(plan) == []


def test_beside_python_nobody_knows() -> None:
    """The function may have taken the time."""
    assert judged(matched(WHOLE), rdds=({"RDD ID": 1, "Name": "PythonRDD"},)) == []

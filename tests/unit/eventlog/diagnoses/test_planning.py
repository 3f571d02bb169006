from collections.abc import Iterable
from typing import Any

import pytest

from spark_app.eventlog.diagnoses.rules.slow_planning import slow_planning
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.plans import Node, found, node
from tests.unit.eventlog.log import Line

WIDE = node("Project", text="Project [id#0L, ... 576 more fields]")
BEGAN = 2000
"""When the driver could begin to plan."""


def long_plan(operators: int) -> Node:
    """Operators that read from each other."""
    plan = node("Range")
    for _ in range(operators - 1):
        plan = node("Project", plan)
    return plan


def query(number: int, plan: Node, *, time: int, job: int, end: int) -> list[Line]:
    """A query with one job, whose start and end are those of its stage."""
    start = log.query(number, time=time) | {"sparkPlanInfo": plan, "description": f"Query {number}"}
    begin = log.job(number - 1, [number], time=job, **{"spark.sql.execution.id": str(number)})
    return [start, begin, log.job_ended(number - 1, time=end), log.query_ended(number, time=end)]


def findings(lines: Iterable[Line], *rules: str, **limits: Any) -> list[Finding]:
    """What is found in an application whose executor is there after two seconds."""
    app = log.application([log.started(time=0), log.executor(time=BEGAN), *lines])
    return found(app, *(rules or ("slow_planning",)), **limits)


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        (WIDE, (1, 601)),
        (long_plan(150), (150, 0)),
        (node("Project", text=f"Project [{'CASE WHEN ' * 9000}]"), (1, 0)),
    ],
    ids=["wide", "long", "much text"],
)
def test_the_time_before_a_large_plan_is_found(plan: Node, size: tuple[int, int]) -> None:
    """From the executor to the query, and from the query to its job, without what any first plan takes."""
    (finding,) = findings(query(1, plan, time=20_000, job=25_000, end=40_000))
    assert finding.cost_ms == 25_000 - BEGAN - Thresholds().first_plan_ms
    assert [finding.cost_low_ms, finding.cost_high_ms] == [0, 25_000 - BEGAN]
    assert [finding.numbers["plan_operators"], finding.numbers["plan_columns"]] == [*size]
    assert finding.severity == "info"
    assert finding.query == 1


def test_a_small_plan_says_nothing_about_the_time_before_it() -> None:
    """The driver may have done anything."""
    assert not findings(query(1, long_plan(20), time=20_000, job=25_000, end=40_000), cost_ms=0, cost_ratio=0)


def test_a_large_plan_takes_a_while_anyway() -> None:
    """The first one longer, since the JVM loads its classes."""
    first = query(1, WIDE, time=BEGAN + 2000, job=BEGAN + 2400, end=10_000)
    assert not findings([*first, *query(2, WIDE, time=11_400, job=11_400, end=20_000)], cost_ms=0, cost_ratio=0)
    later = query(2, WIDE, time=11_400, job=11_600, end=20_000)
    assert [finding.cost_ms for finding in findings([*first, *later], cost_ms=0, cost_ratio=0)] == [100]


def test_the_time_of_other_queries_and_jobs_is_no_time_of_planning() -> None:
    """Only what is between them; a query that is a part of another one has its time."""
    first = query(1, node("Range"), time=3000, job=3000, end=20_000)
    first[-1] = log.query_ended(1, time=30_000)
    second = query(2, WIDE, time=42_000, job=42_000, end=60_000)
    part = log.query(3, time=42_500, root=2) | {"sparkPlanInfo": WIDE}
    (finding,) = findings([*first, *second[:2], part, log.query_ended(3, time=59_000), *second[2:]])
    assert finding.numbers["planning_ms"] == 12_000
    assert len(finding.places) == 1
    of_rdds = [log.job(0, [1], time=3000), log.job_ended(0, time=29_000)]
    (finding,) = findings([*of_rdds, *second])
    assert finding.numbers["planning_ms"] == 13_000


def test_the_driver_gap_does_not_count_it_again() -> None:
    """What is left of the gap is below the threshold."""
    lines = [
        *query(1, node("Range"), time=3000, job=3000, end=10_000),
        *query(2, WIDE, time=40_000, job=40_000, end=50_000),
    ]
    rules = {finding.cause or finding.rule for finding in findings(lines, "driver_gap", "slow_planning")}
    assert rules == {"planning", "slow_planning"}
    lines[4]["sparkPlanInfo"] = node("Range")
    rules = {finding.cause or finding.rule for finding in findings(lines, "driver_gap", "slow_planning")}
    assert rules == {"planning", "between"}


def test_streaming_applications_plan_by_design() -> None:
    """Each batch is planned anew."""
    lines = [log.started(time=0), log.executor(time=BEGAN), *query(1, WIDE, time=20_000, job=25_000, end=40_000)]
    app = log.application(lines)
    assert slow_planning(app, Thresholds())
    app.batches[("stream", 1)] = object()  # type: ignore[index,assignment]
    assert not slow_planning(app, Thresholds())

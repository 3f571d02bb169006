import pytest

from tests.unit.eventlog.diagnoses.cases import (
    EVERY_COST,
    GIB,
    SHUFFLED,
    found,
    of_query,
    settings,
    shuffle,
    stage,
    task,
)
from tests.unit.eventlog.log import Line


def test_too_few_tasks_cost_the_share_of_idle_cores() -> None:
    """One task of 40 s on four cores could have taken 10, or a tenth more side by side."""
    finding = found(stage([task(0, 40)], seconds=40))["too_few_tasks"]
    assert finding.cost_ms == 30_000 - 0.1 * 10_000
    assert (finding.cost_low_ms, finding.cost_high_ms) == (30_000 - 0.25 * 10_000, 30_000)
    assert "1 task in 40.0 s, where 4 could run at once" in finding.text
    assert "coalesce(1)" in finding.advice


@pytest.mark.parametrize(
    ("count", "seconds", "attempt"),
    [(4, 40, 0), (1, 2.9, 0), (1, 40, 1)],
    ids=["as many tasks as cores", "a short stage", "a later attempt"],
)
def test_few_tasks_that_are_enough(count: int, seconds: float, attempt: int) -> None:
    """A task for each core, a stage that is short, and an attempt that has only what was missing."""
    info = {"Stage Attempt ID": attempt}
    lines = stage([task(number, seconds) for number in range(count)], seconds=seconds, **info)
    assert "too_few_tasks" not in found(lines, EVERY_COST)


def test_few_tasks_beside_other_work_are_enough() -> None:
    """Cores that another stage keeps busy are not idle."""
    other = [line for number in range(1, 4) for line in task(number, 40)]
    for line in other:
        line["Stage ID"] = 1
    begin, *rest = stage([task(0, 40)], seconds=40)
    starts = [line for line in other if line["Event"].endswith("Start")]
    ends = [line for line in other if line["Event"].endswith("End")]
    lines = [begin, *rest[:4], *starts, rest[4], *ends, *rest[5:]]
    assert "too_few_tasks" not in found(lines)


def test_tasks_of_two_cores_need_half_as_many() -> None:
    """`spark.task.cpus` says so."""
    lines = stage([task(0, 41), task(1, 41)], seconds=41)
    assert "too_few_tasks" in found(lines)
    assert "too_few_tasks" not in found([settings(task_cpus="2"), *lines])


FEW = stage([task(0, 40)], seconds=40, **SHUFFLED)
TINY = stage(
    [task(number, 0.03, begin=number // 2 * 0.03, **{"Executor Run Time": 10}) for number in range(1000)],
    seconds=15,
    cores=2,
    **SHUFFLED,
)
HUGE = stage([task(0, 1, **shuffle(6 * GIB))], seconds=1, **SHUFFLED)
SPILLED = stage([task(0, 60, **{"Disk Bytes Spilled": 2 * GIB})], seconds=60, **SHUFFLED)


@pytest.mark.parametrize(
    ("rule", "lines"),
    [("too_few_tasks", FEW), ("tiny_tasks", TINY), ("huge_partitions", HUGE), ("spill", SPILLED)],
)
def test_partitions_of_rdds_are_not_those_of_sql(rule: str, lines: list[Line]) -> None:
    """Settings of SQL have no effect on a job without a query."""
    advice = found([lines[0], settings(sql_adaptive_enabled="false"), *lines[1:]], EVERY_COST)[rule].advice
    assert "spark.default.parallelism (default the number of cores) or numPartitions" in advice
    assert "spark.sql" not in advice
    advice = found(of_query(lines), EVERY_COST)[rule].advice
    assert "spark.sql.shuffle.partitions (default 200)" in advice
    assert "parallelism" not in advice

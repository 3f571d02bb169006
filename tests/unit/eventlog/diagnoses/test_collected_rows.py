from typing import Any

import pytest

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses import cases
from tests.unit.eventlog.log import Line

MIB = 1024**2
RULE = "collect_to_driver"


def job(number: int, begin: int, end: int, *, mib: int = 0, query: int | None = None) -> list[Line]:
    """A job with a task, whose result has so many bytes."""
    properties = {} if query is None else {"spark.sql.execution.id": str(query)}
    begins, over = log.stage(number), log.stage(number, end=end)
    begins["Stage Info"] |= {"Submission Time": begin}
    over["Stage Info"] |= {"Submission Time": begin}
    times: dict[str, Any] = {"Launch Time": begin, "Finish Time": end}
    task = log.task(number, number, **times)
    task["Task Metrics"]["Result Size"] = mib * MIB + 16 * 1024
    starts, ends = log.starts([task]), log.job_ended(number, time=end)
    return [log.job(number, [number], time=begin, **properties), begins, *starts, task, over, ends]


def found(*lines: Line, **limits: Any) -> dict[str, Finding]:
    """What is found in a program of at least a minute."""
    return cases.found([log.started(1000), log.executor(), *lines], Thresholds(**limits))


def test_the_driver_collects_rows_and_works_until_the_next_job() -> None:
    """Ten seconds with 200 MiB; it is told once, and not as a gap, too."""
    lines = [*job(0, 2000, 5000, mib=200), *job(1, 15_000, 16_000), log.ended(16_000)]
    findings = found(*lines)
    assert findings.keys() == {RULE}
    assert findings[RULE].cost_ms == 10_000
    assert findings[RULE].numbers == {"collected_bytes": 200 * MIB, "driver_ms": 10_000}
    assert (findings[RULE].stage, findings[RULE].severity) == ((0, 0), "info")
    assert "(save at job.py:7): the driver collects 200.0 MiB, and then no task runs for 10.0 s" in findings[RULE].text


def test_the_last_action_is_followed_by_the_end_of_the_application() -> None:
    """Six seconds."""
    assert found(*job(0, 2000, 5000, mib=200), log.ended(11_000))[RULE].cost_ms == 6000


@pytest.mark.parametrize("mib", [0, 99])
def test_few_bytes_are_a_gap_of_the_driver_alone(mib: int) -> None:
    """Whatever it does, it is not with many rows."""
    lines = [*job(0, 2000, 5000, mib=mib), *job(1, 15_000, 16_000), log.ended(16_000)]
    assert found(*lines).keys() == {"driver_gap"}


def test_the_side_of_a_join_is_collected_to_be_broadcast() -> None:
    """Another job of the same query follows."""
    jobs = [*job(0, 2000, 5000, mib=200, query=0), *job(1, 15_000, 16_000, query=0)]
    lines = [log.query(0, time=1900), *jobs, log.query_ended(0, time=16_000), log.ended(16_000)]
    assert RULE not in found(*lines)


def test_another_job_that_runs_meanwhile_uses_the_executors() -> None:
    """As programs with threads have them."""
    other = job(1, 3000, 16_000)
    lines = [*other[:3], *job(0, 2000, 5000, mib=200), *other[3:], log.ended(16_000)]
    assert RULE not in found(*lines, cost_ms=0, cost_ratio=0)

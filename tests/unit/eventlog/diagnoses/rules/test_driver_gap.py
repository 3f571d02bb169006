from typing import Any

import pytest

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.findings import Finding, Severity
from spark_app.eventlog.model.occupancy import Utilization
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import DEFAULTS, found
from tests.unit.eventlog.diagnoses.timeline_cases import job, task
from tests.unit.eventlog.log import Line


def test_every_time_is_of_one_kind() -> None:
    """Tasks at work, a driver that is at work on a query, executors that are awaited, and nothing at all."""
    lines = [
        log.started(1000),
        log.query(0, time=2000),
        log.executor(time=2500, cores=2),
        *job(0, 4000, 7000),
        log.query_ended(0, time=7500),
        log.ended(9000),
    ]
    expected = Utilization(wall_ms=8000, core_ms=13_000, slot_ms=13_000, task_ms=3000, busy_ms=3000)
    app = log.application(lines)
    assert app.usage.since(Utilization()) == expected
    assert app.task_free.sums == {"startup": 1000, "planning": 2000, "waiting": 500, "between": 0, "ending": 1500}
    assert app.usage.idle_ms == sum(app.task_free.sums.values()) == 5000


def test_concurrent_tasks_count_each() -> None:
    """Two tasks at once for a second are two seconds of tasks."""
    first, second = task(0, 0, 3000, 5000), task(1, 0, 4000, 6000)
    lines = [log.started(1000), log.executor(cores=2), log.stage(0), first[0], second[0], first[1], second[1]]
    assert log.application(lines).usage.task_ms == 4000


def test_a_stage_knows_what_went_on_beside_it() -> None:
    """Cores and tasks of the whole application, while it ran and not before."""
    app = log.application([log.started(1000), log.executor(cores=2), *job(0, 2000, 5000), *job(1, 6000, 8000)])
    usage = app.stages[1, 0].usage
    assert usage == Utilization(wall_ms=2000, core_ms=4000, slot_ms=4000, task_ms=2000, busy_ms=2000)


def test_cores_go_with_their_executor() -> None:
    """An executor that is removed twice goes once."""
    gone = [log.removed(time=time, reason="x") for time in (3000, 4000)]
    app = log.application([log.started(1000), log.executor(), *gone, log.ended(5000)])
    assert app.usage.core_ms == 8000


def gaps(outside: int, planning: int, work: int) -> list[Line]:
    """An application whose driver is alone for a time, works on a query, and then has a task to wait for."""
    at = 1000 + outside
    lines = [
        log.started(1000),
        log.executor(time=1000),
        log.query(0, time=at),
        *job(0, at + planning, at + planning + work),
    ]
    return [*lines, log.query_ended(0, time=at + planning + work), log.ended(at + planning + work)]


def gap_findings(lines: list[Line]) -> dict[str, Finding]:
    """The findings about time without a task, by kind."""
    findings = diagnose(log.application(lines), DEFAULTS)
    return {finding.cause: finding for finding in findings if finding.rule == "driver_gap"}


@pytest.mark.parametrize(
    ("outside", "planning", "kinds"),
    [
        (70_000, 0, {"startup": "info"}),
        (0, 70_000, {"planning": "warning"}),
        (70_000, 70_000, {"startup": "info", "planning": "warning"}),
    ],
    ids=["before", "within", "both"],
)
def test_time_without_a_task_is_told_apart(outside: int, planning: int, kinds: dict[str, Severity]) -> None:
    """Before the first query the program starts; within queries the driver works, which is a warning."""
    found_gaps = gap_findings(gaps(outside, planning, 30_000))
    assert {kind: finding.severity for kind, finding in found_gaps.items()} == kinds
    assert all(finding.cost_ms == (planning if kind == "planning" else outside) for kind, finding in found_gaps.items())


@pytest.mark.parametrize(("gap", "work"), [(9_000, 1000), (70_000, 300_000)], ids=["a short time", "a small part"])
def test_some_time_of_the_driver_alone_is_normal(gap: int, work: int) -> None:
    """Less than ten seconds, or less than three tenths; and less than a minute to start."""
    assert "driver_gap" not in found(gaps(0, gap, work))
    assert "driver_gap" not in found(gaps(59_000, 0, work))


def test_time_between_jobs_is_not_blamed_for_the_start() -> None:
    """Of half a minute before the first job nothing is said where little passes between jobs."""
    lines = [log.started(1000), log.executor(), *job(0, 91_000, 92_000), *job(1, 92_017, 93_000), log.ended(94_000)]
    assert set(gap_findings(lines)) == {"startup"}
    finding = gap_findings(lines)["startup"]
    assert finding.text == "No task ran for 1 min 30 s of 1 min 33 s (97 %), before the first query or job."
    assert "toPandas" not in finding.advice


def test_the_longest_time_between_jobs_is_named_by_the_query_after_it() -> None:
    """Of two times between jobs, the longer one; the time after the last job is another kind."""
    lines = [log.started(1000), log.executor(), *job(0, 2000, 3000), *job(1, 14_000, 15_000)]
    lines += [log.query(7, time=95_000), *job(2, 95_000, 96_000), log.query_ended(7, time=96_000), log.ended(197_000)]
    found_gaps = gap_findings(lines)
    assert {kind: finding.cost_ms for kind, finding in found_gaps.items()} == {"between": 91_000, "ending": 101_000}
    assert found_gaps["between"].numbers["longest_gap_ms"] == 80_000
    assert "; the longest time, 1 min 20 s, was before query 7 (d)." in found_gaps["between"].text
    assert "Stop the session after the last action" in found_gaps["ending"].advice


def test_to_pandas_without_arrow_is_what_the_time_after_it_is_for() -> None:
    """The advice begins with the setting, where the query before the longest time brought rows to pandas."""
    off = log.environment({"spark.sql.execution.arrow.pyspark.enabled": "false"})
    rows = log.query(1, time=2000) | {"description": "toPandas at /jobs/job.py:7"}
    lines = [log.started(1000), off, log.executor(), rows, *job(0, 2000, 3000), log.query_ended(1, time=3000)]
    lines += [*job(1, 94_000, 95_000), log.ended(96_000)]
    advice = gap_findings(lines)["between"].advice
    assert advice.startswith(
        "spark.sql.execution.arrow.pyspark.enabled is off, so that the driver unpickles the rows of"
    )
    assert "toPandas at job.py:7" in advice


def two_jobs(gap: int, **observed: Any) -> list[Line]:
    """Two jobs of ten seconds with a time between them, and what `observe` knows of their program."""
    after = 12_000 + gap
    lines = [log.started(1000), log.executor(), *job(0, 2000, 12_000), *job(1, after, after + 10_000)]
    return [*lines, log.ended(after + 10_100), {"Event": "spark-app.Observed", **observed}]


@pytest.mark.parametrize(
    ("gap", "observed", "severity"),
    [
        (7000, {"program": "model", "exit_code": 0}, "warning"),
        (7000, {"program": "model", "exit_code": 1, "can_type": False}, "warning"),
        (4900, {"program": "model", "exit_code": 0}, None),
        (7000, {"program": "model", "exit_code": 0, "can_type": True}, None),
        (20_000, {"program": "model", "exit_code": 0, "can_type": True}, "info"),
        (7000, {"program": "", "exit_code": 0}, None),
        (7000, {"program": "server", "exit_code": 143}, None),
        (20_000, {"program": "server"}, "info"),
        (20_000, {"program": "model", "exit_code": 0}, "warning"),
    ],
)
def test_nobody_thinks_between_the_jobs_of_a_batch_program(
    gap: int, observed: dict[str, Any], severity: Severity | None
) -> None:
    """A shell, a notebook, a server that a signal ends, and a program that nobody knows may wait for a person."""
    between = gap_findings(two_jobs(gap, **observed)).get("between")
    assert (between and between.severity) == severity
    if between is not None:
        assert between.cost_ms == gap
        assert ("may be the time of its user" in between.advice) == (severity == "info")


def test_many_short_times_between_the_jobs_of_a_batch_program_are_no_gap() -> None:
    """Ten times a second; each program takes some time from one action to the next."""
    lines = [log.started(1000), log.executor()]
    for number in range(11):
        lines += job(number, 2000 + number * 5000, 6000 + number * 5000)
    over = [log.ended(57_000), {"Event": "spark-app.Observed", "program": "model", "exit_code": 0}]
    assert log.application([*lines, *over]).task_free.sums["between"] == 10_000
    assert not gap_findings([*lines, *over])


def test_a_streaming_application_has_no_gaps() -> None:
    """It waits for data by design."""
    stream = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "0"}
    lines = gaps(70_000, 0, 30_000)
    at = next(place for place, line in enumerate(lines) if line["Event"] == "SparkListenerJobStart")
    lines[at] = {**lines[at], "Properties": stream}
    assert "driver_gap" not in found(lines)


@pytest.mark.parametrize("lost", ["SparkListenerTaskStart", "SparkListenerJobStart"])
def test_a_log_that_is_not_whole_tells_no_gaps(lost: str) -> None:
    """Compacted or filtered: what is not in it is not idle time."""
    lines = [*gaps(70_000, 0, 30_000), log.job(1, [9], time=130_000)]
    assert log.application(lines).is_whole
    at = next(place for place, line in enumerate(lines) if line["Event"] == lost)
    filtered = lines[:at] + lines[at + 1 :]
    assert not log.application(filtered).is_whole
    assert "driver_gap" not in found(filtered)


def test_a_log_of_ends_only_is_not_whole() -> None:
    """Where no job has a start, those whose end is logged are missed."""
    lines = [line for line in gaps(70_000, 0, 30_000) if line["Event"] != "SparkListenerJobStart"]
    assert not log.application(lines).is_whole
    assert "driver_gap" not in found(lines)


def test_what_is_told_late_is_time_as_well() -> None:
    """The start of an application is in its log after the first executor, which came later."""
    lines = [log.executor(time=2500), log.started(1000), log.ended(9000)]
    app = log.application(lines)
    assert (app.usage.wall_ms, app.task_free.outside_ms) == (8000, 8000)

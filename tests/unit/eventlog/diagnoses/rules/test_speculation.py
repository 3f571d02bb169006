from typing import Any

import pytest

from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line

SECOND = 1000
BEGAN = 2100
"""When stages are submitted, in milliseconds; all times below are seconds from there."""


def attempt(number: int, stage: int, begin: float, end: float, **info: Any) -> tuple[float, float, list[Line]]:
    """A task attempt, from when to when, and the lines of its start and its end."""
    times = {"Launch Time": BEGAN + int(begin * SECOND), "Finish Time": BEGAN + int(end * SECOND)}
    ends = log.task(number, stage, seconds=end - begin, **times | info)
    ends["Task Info"] |= times
    return begin, end, [*log.starts([ends]), ends]


def copy(number: int, stage: int, begin: float, end: float, **info: Any) -> tuple[float, float, list[Line]]:
    """A copy of the second task of a stage, which is killed."""
    return attempt(number, stage, begin, end, **{"Index": 1, "Attempt": 1, "Speculative": True, "Killed": True} | info)


def found(
    *attempts: tuple[float, float, list[Line]], error: str | None = None, cores: int = 2, later: float = 0
) -> Finding | None:
    """What is found about two stages that end after 60 s; the second is submitted so many seconds later."""
    moments = [(begin, 1, lines[0]) for begin, _, lines in attempts] + [
        (end, 0, lines[1]) for _, end, lines in attempts
    ]
    lines = [line for _, _, line in sorted(moments, key=lambda each: each[:2])]
    stages = [log.stage(number, tasks=2) for number in (0, 1)]
    over = [log.stage(number, end=BEGAN + 60 * SECOND, error=error, tasks=2) for number in (0, 1)]
    for line in (stages[1], over[1]):
        line["Stage Info"]["Submission Time"] = BEGAN + int(later * SECOND)
    jobs = [log.job(number, [number]) for number in (0, 1)]
    ends = [log.job_ended(number, time=BEGAN + 60 * SECOND) for number in (0, 1)]
    settings = log.environment({"spark.speculation": "true", "spark.speculation.multiplier": "1.1"})
    start = [log.started(), settings, log.executor(cores=cores)]
    app = log.application([*start, *jobs, *stages, *lines, *over, *ends, log.ended(BEGAN + 60 * SECOND)])
    return {finding.rule: finding for finding in diagnose(app, Thresholds())}.get("speculation")


BUSY = (
    attempt(0, 0, 0, 5, Index=0),
    attempt(1, 0, 0, 20, Index=1),
    attempt(3, 1, 20, 40, Index=0),
    attempt(4, 1, 20, 60, Index=1),
)
"""The first stage has a task of 5 s and one of 20 s, and the tasks of the second begin when both are over."""


def test_a_copy_that_loses_costs_the_time_for_which_others_waited() -> None:
    """15 s on one of two cores, while the tasks of the other stage waited."""
    finding = found(*BUSY, copy(2, 0, 5, 20))
    assert finding is not None
    assert (finding.severity, finding.stage, finding.subject) == ("warning", (0, 0), "job")
    assert finding.numbers == {"copies": 1, "lost_copies": 1, "lost_copies_ms": 15_000, "waited_ms": 15_000}
    assert finding.cost_ms == pytest.approx(15_000 * 60 / 100)
    assert finding.cost_high_ms == finding.cost_ms
    assert finding.cost_low_ms == 0  # the other core was idle for 20 s at last
    assert "killed 1 of the copies because the task itself ended first; they took 15.0 s, 38 % of the task time" in (
        finding.text
    )
    assert "spark.speculation.multiplier (now 1.1), spark.speculation.quantile (not set)" in finding.advice


def test_a_copy_on_a_core_that_nobody_waits_for_costs_nothing() -> None:
    """The other stage began at once, on cores of its own."""
    alone = (attempt(3, 1, 0, 40, Index=0), attempt(4, 1, 0, 60, Index=1))
    assert found(*BUSY[:2], *alone, copy(2, 0, 5, 20), cores=4) is None


def test_a_copy_that_is_faster_is_not_in_vain() -> None:
    """Then the task itself is killed."""
    slow = attempt(1, 0, 0, 20, Index=1, Killed=True)
    assert found(BUSY[0], slow, *BUSY[2:], copy(2, 0, 5, 20, Killed=False)) is None


def test_the_copies_of_a_stage_that_fails_end_with_it() -> None:
    """Not because a task was faster."""
    assert found(*BUSY, copy(2, 0, 5, 20), error="a task failed four times") is None


def test_a_later_attempt_is_no_task_that_waited() -> None:
    """The tasks of the second stage had all begun at 20 s, and a copy of one of them began at 25 s."""
    first = (attempt(0, 0, 0, 5, Index=0), attempt(1, 0, 0, 30, Index=1), copy(2, 0, 5, 30))
    finding = found(*first, *BUSY[2:], copy(5, 1, 25, 28), cores=4)
    assert finding is not None
    assert finding.numbers["waited_ms"] == 15_000
    assert (finding.numbers["lost_copies"], finding.numbers["lost_copies_ms"]) == (2, 28_000)


def test_others_wait_from_their_submission_to_the_launch_of_their_last_task() -> None:
    """The stage itself had a task that waited for 3 s; the other was submitted after 15 s and began after 40 s."""
    first = (attempt(0, 0, 3, 5, Index=0), attempt(1, 0, 0, 50, Index=1), copy(2, 0, 5, 50))
    finding = found(*first, attempt(3, 1, 40, 60, Index=0), attempt(4, 1, 40, 60, Index=1), later=15)
    assert finding is not None
    assert finding.numbers["waited_ms"] == 25_000

"""What tests of several rules judge: see `rules`."""

from typing import Any

from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line


def task(number: int, stage: int, begin: int, end: int) -> list[Line]:
    """A task from a time to a time."""
    info: dict[str, Any] = {"Launch Time": begin, "Finish Time": end}
    ends = log.task(number, stage, **info)
    begins = {
        "Event": "SparkListenerTaskStart",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task Info": ends["Task Info"],
    }
    return [begins, ends]


def job(number: int, begin: int, end: int) -> list[Line]:
    """A job with a stage and a task from a time to a time."""
    stage = {**log.stage(number)}
    stage["Stage Info"] |= {"Submission Time": begin}
    done = log.stage(number, end=end)
    done["Stage Info"] |= {"Submission Time": begin}
    begins, ends = task(number, number, begin, end)
    return [log.job(number, [number], time=begin), stage, begins, ends, done, log.job_ended(number, time=end)]

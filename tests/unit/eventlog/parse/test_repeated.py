"""Events of a healthy log are never taken for repeated ones."""

from random import Random

from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import TaskEndReason, TaskInfo
from spark_app.eventlog.parse.repeated import MAX_GAPS, RepeatedEvents


def ended(number: int, stage: int = 0) -> events.TaskEnd:
    """The end of a task."""
    info = TaskInfo(number, 0, 0, 1, "1", "host", finished=2)
    return events.TaskEnd(stage, 0, TaskEndReason("Success"), info, None)


def repeated(numbers: list[int]) -> list[int]:
    """Which of the ends of tasks of a stage, one after the other, were there before."""
    known = RepeatedEvents()
    return [number for number in numbers if known.has(ended(number), b"")]


def test_a_task_that_ends_after_one_with_a_far_id_is_new() -> None:
    """A task that is tried again has the next id of the application, in which other stages may have run many."""
    far = 10 * MAX_GAPS
    assert repeated([0, 1, far, 2, far + 1, 3]) == []
    assert repeated([far, 0, far - 1, 1]) == []
    assert repeated([0, far, 0]) == [0]


def test_tasks_of_stages_that_run_side_by_side_are_new_and_take_little_memory() -> None:
    """Each stage lacks the ids of the others; so many are remembered at most."""
    known, draw = RepeatedEvents(), Random(3)
    numbers = list(range(0, 40 * MAX_GAPS, 20))
    for start in range(0, len(numbers), 100):
        part = numbers[start : start + 100]
        draw.shuffle(part)
        assert not any(known.has(ended(number), b"") for number in part)
    assert max(len(each.gaps) for each in known._ended.values()) <= MAX_GAPS


def test_equal_log_records_are_no_repetition() -> None:
    """A program may log the same twice within a millisecond."""
    known, record = RepeatedEvents(), events.LogRecord(1, "WARN", "shop", "again", "job.py", 3)
    assert [known.has(record, b"same line") for _ in range(2)] == [False, False]
    job = events.JobEnd(1, 1, events.JobResult("JobSucceeded"))
    assert [known.has(job, b"same line") for _ in range(2)] == [False, True]

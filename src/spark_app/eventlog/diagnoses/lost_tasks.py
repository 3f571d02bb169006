"""Task attempts that were lost with their executors, and how much sooner their stages would have ended without them."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import repeat

from spark_app.eventlog.diagnoses.excerpts import error
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.executor_loss import is_lost
from spark_app.eventlog.model.failures import TRACEBACK, is_of_executor
from spark_app.eventlog.model.occupancy import Span
from spark_app.eventlog.parse.events import EXECUTOR_LOST, RESUBMITTED, TaskEnd
from spark_app.redaction import excerpt


def reason_of(task: TaskEnd) -> str:
    """Why a task attempt failed, in a line."""
    kind, text = task.reason.error_type or task.reason.reason, task.reason.description
    return kind if not text else error(text) if TRACEBACK in text else excerpt(f"{kind}: {text}")


def is_of_loss(app: Application, task: TaskEnd) -> bool:
    """Whether a task attempt failed with an error that ended its executor, or because its result was lost with it."""
    return is_of_executor(task.reason) and _is_lost(app, task)


def lost_of(app: Application, stage: StageAttempt) -> list[TaskEnd]:
    """The attempts of a stage that were lost with their executors; of many, some."""
    return [
        task
        for task in stage.kept
        if is_of_loss(app, task) or (task.reason.reason in (EXECUTOR_LOST, RESUBMITTED) and _is_lost(app, task))
    ]


def saved_ms(app: Application, stage: StageAttempt) -> float:
    """How much sooner a stage would have ended without what it lost: its attempts, laid on as many slots again.

    The slots of an executor that was lost count as taken until the next executor came.
    """
    lost = Counter((task.info.launched, task.info.duration_ms) for task in lost_of(app, stage))
    if not lost or stage.usage is None or stage.usage.slots is None:
        return 0.0
    slots, kept = max(1, round(stage.usage.slots)), list[tuple[float, float]]()
    ran = sorted(zip(stage.launched, stage.durations_ms, strict=True))
    for attempt in ran:
        if lost[attempt]:
            lost[attempt] -= 1
        else:
            kept.append(attempt)
    absent = [(began, ended - began) for began, ended, number in _absent(app, stage) for _ in repeat(None, number)]
    return max(0.0, _end([*ran, *absent], slots) - _end(kept, slots))


def absent_ms(app: Application, stage: StageAttempt) -> float:
    """For how long a stage was without executors that were lost until the next one came."""
    return sum(ended - began for began, ended, _ in _absent(app, stage))


def _is_lost(app: Application, task: TaskEnd) -> bool:
    executor = app.executors.get(task.info.executor)
    return executor is not None and is_lost(app, executor)


def _absent(app: Application, stage: StageAttempt) -> Iterator[Span]:
    """When slots of lost executors were missing from a stage, where others came in their place, and how many."""
    began, ended = stage.info.submitted or 0, stage.info.completed or 0
    for executor in app.executors.values():
        gone = executor.removed
        if gone is None or not began <= gone <= ended or not is_lost(app, executor):
            continue
        following = min((each.added for each in app.executors.values() if gone <= each.added <= ended), default=None)
        if following is not None:
            yield gone, following, executor.cores // app.task_cpus


def _end(attempts: Iterable[tuple[float, float]], slots: int) -> float:
    """When the last of some attempts ends, if each begins in its turn on the first slot that is free."""
    free = [0.0] * slots
    for _, length in sorted(attempts):
        heapq.heapreplace(free, free[0] + length)
    return max(free)

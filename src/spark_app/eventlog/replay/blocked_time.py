"""Blocked time: how much sooner an application would have ended at most if its tasks had not waited for something.

The method is that of Ousterhout et al., "Making Sense of Performance in Data Analytics Frameworks" (NSDI 2015): what
each task waited is taken from its time, and the schedule is computed again on the same slots. So a wait that another
task hides saves nothing. It is the most that a change can save: a resource that no task waits for is not a free one.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final, Literal, get_args

from msgspec import Struct

from spark_app.eventlog.document import Ms
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.plan_names import PYTHON_TIME
from spark_app.eventlog.parse.events import counted
from spark_app.eventlog.replay.schedule import Piece
from spark_app.eventlog.replay.work import Work

Cause = Literal["network", "disk", "gc", "scheduling", "deserializing", "python", "skew"]
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)


class BlockedTime(Struct, frozen=True):
    """What tasks waited for, and how much sooner the work would have ended at most without it.

    `task_ms` is the sum over all tasks; `saved_ratio` is of the duration.
    """

    cause: Cause
    task_ms: Ms
    without_ms: Ms
    saved_ms: Ms
    saved_ratio: float


def blocked_time(work: Work) -> list[BlockedTime]:
    """What tasks waited for, most saved first; without causes that the log does not measure or no task waited for.

    Not in a log of Spark: how long tasks waited for the disk when they read files and when they spilled, and in Spark
    3.5 how long they were in Python.
    """
    found = (_blocked(work, cause) for cause in CAUSES)
    return sorted((each for each in found if each is not None), key=lambda each: -each.saved_ms)


def _blocked(work: Work, cause: Cause) -> BlockedTime | None:
    """What tasks waited for a cause; None where the log does not tell, or none did."""
    waits = _waits_of(work, cause)
    task_ms = sum(map(sum, waits.values()))
    if task_ms < 1:
        return None
    without_ms = min(work.took_ms, work.corrected(work.replayed(_pieces(work, waits)).ms))
    saved_ms = work.took_ms - without_ms
    return BlockedTime(cause, task_ms, without_ms, saved_ms, saved_ms / work.took_ms)


def without(work: Work, cause: Cause) -> list[Piece] | None:
    """The pieces without a cause; None where the log does not tell of it, or no task waited for it."""
    waits = _waits_of(work, cause)
    return _pieces(work, waits) if waits else None


def _waits_of(work: Work, cause: Cause) -> dict[int, Sequence[float]]:
    """How long each task of each stage waited, by the identity of the stage attempts in which any did."""
    stages = {id(part.stage): part.stage for part in work.parts}
    waits = ((number, _waits(stage, cause)) for number, stage in stages.items())
    return {number: own for number, own in waits if own is not None}


def _pieces(work: Work, waits: Mapping[int, Sequence[float]]) -> list[Piece]:
    parts = work.parts
    return [part.without(waits[id(part.stage)]) if id(part.stage) in waits else part.piece for part in parts]


def _waits(stage: StageAttempt, cause: Cause) -> Sequence[float] | None:
    """How long each task of a stage waited; None where the log does not tell, or none did."""
    special: dict[str, Callable[[StageAttempt], Sequence[float] | None]] = {"python": _in_python, "skew": _over_median}
    waits = special[cause](stage) if cause in special else stage.waits_for(cause)
    return waits if waits is not None and any(waits) else None


def _over_median(stage: StageAttempt) -> Sequence[float] | None:
    """How much longer than the median each task took."""
    durations = stage.durations_ms
    if len(durations) < 2:
        return None
    usual = median(durations)
    return array("f", [max(0.0, ms - usual) for ms in durations])


def _in_python(stage: StageAttempt) -> Sequence[float] | None:
    """The time in Python workers, which Spark sums over a stage, spread over its tasks by the time that they took.

    The operators of a stage that call Python one after another are in Python at the same time: the longest one counts.
    """
    numbers, names = counted(stage.info.accumulables), {each.id: each.name for each in stage.info.accumulables}
    took = sum(stage.durations_ms)
    known = [value for number, value in numbers.items() if names[number] == PYTHON_TIME]
    if not known or not took:
        return None
    share = min(1.0, max(known) / took)
    return array("f", [ms * share for ms in stage.durations_ms])

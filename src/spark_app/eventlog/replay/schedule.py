"""The schedule of an application, computed again: pieces of stages, their tasks one after another on slots.

Each piece begins as long after the piece that ended last before it as it did: the driver takes the same time. Its tasks
take the times that are given, one after another on the slots that are free.
"""

import bisect
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Final

Key = tuple[int, int]
PieceKey = tuple[Key, int]
MAX_IN_TURN: Final = 5000
"""Of twice as many tasks in a piece, all but so many are spread evenly over the slots, which takes no time per task."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tasks of a stage without a time in between in which no task ran: when they began, after what, and how long each.

    Attributes:
        key: The stage attempt, and the busy time of the application that its tasks ran in.
        began, ended: Of its tasks, from the submission of the stage on; milliseconds since the epoch.
        parents: The stage attempts that the stage reads.
        durations: Of its tasks, in the order of their starts, in milliseconds.
    """

    key: PieceKey
    began: float
    ended: float
    parents: tuple[Key, ...]
    durations: Sequence[float]


@dataclass(frozen=True, slots=True)
class Replayed:
    """When the replay reached the end of each piece, and of everything, in milliseconds after the start."""

    ms: float
    ends: dict[PieceKey, float]


def replay(
    work: Sequence[Piece], free: Sequence[float] | None, start: float, end: float, *, driver: float = 1.0
) -> Replayed:
    """How long the work takes on other slots, or with other tasks.

    Args:
        work: In the order of its beginning.
        free: When each slot is there, in milliseconds after the start, earliest first; None for one slot per task.
        start: Of the period that the work is a part of.
        end: Of the same.
        driver: What the time of the driver between two pieces is multiplied by.
    """
    slots = None if free is None else list(free)
    order = sorted(work, key=lambda piece: piece.ended)
    ended = [piece.ended for piece in order]
    ends: dict[PieceKey, float] = {}
    stages: dict[Key, float] = {}

    def after(instant: float) -> float:
        """When the replay reaches an instant: as long after the end of a piece as in truth."""
        index = bisect.bisect_right(ended, instant) - 1
        while index >= 0 and order[index].key not in ends:
            index -= 1
        if index < 0:
            return (instant - start) * driver
        return ends[order[index].key] + (instant - order[index].ended) * driver

    for piece in work:
        ready = max([after(piece.began), *(stages[parent] for parent in piece.parents if parent in stages)])
        last = ends[piece.key] = _end(piece.durations, slots, max(0.0, ready))
        stages[piece.key[0]] = max(last, stages.get(piece.key[0], 0.0))
    return Replayed(max([after(end), *ends.values()]), ends)


def _end(durations: Sequence[float], free: list[float] | None, ready: float) -> float:
    """When the last of some tasks ends; takes the slots."""
    if not durations:
        return ready
    if free is None:
        return ready + max(durations)
    last, many = ready, len(durations) - MAX_IN_TURN
    if many > max(MAX_IN_TURN, 10 * len(free)):
        last = _spread(durations[:many], free, ready)
        durations = durations[many:]
    waiting = sum(each < ready for each in free)
    for duration in durations[:waiting]:
        ended = max(free[0], ready) + duration
        heapq.heapreplace(free, ended)
        last = max(last, ended)
    return max(last, _in_turn(durations[waiting:], free))


def _in_turn(durations: Sequence[float], free: list[float]) -> float:
    """When the last of some tasks ends that wait for a slot; takes the slots."""
    take = heapq.heapreplace
    starts = [take(free, free[0] + duration) for duration in durations]
    return max(map(add, starts, durations), default=0.0)


def _spread(durations: Sequence[float], free: list[float], ready: float) -> float:
    """When the last of very many tasks ends, if they are spread evenly over the slots; takes the slots."""
    total, longest = sum(durations), max(durations)
    begun = sum(max(ready, each) for each in free)
    ended = (begun + total) / len(free)
    free[:] = [ended] * len(free)
    return max(ended, (begun + sum(durations[: durations.index(longest)])) / len(free) + longest)

"""How long an application would have taken with other cores: its stages and tasks replayed on other slots.

Each stage begins as long after the stage that ended last before it as it did: the driver takes the same time. Its tasks
take the time that they took, one after another on the slots that are free. A time in which no task of the application
ran, as while it waits for an executor, is as long as it was, also within a stage. So what more cores change about a
task, such as its share of a disk or of memory, is not seen. The same replay on the slots that there were gives the
error of all.

After Sparklens (Qubole), which replays stages and tasks likewise and shows no error per application.
"""

import bisect
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Occupancy

FACTORS: Final = (0.5, 1.0, 2.0)
MOST_ERROR: Final = 0.25
"""Where the replay on the slots that there were is further off than this share, no other one is shown."""
IDLE_MS: Final = 1000
"""A shorter time without a task is the scheduling of the next one."""
Key = tuple[int, int]
PieceKey = tuple[Key, int]


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay of the work.

    Attributes:
        cores: How many there would be; None for as many as tasks could ever use.
        ms: How long it would take, in milliseconds.
    """

    cores: int | None
    ms: float


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Replays of the same work on other cores.

    Attributes:
        cores: The most that were registered at a time.
        took_ms: How long it took, in milliseconds.
        own: The replay on the cores that there were.
        others: Those on half, on twice as many, and on unlimited cores.
    """

    cores: int
    took_ms: float
    own: Replay
    others: tuple[Replay, ...]

    @property
    def error(self) -> float:
        """How far the replay on the same cores is off, as a share of what it took; positive if it is too long."""
        return self.own.ms / self.took_ms - 1

    @property
    def is_credible(self) -> bool:
        """Whether its error is small enough to show what it says about other cores."""
        return abs(self.error) <= MOST_ERROR


@dataclass(frozen=True, slots=True)
class _Piece:
    """Tasks of a stage without a time in between in which no task ran: when they began, after what, and how long each.

    Attributes:
        key: The stage attempt, and the busy time of the application that its tasks ran in.
        began, ended: Of its tasks, from the submission of the stage on; milliseconds since the epoch.
        parents: The stage attempts that the stage reads.
        durations: Of its tasks, in the order of their starts.
    """

    key: PieceKey
    began: float
    ended: int
    parents: tuple[Key, ...]
    durations: Sequence[int]


def what_if(app: Application, stages: Iterable[StageAttempt], held: Occupancy) -> WhatIf | None:
    """Replays the work of a period on other cores.

    Args:
        app: The application, with its executors.
        stages: The stages to replay.
        held: Cores and tasks of the stages over the period.

    Returns:
        None where the log has no executor or no task, or a streaming query: that waits for its input.
    """
    start, end = held.instants[0], held.instants[-1]
    cores, most = max(held.cores, default=0), max(held.slots, default=0)
    work = _pieces([stage for stage in stages if stage.launched], held.gaps)
    if not work or most < 1 or app.batches:
        return None
    alive = [each for each in app.executors.values() if each.removed is None or each.removed >= start]
    usable = round(sum(len(piece.durations) for piece in work) / min(FACTORS))  # more would never have a task
    slots = [(each.added, min(each.cores // app.task_cpus, usable)) for each in alive]
    free = sorted(max(0.0, added - start) for added, count in slots for _ in range(count))[:most]
    replays = {factor: _replayed(work, _scaled(free, factor), start, end) for factor in FACTORS if cores * factor >= 1}
    own = Replay(cores, replays.pop(1.0))
    others = [Replay(round(cores * factor), ms) for factor, ms in replays.items()]
    return WhatIf(cores, end - start, own, (*others, Replay(None, _replayed(work, None, start, end))))


def _pieces(stages: Sequence[StageAttempt], gaps: Iterable[tuple[float, float]]) -> list[_Piece]:
    """What to replay, in the order of its beginning."""
    begins = _busy_times(stages, gaps)
    return sorted((piece for stage in stages for piece in _pieces_of(stage, begins)), key=lambda piece: piece.began)


def _busy_times(stages: Sequence[StageAttempt], gaps: Iterable[tuple[float, float]]) -> list[float]:
    """When the application began to run tasks, at first and after each time without any."""
    first = min((min(stage.launched) for stage in stages), default=0)
    return [first, *(end for start, end in gaps if start > first and end - start >= IDLE_MS)]


def _pieces_of(stage: StageAttempt, begins: Sequence[float]) -> Iterator[_Piece]:
    """The tasks of a stage by the busy times of the application."""
    tasks = sorted(zip(stage.launched, (max(0, ms) for ms in stage.durations_ms), strict=True), key=itemgetter(0))
    parents = tuple((parent, stage.info.attempt) for parent in stage.info.parents)
    submitted = min(stage.info.submitted or tasks[0][0], tasks[0][0])
    for number, group in groupby(tasks, key=lambda task: bisect.bisect_right(begins, task[0])):
        own = list(group)
        ended = max(launched + ms for launched, ms in own)
        key = (stage.info.id, stage.info.attempt), number
        yield _Piece(key, max(submitted, begins[number - 1]), ended, parents, [ms for _, ms in own])


def _scaled(free: Sequence[float], factor: float) -> list[float]:
    """When each of so many times the slots is there, in milliseconds after the start."""
    count = max(1, round(len(free) * factor))
    return [free[int(index / factor)] for index in range(count)]


def _replayed(work: Sequence[_Piece], free: list[float] | None, start: float, end: float) -> float:
    """How long the work takes on slots that are there from some time on; None for one slot per task."""
    order = sorted(work, key=lambda piece: piece.ended)
    ends = [piece.ended for piece in order]
    replayed: dict[PieceKey, float] = {}
    stages: dict[Key, float] = {}

    def after(instant: float) -> float:
        """When the replay reaches an instant: as long after the end of a piece as in truth."""
        index = bisect.bisect_right(ends, instant) - 1
        while index >= 0 and order[index].key not in replayed:
            index -= 1
        return instant - start if index < 0 else replayed[order[index].key] + instant - order[index].ended

    for piece in work:
        ready = max([after(piece.began), *(stages[parent] for parent in piece.parents if parent in stages)])
        ended = replayed[piece.key] = _end(piece.durations, free, max(0.0, ready))
        stages[piece.key[0]] = max(ended, stages.get(piece.key[0], 0.0))
    return max(after(end), *replayed.values())


def _end(durations: Sequence[int], free: list[float] | None, ready: float) -> float:
    """When the last of some tasks ends; takes the slots."""
    if free is None:
        return ready + max(durations)
    last = ready
    for duration in durations:
        ended = max(free[0], ready) + duration
        heapq.heapreplace(free, ended)
        last = max(last, ended)
    return last

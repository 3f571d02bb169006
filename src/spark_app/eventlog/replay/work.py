"""The work of an application as a replay takes it: its stages in pieces, its slots, and what its tasks waited for."""

import bisect
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import sub
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Occupancy
from spark_app.eventlog.replay.schedule import Piece, Replayed, replay

IDLE_MS: Final = 1000
"""A shorter time without a task is the scheduling of the next one."""
MAX_SLOTS: Final = 2
"""For each task; more would never have one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece with the stage attempt that it is of, and which of its tasks it has, by their places in the arrays."""

    piece: Piece
    stage: StageAttempt
    places: Sequence[int]

    def without(self, waits_ms: Sequence[float]) -> Piece:
        """The piece if each task of the stage had not taken so much of its time."""
        taken = map(waits_ms.__getitem__, self.places)
        return self.lasting(array("d", [max(0, ms) for ms in map(sub, self.piece.durations, taken)]))

    def lasting(self, durations: Sequence[float]) -> Piece:
        """The piece with other tasks."""
        return replace(self.piece, durations=durations)


@dataclass(frozen=True, slots=True)
class Work:
    """What to replay.

    Attributes:
        app: The application.
        parts: The pieces, in the order of their beginning.
        free: When each slot was there, in milliseconds after the start, earliest first.
        cores: The most that were registered at a time.
        most_slots: More than so many would never have a task.
        idle_ms: How long no task ran.
        start, end: Of the period, in milliseconds since the epoch.
        own: The replay on the slots that there were.
    """

    app: Application
    parts: Sequence[Part]
    free: Sequence[float]
    cores: int
    most_slots: int
    idle_ms: float
    start: float
    end: float
    own: Replayed

    @property
    def took_ms(self) -> float:
        """How long it took."""
        return self.end - self.start

    @property
    def error(self) -> float:
        """How far the replay on the same cores is off, as a share of what it took; positive if it is too long."""
        return self.own.ms / self.took_ms - 1

    def replayed(
        self, pieces: Sequence[Piece] | None = None, free: Sequence[float] | None = None, *, driver: float = 1.0
    ) -> Replayed:
        """The replay with other tasks, or on other slots."""
        chosen = [part.piece for part in self.parts] if pieces is None else pieces
        return replay(chosen, self.free if free is None else free, self.start, self.end, driver=driver)

    def corrected(self, ms: float) -> float:
        """The length of a replay, corrected by the error of the replay on the slots that there were."""
        return ms / (1 + self.error)


def work(app: Application, stages: Iterable[StageAttempt], occupancy: Occupancy) -> Work | None:
    """The work of a period.

    Args:
        app: The application, with its executors.
        stages: The stages to replay.
        occupancy: Cores and tasks of the stages over the period.

    Returns:
        None where the log has no executor or no task, or a streaming query: that waits for its input.
    """
    start, end = occupancy.instants[0], occupancy.instants[-1]
    cores, most = max(occupancy.cores, default=0), max(occupancy.slots, default=0)
    parts = _parts([stage for stage in stages if stage.launched], occupancy.gaps)
    if not parts or most < 1 or app.batches or end <= start:
        return None
    alive = [each for each in app.executors.values() if each.removed is None or each.removed >= start]
    usable = sum(len(part.places) for part in parts) * MAX_SLOTS
    slots = [(each.added, min(each.cores // app.task_cpus, usable)) for each in alive]
    free = sorted(max(0.0, added - start) for added, count in slots for _ in range(count))[:most]
    own, idle_ms = (
        replay([part.piece for part in parts], free, start, end),
        sum(until - since for since, until in occupancy.gaps),
    )
    return Work(app, parts, free, cores, usable, idle_ms, start, end, own)


def _parts(stages: Sequence[StageAttempt], gaps: Iterable[tuple[float, float]]) -> list[Part]:
    """What to replay, in the order of its beginning."""
    begins = _busy_times(stages, gaps)
    return sorted((part for stage in stages for part in _parts_of(stage, begins)), key=lambda part: part.piece.began)


def _busy_times(stages: Sequence[StageAttempt], gaps: Iterable[tuple[float, float]]) -> list[float]:
    """When the application began to run tasks, at first and after each time without any."""
    first = min((min(stage.launched) for stage in stages), default=0)
    return [first, *(end for start, end in gaps if start > first and end - start >= IDLE_MS)]


def _parts_of(stage: StageAttempt, begins: Sequence[float]) -> Iterator[Part]:
    """The tasks of a stage by the busy times of the application."""
    launched, durations = stage.launched, stage.durations_ms
    order = sorted(range(len(launched)), key=launched.__getitem__)
    parents = tuple((parent, stage.info.attempt) for parent in stage.info.parents)
    submitted = min(stage.info.submitted or launched[order[0]], launched[order[0]])
    for number, group in groupby(order, key=lambda place: bisect.bisect_right(begins, launched[place])):
        own = array("q", group)  # lists would have four times the memory, for millions of tasks
        taken = array("q", [max(0, durations[place]) for place in own])
        ended = max(launched[place] + ms for place, ms in zip(own, taken, strict=True))
        key = (stage.info.id, stage.info.attempt), number
        piece = Piece(key, max(submitted, begins[number - 1]), ended, parents, taken)
        yield Part(piece, stage, own)

"""How long an application would have taken with other cores: its stages and tasks replayed on other slots.

Each stage begins as long after the stage that ended last before it as it did: the driver takes the same time. Its tasks
take the time that they took, one after another on the slots that are free. A time in which no task of the application
ran, as while it waits for an executor, is as long as it was, also within a stage. So what more cores change about a
task, such as its share of a disk or of memory, is not seen. The same replay on the slots that there were gives the
error of all.

After Sparklens (Qubole), which replays stages and tasks likewise and shows no error per application.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Occupancy
from spark_app.eventlog.replay.schedule import replay
from spark_app.eventlog.replay.work import Work, work

FACTORS: Final = (0.5, 2.0)


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
    error: float
    is_credible: bool


def what_if(app: Application, stages: Iterable[StageAttempt], held: Occupancy) -> WhatIf | None:
    """Replays the work of a period on other cores; None where `work` has none."""
    done = work(app, stages, held)
    return None if done is None else of_work(done)


def of_work(done: Work) -> WhatIf:
    """Replays work on other cores."""
    pieces = [part.piece for part in done.parts]
    others = [
        Replay(round(done.cores * factor), done.replayed(free=_scaled(done.free, factor)).ms)
        for factor in FACTORS
        if done.cores * factor >= 1
    ]
    unlimited = Replay(None, replay(pieces, None, done.start, done.end).ms)
    own = Replay(done.cores, done.own.ms)
    return WhatIf(done.cores, done.took_ms, own, (*others, unlimited), done.error, done.is_credible)


def _scaled(free: Sequence[float], factor: float) -> list[float]:
    """When each of so many times the slots is there, in milliseconds after the start."""
    count = max(1, round(len(free) * factor))
    return [free[int(index / factor)] for index in range(count)]

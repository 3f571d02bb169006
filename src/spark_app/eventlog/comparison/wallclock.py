"""Assigns the wall-clock time of an application: every millisecond belongs to the driver or to stage attempts.

While tasks run, their share of the slots (cores over `spark.task.cpus`) is work and the rest is idle. While no task
runs and a stage is submitted, its attempts wait. All other time belongs to the driver. The parts add up to the
duration, so the difference between two applications is the sum of the differences between their parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt

Key = tuple[int, int]
Change = tuple[int, Literal["cores", "slots", "begin", "end", "launch", "finish"], Key, int]
NO_STAGE: Final = (-1, -1)


@dataclass(slots=True)
class TimeShare:
    """The wall-clock time of a stage attempt, in milliseconds.

    Attributes:
        work: Time in which its tasks ran, multiplied by their share of the slots.
        idle: Time in which its tasks ran, multiplied by the share of the slots without a task.
        waiting: Time in which it was submitted and no task of any stage ran.
        gap: Time before its submission in which only the driver worked.
        blocking: The part of its work during which all tasks of another job waited for cores.
    """

    work: float = 0
    idle: float = 0
    waiting: float = 0
    gap: float = 0
    blocking: float = 0


@dataclass(slots=True)
class WallClock:
    """The wall-clock time of an application: `startup` before its first stage, stage attempts, `end` after the last.

    `core_ms` is the cores of the executors over time, however many of them a task takes.
    """

    startup: float = 0
    end: float = 0
    core_ms: float = 0
    parts: dict[Key, TimeShare] = field(default_factory=dict)


def wall_clock(app: Application) -> WallClock:
    """The wall-clock time of an application, from its start to its end or its last event."""
    clock = _Clock(app)
    changes = sorted(_changes(app), key=lambda change: change[0])
    for change in changes:
        clock.advance(change[0])
        clock.take(change)
    clock.advance(app.last)
    return clock.closed()


class _Clock:
    """The state of the application at a moment, and the assigned time until then."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._wall = WallClock(parts={key: TimeShare() for key in app.stages})
        self._now = app.began or 0
        self._gap = 0.0
        self._cores = self._slots = 0
        self._tasks = 0
        self._active: set[Key] = set()
        self._running: dict[Key, int] = dict.fromkeys(app.stages, 0)
        self._left = {key: len(stage.launched) for key, stage in app.stages.items()}
        self._owners = {key: _owner(app, stage) for key, stage in app.stages.items()}
        self._has_begun = False

    def advance(self, time: int) -> None:
        """Adds the time since the last change to the stage attempts, or to the driver."""
        passed, self._now = max(0, time - self._now), max(time, self._now)
        if not passed:
            return
        self._wall.core_ms += passed * self._cores
        if self._tasks:
            self._share_work(passed)
        elif self._active:
            for key in self._active:
                self._wall.parts[key].waiting += passed / len(self._active)
        else:
            self._gap += passed

    def take(self, change: Change) -> None:
        """Applies a change."""
        _, kind, key, number = change
        match kind:
            case "cores":
                self._cores += number
            case "slots":
                self._slots += number
            case "begin":
                self._active.add(key)
                self._end_gap(key)
            case "end":
                self._active.discard(key)
            case "launch":
                self._running[key] += 1
                self._left[key] -= 1
                self._tasks += 1
            case "finish":
                self._running[key] -= 1
                self._tasks -= 1

    def closed(self) -> WallClock:
        """The result, after the last change."""
        if self._has_begun:
            self._wall.end = self._gap
        else:
            self._wall.startup = self._gap
        return self._wall

    def _share_work(self, passed: int) -> None:
        slots = max(self._slots, self._tasks)  # some executors register late, or are missing in the log
        is_blocking = self._tasks >= slots and self._is_starved()
        for key, tasks in ((key, self._running[key]) for key in self._active | self._stragglers()):
            part = self._wall.parts[key]
            work = passed * tasks / slots
            part.work += work
            part.idle += passed * (slots - self._tasks) / slots * tasks / self._tasks
            part.blocking += work if is_blocking else 0

    def _stragglers(self) -> set[Key]:
        """Attempts that have ended while tasks still run: tasks of a failed stage, or speculative copies."""
        if sum(self._running[key] for key in self._active) == self._tasks:
            return set()
        return {key for key, tasks in self._running.items() if tasks and key not in self._active}

    def _is_starved(self) -> bool:
        """Whether a job has waiting tasks and no running one."""
        working = {self._owners[key] for key in self._active if self._running[key]}
        return any(self._left[key] and self._owners[key] not in working for key in self._active)

    def _end_gap(self, key: Key) -> None:
        if not self._has_begun:
            self._wall.startup, self._has_begun = self._gap, True
        else:
            self._wall.parts[key].gap += self._gap
        self._gap = 0


def _changes(app: Application) -> Iterator[Change]:
    for executor in app.executors.values():
        cores, slots = executor.cores, executor.cores // app.task_cpus
        yield executor.added, "cores", NO_STAGE, cores
        yield executor.added, "slots", NO_STAGE, slots
        if executor.removed is not None:
            yield executor.removed, "cores", NO_STAGE, -cores
            yield executor.removed, "slots", NO_STAGE, -slots
    for key, stage in app.stages.items():
        if stage.info.submitted is not None:
            yield stage.info.submitted, "begin", key, 0
            yield stage.info.completed or app.last, "end", key, 0
        for launched, duration in zip(stage.launched, stage.durations_ms, strict=True):
            yield launched, "launch", key, 0
            yield launched + duration, "finish", key, 0


def _owner(app: Application, stage: StageAttempt) -> tuple[str, int | None]:
    """The outermost query of a stage, or else its job."""
    query = app.query_of(app.job_of(stage))
    while query is not None and query.root in app.queries:
        query = app.queries[query.root]
    return ("job", stage.job) if query is None else ("query", query.id)

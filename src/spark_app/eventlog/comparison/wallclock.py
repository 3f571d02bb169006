"""Assigns the wall-clock time of an application: every millisecond belongs to the driver or to stage attempts.

While tasks run, their share of the slots (cores over `spark.task.cpus`) is work and the rest is idle. While no task
runs and a stage is submitted, its attempts wait. All other time belongs to the driver. The parts add up to the
duration, so the difference between two applications is the sum of the differences between their parts.
"""

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from spark_app.eventlog.comparison.profile import Wall
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.occupancy import Occupancy, Span, levels

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WallClock:
    """The wall-clock time of an application: `startup` before its first stage, stage attempts, `end` after the last.

    `core_ms` is the cores of the executors over time, however many of them a task takes.
    """

    startup: float
    end: float
    core_ms: float
    parts: dict[Key, Wall]


def wall_clock(app: Application) -> WallClock:
    """The wall-clock time of an application, from its start to its end or its last event."""
    began: float = app.began or 0
    period, stages = (began, max(began, app.last)), app.stages
    submitted = {key: _submitted(app, stage) for key, stage in stages.items() if stage.info.submitted is not None}
    occupancy = app.occupancy(stages.values(), period, others=(submitted.values(), _starved(app, period)))
    passed = _Passed(occupancy)
    parts = {key: passed.between(*stage.task_spans) for key, stage in stages.items()}
    order = sorted(submitted, key=lambda key: submitted[key][0])
    instants = began, *(submitted[key][0] for key in order), period[1]
    startup, *gaps = (passed.between((since, until, 1)).gap for since, until in pairwise(instants))
    for key in order:
        parts[key].waiting = passed.between(submitted[key]).waiting
    for key, gap in zip(order[1:], gaps, strict=False):
        parts[key].gap = gap
    return WallClock(startup, gaps[-1] if gaps else 0, occupancy.total(occupancy.cores), parts)


class _Passed:
    """What passes between two instants, as each running task, each submitted stage and the driver have it."""

    def __init__(self, occupancy: Occupancy) -> None:
        """Adds up the shares of the time, from each instant at which something changes to the next."""
        self._instants = occupancy.instants
        self._sums = [array("d", [0]) for _ in Wall.__struct_fields__]
        for step in zip(occupancy.lengths_ms, occupancy.slots, occupancy.tasks, *occupancy.others, strict=True):
            for sums, share in zip(self._sums, _shares(*step), strict=True):
                sums.append(sums[-1] + share)

    def between(self, *spans: Span) -> Wall:
        """The sums over some spans: work, idle time and blocking of tasks, the wait of a stage, the driver's gap."""
        ranges = [(self._index(since), self._index(until)) for since, until, _ in spans]
        return Wall(*(sum(sums[last] - sums[first] for first, last in ranges) for sums in self._sums))

    def _index(self, instant: float) -> int:
        return min(bisect_left(self._instants, instant), len(self._instants) - 1)


def _shares(
    ms: float, slots: int, tasks: int, submitted: int, starved: int
) -> tuple[float, float, float, float, float]:
    """Work, idle time, wait, gap and blocking of a stretch of time in which nothing changes."""
    if not tasks:
        return (0, 0, ms / submitted, 0, 0) if submitted else (0, 0, 0, ms, 0)
    slots = max(slots, tasks)  # some executors register late, or are missing in the log
    work = ms / slots
    return work, work * (slots - tasks) / tasks, 0, 0, work if starved and tasks == slots else 0


def _submitted(app: Application, stage: StageAttempt) -> Span:
    """From the submission of a stage attempt to its end."""
    return stage.info.submitted or 0, stage.info.completed or app.last, 1


def _starved(app: Application, period: tuple[float, float]) -> Iterator[Span]:
    """When a query, or a job without one, had tasks to run and none that ran."""
    owned = defaultdict[object, list[StageAttempt]](list)
    for stage in app.stages.values():
        if stage.info.submitted is not None and stage.launched:
            owned[_owner(app, stage)].append(stage)
    for stages in owned.values():
        lives = [(stage, *_submitted(app, stage)) for stage in stages]
        waiting = ((start, min(end, max(stage.launched)), 1) for stage, start, end, _ in lives)
        running = (
            (max(start, began), min(end, ended), 1)
            for stage, start, end, _ in lives
            for began, ended, _ in stage.task_spans
        )
        instants, (waits, runs) = levels(period, waiting, running)
        for span, has_waiting, has_running in zip(pairwise(instants), waits, runs, strict=True):
            if has_waiting and not has_running:
                yield (*span, 1)


def _owner(app: Application, stage: StageAttempt) -> tuple[str, int | None]:
    """The outermost query of a stage, or else its job."""
    query = app.query_of(app.job_of(stage))
    while query is not None and query.root in app.queries:
        query = app.queries[query.root]
    return ("job", stage.job) if query is None else ("query", query.id)

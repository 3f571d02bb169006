"""Executors: when they were added, removed and excluded, and cores and running tasks over time."""

from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model.exclusions import Exclusion
from spark_app.eventlog.model.executors import Executor
from spark_app.report.intervals import Interval
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope

BUCKETS: Final = 240


@dataclass(frozen=True, slots=True)
class Executors:
    """`cores` and `tasks` are means over equal parts of the time; `top` is the maximum of both.

    The lists hold as many as the report has room for; the totals count all.
    """

    shown: list[Executor]
    total: int
    cores: list[float]
    tasks: list[float]
    top: float
    unfinished: int
    start: float
    exclusions: list[Exclusion]
    exclusions_total: int

    def path(self, values: list[float]) -> str:
        """An SVG path: a stepped area in a chart 1000 wide and 100 high."""
        width, high = 1000 / max(1, len(values)), self.top or 1
        points = [f"V{100 - value / high * 100:.1f}H{(number + 1) * width:.1f}" for number, value in enumerate(values)]
        return "M0 100" + "".join(points) + "V100Z"


def executors(scope: Scope, limits: Limits) -> Executors:
    """The executors that were alive during the run or application, removed ones first.

    A task counts as running until the driver has its result, when its core works for the next one already: the running
    tasks are at most what the cores can run.
    """
    period = scope.period
    alive = [
        executor
        for executor in scope.app.executors.values()
        if executor.added <= period.end and (executor.removed is None or executor.removed >= period.start)
    ]
    occupied = scope.occupancy
    cores, slots, tasks = (occupied.means(each, BUCKETS) for each in (occupied.cores, occupied.slots, occupied.tasks))
    if any(slots):
        tasks = list(map(min, tasks, slots))
    unfinished = sum(max(0, stage.started - len(stage.durations_ms)) for stage in scope.stages)
    top = max([*cores, *tasks], default=0.0)
    shown = sorted(alive, key=lambda executor: (executor.removed is None, executor.added))[: limits.executors]
    excluded = [each for each in scope.app.exclusions if _is_within(each, period)]
    kept = excluded[: limits.executors]
    return Executors(shown, len(alive), cores, tasks, top, unfinished, period.start, kept, len(excluded))


def _is_within(exclusion: Exclusion, period: Interval) -> bool:
    return exclusion.started <= period.end and (exclusion.ended is None or exclusion.ended >= period.start)

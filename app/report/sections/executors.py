"""Executors over time: which came and went, how many cores there were, how many tasks were at work."""

from dataclasses import dataclass
from typing import Final

from app.eventlog.executor import Executor
from app.report import intervals
from app.report.limits import Limits
from app.report.scope import Scope

BUCKETS: Final = 240


@dataclass(frozen=True, slots=True)
class Executors:
    """`cores` and `tasks` are means over equal parts of the time; `top` is the most of either."""

    shown: list[Executor]
    total: int
    cores: list[float]
    tasks: list[float]
    top: float
    unfinished: int
    start: float

    def path(self, values: list[float]) -> str:
        """A stepped line over the chart, which is 1000 wide and 100 high."""
        width, high = 1000 / max(1, len(values)), self.top or 1
        points = [f"V{100 - value / high * 100:.1f}H{(number + 1) * width:.1f}" for number, value in enumerate(values)]
        return "M0 100" + "".join(points) + "V100Z"


def executors(scope: Scope, limits: Limits) -> Executors:
    """Those that were there in the time that a report is about."""
    period = scope.period
    there = [
        executor
        for executor in scope.app.executors.values()
        if executor.added <= period.end and (executor.removed is None or executor.removed >= period.start)
    ]
    cores = intervals.levels(intervals.of_cores(there, period.end), period, buckets=BUCKETS)
    tasks = intervals.levels(((task, 1) for task in intervals.of_tasks(scope.stages)), period, buckets=BUCKETS)
    running = sum(max(0, stage.started - len(stage.durations_ms)) for stage in scope.stages)
    top = max([*cores, *tasks], default=0.0)
    shown = sorted(there, key=lambda executor: (executor.removed is None, executor.added))[: limits.executors]
    return Executors(shown, len(there), cores, tasks, top, running, period.start)

"""Executors over time: when each was there, and the most memory that it used, as far as the log has it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.diagnoses.heap_use import executor_memory
from spark_app.eventlog.model.executors import Executor
from spark_app.eventlog.model.memory import MemorySample
from spark_app.eventlog.parse.events import Peaks
from spark_app.report import charts, formatting
from spark_app.report.charts import Chart, Step, Values
from spark_app.report.intervals import Interval
from spark_app.report.scope import Scope
from spark_app.report.sections.timeline import ticks

BUCKETS: Final = 240
LANE_BUCKETS: Final = 60
MAX_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Lane:
    """One executor on the axis of all, `charts.WIDTH` wide: when it was there, and its heap where that is known."""

    left: float
    width: float
    heap: str


@dataclass(frozen=True, slots=True)
class Highest:
    """The most heap that an executor was seen to use, and the stage that it ran then."""

    executor: Executor
    sample: MemorySample


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of the executors of a run or an application.

    Attributes:
        period: From its start to its end.
        limit: The heap that each executor could use, in bytes; None where the log does not say it.
        highest: Where most heap was used; None if no report of memory is in the log.
        charts: Of all executors, over time.
        ticks: As in the timeline.
    """

    period: Interval
    limit: int | None
    highest: Highest | None
    charts: list[Chart]
    ticks: list[tuple[float, float]]

    def lane(self, executor: Executor) -> Lane:
        """When an executor was there, and its heap in relation to the limit, or to the most of all executors."""
        gone = self.period.end if executor.removed is None else executor.removed
        left, right = (charts.across(time, self.period) for time in (executor.added, gone))
        top = self.limit or (self.highest.sample.peaks.heap if self.highest else None)
        heap = Values("heap", "stage", _steps(_within(executor, self.period), _heap, self.period, LANE_BUCKETS))
        paths = [series.path for series in charts.lines("heap", formatting.size, [heap], self.period, limit=top).series]
        return Lane(left, max(1.0, right - left), "".join(paths))


def memory(scope: Scope) -> Memory:
    """The memory of the executors of a run or an application, as their heartbeats reported it."""
    period, executors = scope.period, scope.app.executors.values()
    reports = [Highest(each, sample) for each in executors for sample in _within(each, period)]
    samples = [report.sample for report in reports]
    highest = max(reports, key=lambda report: report.sample.peaks.heap, default=None)
    limit = executor_memory(scope.app)
    drawn = [
        charts.lines("Heap", formatting.size, _values(samples, _ON_HEAP, period), period, limit=limit),
        charts.lines("Off-heap memory", formatting.size, _values(samples, _OFF_HEAP, period), period),
        charts.lines("Python workers", formatting.size, _values(samples, _PYTHON, period), period),
    ]
    shown = [chart for chart in drawn if chart.series]
    return Memory(period, limit, highest, shown, ticks(period.length, MAX_TICKS))


def _heap(peaks: Peaks) -> int:
    return peaks.heap


_Measure = tuple[str, str, Callable[[Peaks], int]]
_ON_HEAP: Final[list[_Measure]] = [
    ("used", "stage", _heap),
    ("execution", "step", lambda peaks: peaks.execution),
    ("storage", "query", lambda peaks: peaks.storage),
]
_OFF_HEAP: Final[list[_Measure]] = [
    ("execution", "step", lambda peaks: peaks.off_heap_execution),
    ("storage", "query", lambda peaks: peaks.off_heap_storage),
]
_PYTHON: Final[list[_Measure]] = [("resident", "job", lambda peaks: peaks.python)]


def _values(samples: list[MemorySample], measures: list[_Measure], period: Interval) -> Iterator[Values]:
    for name, colour, measure in measures:
        yield Values(name, colour, _steps(samples, measure, period, BUCKETS))


def _within(executor: Executor, period: Interval) -> Iterator[MemorySample]:
    for sample in executor.memory.samples:
        if sample.started <= period.end and sample.ended >= period.start:
            yield sample


def _steps(
    samples: Iterable[MemorySample], measure: Callable[[Peaks], int], period: Interval, buckets: int
) -> list[Step]:
    """The most in each of equally long parts of the time; none where 0 means not measured or not used."""
    width, highest = period.length / buckets or 1.0, dict[int, int]()
    for sample in samples:
        value = measure(sample.peaks)
        if value <= 0:
            continue
        first, last = (
            max(0, min(buckets - 1, int((time - period.start) / width))) for time in (sample.started, sample.ended)
        )
        for number in range(first, last + 1):
            highest[number] = max(highest.get(number, 0), value)
    return list(
        _joined(Step(period.start + n * width, period.start + (n + 1) * width, highest[n]) for n in sorted(highest))
    )


def _joined(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps of the same value that touch, as one."""
    before: Step | None = None
    for step in steps:
        if before is not None and (before.end, before.value) == (step.start, step.value):
            before = before._replace(end=step.end)
            continue
        if before is not None:
            yield before
        before = step
    if before is not None:
        yield before

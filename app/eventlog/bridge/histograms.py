"""Histograms of tasks, as counts by bucket: an instrument of the SDK would cost 10 µs for each value."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from app.eventlog.model import scheduler_delay_ms
from app.eventlog.parts import TaskInfo, TaskMetrics
from app.telemetry import spark_names as names
from app.telemetry.names import Metric

EXEMPLAR_MS: Final = 300_000
"""For how long the largest value is the exemplar before a smaller but newer one is: somebody looks for recent ones."""


class Exemplar(msgspec.Struct, array_like=True, frozen=True, order=True):
    """A value, with the span of the stage that its task belongs to; of two exemplars the greater one is kept."""

    window: int
    value: int
    time_ms: int
    span_id: int
    trace_id: str


class Histogram(msgspec.Struct, array_like=True):
    """Values of one kind in the unit of the log; the last count is of the values above all bounds."""

    counts: list[int]
    sum: int = 0
    least: int | None = None
    most: int | None = None
    exemplar: Exemplar | None = None

    def add(self, ordered: Sequence[int], bounds: Sequence[int]) -> None:
        """Adds values, least first; a bound is itself in the bucket below it, as OpenTelemetry has it."""
        if not ordered:
            return
        before = 0
        for bucket, bound in enumerate(bounds):
            upto = bisect_right(ordered, bound, before)
            self.counts[bucket] += upto - before
            before = upto
        self.counts[-1] += len(ordered) - before
        self.sum += sum(ordered)
        self._widen(ordered[0], ordered[-1])

    def merge(self, other: "Histogram") -> None:
        """Adds the values of another histogram of the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum
        if other.least is not None and other.most is not None:
            self._widen(other.least, other.most)
        if other.exemplar is not None:
            self.saw(other.exemplar)

    def saw(self, exemplar: Exemplar) -> None:
        """Keeps an exemplar if it is greater."""
        if self.exemplar is None or self.exemplar < exemplar:
            self.exemplar = exemplar

    def _widen(self, least: int, most: int) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)


@dataclass(frozen=True, slots=True)
class Measure:
    """What a histogram is filled with.

    Attributes:
        metric: Its entry in the catalogue.
        per_unit: How many of the log's units make one of the metric's.
        least: The smallest number that is a value; 1 where 0 stands for a task that has nothing of the kind.
        bounds: The bounds of the metric, in the log's unit.
    """

    metric: Metric
    per_unit: int
    least: int
    bounds: tuple[int, ...]

    def empty(self) -> Histogram:
        """A histogram without a value."""
        return Histogram([0] * (len(self.bounds) + 1))

    def values(self, found: list[int]) -> list[int]:
        """The numbers that are values, least first."""
        ordered = sorted(found)
        return ordered[bisect_left(ordered, self.least) :]


def _measure(metric: Metric, *, per_unit: int = 1, least: int) -> Measure:
    return Measure(metric, per_unit, least, tuple(round(bound * per_unit) for bound in metric.buckets))


Metered = Sequence[tuple[TaskInfo, TaskMetrics]]

DURATION: Final = _measure(names.TASK_DURATION, per_unit=1000, least=0)
"""Of each task; the others are of tasks that reported metrics."""

OF_METERED: Final[tuple[tuple[Measure, Callable[[Metered], list[int]]], ...]] = (
    (_measure(names.TASK_RUN_TIME, per_unit=1000, least=0), lambda tasks: [m.run_ms for _, m in tasks]),
    (_measure(names.TASK_CPU_TIME, per_unit=10**9, least=1), lambda tasks: [m.cpu_ns for _, m in tasks]),
    (_measure(names.TASK_GC_TIME, per_unit=1000, least=0), lambda tasks: [m.gc_ms for _, m in tasks]),
    (_measure(names.TASK_DELAY, per_unit=1000, least=0), lambda tasks: [scheduler_delay_ms(i, m) for i, m in tasks]),
    (_measure(names.TASK_SHUFFLE_READ, least=1), lambda tasks: [m.shuffle_read.bytes for _, m in tasks]),
    (_measure(names.TASK_SHUFFLE_WRITE, least=1), lambda tasks: [m.shuffle_write.bytes for _, m in tasks]),
    (_measure(names.TASK_SPILL, least=1), lambda tasks: [m.disk_spilled for _, m in tasks]),
    (_measure(names.TASK_INPUT, least=1), lambda tasks: [m.input.bytes for _, m in tasks]),
    (_measure(names.TASK_OUTPUT, least=1), lambda tasks: [m.output.bytes for _, m in tasks]),
)
PYTHON: Final = _measure(names.STAGE_PYTHON_TIME, per_unit=1000, least=1)
"""Of each stage attempt in which SQL called Python; Spark writes it from 4.0 on."""
_ALL: Final = (DURATION, PYTHON, *(measure for measure, _ in OF_METERED))
MEASURES: Final = {measure.metric.name: measure for measure in _ALL}

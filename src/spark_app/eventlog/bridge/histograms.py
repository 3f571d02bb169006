"""Histograms and sums of tasks, in the units of the log: an instrument of the SDK would cost 10 µs for each value."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from spark_app.eventlog.model.task_numbers import NUMBERS, unit_of
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import STREAM_BATCH_DURATION, Metric

EXEMPLAR_MS: Final = 300_000
"""How long the largest value stays the exemplar; then a smaller but newer one replaces it."""


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
        self.counts = [count + more for count, more in zip(self.counts, other.counts, strict=True)]
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
        bounds: The bounds of the metric, in the log's unit.
    """

    metric: Metric
    per_unit: int
    bounds: tuple[int, ...]

    def empty(self) -> Histogram:
        """A histogram without a value."""
        return Histogram([0] * (len(self.bounds) + 1))


def _measure(metric: Metric, *, per_unit: int) -> Measure:
    return Measure(metric, per_unit, tuple(round(bound * per_unit) for bound in metric.buckets))


DURATION: Final = _measure(names.TASK_DURATION, per_unit=1000)
MEASURES: Final = {measure.metric.name: measure for measure in (DURATION,)}
"""The histograms of stage groups."""
BATCH_DURATION: Final = _measure(STREAM_BATCH_DURATION, per_unit=1000)
"""The histogram of streaming queries."""

COUNTED: Final[Mapping[str, Metric]] = {name: each.metric for name, each in NUMBERS.items() if each.metric is not None}
"""The counters of tasks by the names of their numbers: those of stage groups have labels, the others are of an
application. Only durations have buckets: each further histogram would be 20 series a group."""
PER_UNIT: Final = {metric.name: unit_of(name) for name, metric in COUNTED.items()} | {
    metric.name: 1000 for metric in (names.STAGE_PYTHON_TIME, names.STAGE_LONGEST_TASK, names.STAGE_MEDIAN_TASK)
}
"""How many of the log's units make one of a counter's; 1 where it is absent."""

"""Makes instruments from the catalogue, so that a recording call names an entry and never a string."""

from collections.abc import Mapping
from typing import assert_never

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from app.telemetry.names import SCOPE, Attribute, Metric

Instrument = Counter | Histogram | Gauge
Labels = Mapping[Attribute, str]


class Measurements:
    """What one run measures: each instrument is made when it is first used, and counts what was not collected yet.

    Deltas, because the next process starts at nothing: a collector adds them up. Each run has measurements of its own,
    or the gauges of one run would be told again by the next.
    """

    def __init__(self, resource: Resource) -> None:
        """Nothing is measured yet."""
        self._reader = InMemoryMetricReader(dict.fromkeys((sdk.Counter, sdk.Histogram), AggregationTemporality.DELTA))
        self._provider = sdk.MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self._meter = self._provider.get_meter(SCOPE)
        self.made: dict[Metric, Instrument] = {}

    def new(self) -> MetricsData | None:
        """What was measured since the last time; None if nothing was."""
        return self._reader.get_metrics_data()

    def record(self, metric: Metric, value: float, labels: Labels) -> None:
        """Adds to a counter, observes in a histogram or sets a gauge.

        Raises:
            ValueError: The labels are not exactly those of the catalogue.
        """
        if set(labels) != set(metric.labels):
            expected, found = (", ".join(label.name for label in side) for side in (metric.labels, labels))
            raise ValueError(f"metric {metric.name} has labels {expected}; found {found}")
        attributes = {label.name: text for label, text in labels.items()}
        match self._instrument(metric):
            case Counter() as counter:
                counter.add(value, attributes)
            case Histogram() as histogram:
                histogram.record(value, attributes)
            case gauge:
                gauge.set(value, attributes)

    def _instrument(self, metric: Metric) -> Instrument:
        if metric not in self.made:
            self.made[metric] = made(self._meter, metric)
        return self.made[metric]


def made(meter: Meter, metric: Metric) -> Instrument:
    """A new instrument of the kind, name, unit and meaning of a catalogue entry."""
    match metric.kind:
        case "counter":
            return meter.create_counter(metric.name, metric.unit, metric.meaning)
        case "gauge":
            return meter.create_gauge(metric.name, metric.unit, metric.meaning)
        case "histogram":
            return meter.create_histogram(
                metric.name, metric.unit, metric.meaning, explicit_bucket_boundaries_advisory=metric.buckets
            )
    assert_never(metric.kind)

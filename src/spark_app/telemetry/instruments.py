"""Instruments of the catalogue: a recording call names an entry and never a string."""

from collections.abc import Mapping
from typing import Final, assert_never

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk import metrics as sdk
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from spark_app.vocabulary.names import APPLICATION, SCOPE, Attribute, Metric

Instrument = Counter | Histogram | Gauge
Labels = Mapping[Attribute, str]
QUERIES: Final = "streaming."
"""What the names of pipelines that are streaming queries begin with."""


def resource_of_series(resource: Resource, pipeline: str) -> Resource:
    """The resource of the metrics of a pipeline: that of the process, without the application unless it is a query.

    A pipeline is one series, whichever command ran it: `etl`, or `ml`, which runs the days that it trains on. In a
    second series its counters would begin anew, which is no increase. A query is run by one command, and is told apart
    by its application from queries of other programs.
    """
    if pipeline.startswith(QUERIES):
        return resource
    kept = {name: value for name, value in resource.attributes.items() if name != APPLICATION.name}
    return Resource(kept, resource.schema_url)


class Measurements:
    """The metrics of one run; an instrument is created when it is first used.

    Counters and histograms are deltas, because each process starts at zero: a collector adds them up. A gauge is
    exported once for each time it is set, not again in every collection.
    """

    def __init__(self, resource: Resource) -> None:
        """No instrument exists."""
        kinds = (sdk.Counter, sdk.Histogram, sdk._Gauge)
        self._reader = InMemoryMetricReader(dict.fromkeys(kinds, AggregationTemporality.DELTA))
        self._provider = sdk.MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self._meter = self._provider.get_meter(SCOPE)
        self._instruments: dict[Metric, Instrument] = {}

    def collect(self) -> MetricsData | None:
        """The points recorded since the last collection; None without any."""
        return self._reader.get_metrics_data()

    def record(self, metric: Metric, value: float, labels: Labels) -> None:
        """Adds to a counter, observes in a histogram or sets a gauge.

        Raises:
            ValueError: The labels are not exactly those of the catalogue.
        """
        if set(labels) != set(metric.labels):
            expected, given = (", ".join(label.name for label in side) for side in (metric.labels, labels))
            raise ValueError(f"metric {metric.name} has the labels {expected}; it was recorded with {given}")
        attributes = {label.name: text for label, text in labels.items()}
        match self._instrument(metric):
            case Counter() as counter:
                counter.add(value, attributes)
            case Histogram() as histogram:
                histogram.record(value, attributes)
            case gauge:
                gauge.set(value, attributes)

    def _instrument(self, metric: Metric) -> Instrument:
        if metric not in self._instruments:
            self._instruments[metric] = instrument(self._meter, metric)
        return self._instruments[metric]


def instrument(meter: Meter, metric: Metric) -> Instrument:
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

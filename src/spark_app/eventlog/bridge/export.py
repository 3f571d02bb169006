"""Converts spans and metrics of event logs to the types of the OpenTelemetry SDK, with derived ids.

It uses no tracer and no meter, which would generate ids and read the clock.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from spark_app.eventlog.bridge.histograms import BATCH_DURATION, MEASURES, PER_UNIT, Exemplar, Histogram, Measure
from spark_app.eventlog.bridge.metrics import Aggregate, Numbers, QueryNumbers, Series
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.labels import name_and_attributes
from spark_app.eventlog.spans import SparkSpan
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Attribute, Metric

NANOSECONDS: Final = 1_000_000
"""Nanoseconds of a millisecond, the unit of event logs."""
MAX_POINTS: Final = 2000
"""Approximate points of one request: gRPC receivers accept 4 MiB, a histogram point has up to 1 KiB."""
FRESH_SECONDS: Final = 300.0
"""How long the state of a streaming query is sent after it was last known: as long as Prometheus shows a sample."""
_METRICS: Final = {metric.name: metric for metric in (*names.METRICS, *spark_names.METRICS)}
_SCOPE: Final = InstrumentationScope(names.SCOPE)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_MAX_DROPPED: Final = 2**32 - 1
"""The number of dropped links has 32 bits in OTLP."""


@functools.lru_cache(maxsize=1000)
def resource_of(labelled_name: str, *, environment: str, instance: str = names.BATCH_INSTANCE_ID) -> Resource:
    """The application as a resource, with its labels.

    `OTEL_RESOURCE_ATTRIBUTES` adds to it, and goes before `environment`, but not before its labels. `OTEL_SERVICE_NAME`
    is left out: it names the program that reads the log, not the one that wrote it.

    Args:
        labelled_name: The name of the application, with its labels.
        environment: The deployment environment, unless an OTEL variable names another.
        instance: Who counts, where totals are sent: two bridges have a series each, which add up.
    """
    application, labels = name_and_attributes(labelled_name)
    attributes = labels | {
        names.SERVICE_NAME.name: application,
        names.SERVICE_INSTANCE_ID.name: instance,
        names.APPLICATION.name: application,
    }
    return Resource({names.ENVIRONMENT.name: environment}).merge(Resource.create(attributes))


def sdk_spans(spans: Iterable[SparkSpan], resource: Resource) -> list[ReadableSpan]:
    """Spans as a tracer would end them, but with the derived ids."""
    return [_sdk_span(span, resource) for span in spans]


def _sdk_span(span: SparkSpan, resource: Resource) -> ReadableSpan:
    ids, ended = span.ids, span.ended * NANOSECONDS
    parent = None if ids.parent_id is None else _context(ids.trace_id, ids.parent_id, is_remote=True)
    return ReadableSpan(
        name=span.name,
        context=_context(ids.trace_id, ids.span_id, is_remote=False),
        parent=parent,
        resource=resource,
        attributes=span.attributes,
        events=[*_exceptions(span), *(_finding(finding, ended) for finding in span.findings)],
        links=_links(span),
        status=_status(span),
        start_time=span.started * NANOSECONDS,
        end_time=ended,
        instrumentation_scope=_SCOPE,
    )


def _context(trace_id: int, span_id: int, *, is_remote: bool) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, _SAMPLED)


def _links(span: SparkSpan) -> BoundedList[Link]:
    """Links to spans of other programs, and the number of those that were left out."""
    contexts = (
        SpanContext(link.trace_id, link.span_id, is_remote=True, trace_flags=TraceFlags(link.flags))
        for link in span.links
    )
    links = BoundedList.from_seq(max(1, len(span.links)), map(Link, contexts))
    links.dropped = min(span.links_left_out, _MAX_DROPPED)
    return links


def _status(span: SparkSpan) -> Status:
    if span.failure is None:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, span.failure.type or span.failure.message or None)


def _exceptions(span: SparkSpan) -> Iterator[Event]:
    """The exception of a failed span, if it is known."""
    if span.failure is not None and (span.failure.type or span.failure.message):
        known = {names.EXCEPTION_TYPE: span.failure.type, names.EXCEPTION_MESSAGE: span.failure.message}
        attributes = {attribute.name: text for attribute, text in known.items() if text}
        yield Event(names.EXCEPTION_EVENT, attributes, span.ended * NANOSECONDS)


def _finding(finding: Finding, time: int) -> Event:
    known: dict[Attribute, str | float | None] = {
        spark_names.RULE: finding.rule,
        spark_names.SEVERITY: finding.severity,
        spark_names.FINDING_TEXT: finding.text,
        spark_names.FINDING_ADVICE: finding.advice,
        spark_names.FINDING_COST: None if finding.cost_ms is None else float(finding.cost_ms),
        spark_names.FINDING_OPERATOR: finding.operator,
        spark_names.FINDING_NUMBERS: msgspec.json.encode(finding.numbers).decode() if finding.numbers else None,
    }
    attributes = {attribute.name: value for attribute, value in known.items() if value is not None}
    return Event(spark_names.FINDING_EVENT, attributes, time)


@dataclass(frozen=True, slots=True)
class Window:
    """The interval of metric points.

    Attributes:
        started_ns, ended_ns: Nanoseconds since the epoch.
        is_delta: Whether the counts are new since the start; else they are totals, which never decrease.
    """

    started_ns: int
    ended_ns: int
    is_delta: bool

    @property
    def instance(self) -> str:
        """Who counts: deltas of all processes add up in one series, and totals are those of a checkpoint."""
        return names.BATCH_INSTANCE_ID if self.is_delta else f"bridge-{self.started_ns}"

    @property
    def temporality(self) -> AggregationTemporality:
        """The temporality for the SDK."""
        return AggregationTemporality.DELTA if self.is_delta else AggregationTemporality.CUMULATIVE


def metrics_data(aggregate: Aggregate, window: Window, *, environment: str) -> Iterator[MetricsData]:
    """Totals as requests that receivers accept by their size; each application is a resource."""
    waiting: list[sdk.ResourceMetrics] = []
    size = 0
    for application, numbers in aggregate.applications.items():
        metrics = _metrics(numbers, window)
        size += sum(len(metric.data.data_points) for metric in metrics)
        scope = sdk.ScopeMetrics(_SCOPE, metrics, "")
        resource = resource_of(application, environment=environment, instance=window.instance)
        waiting.append(sdk.ResourceMetrics(resource, [scope], ""))
        if size >= MAX_POINTS:
            yield MetricsData(waiting)
            waiting, size = [], 0
    if waiting:
        yield MetricsData(waiting)


def _metrics(numbers: Numbers, window: Window) -> list[sdk.Metric]:
    """The metrics of one application."""
    points_by_metric: dict[Metric, list[Any]] = {}
    for metric, point in _points(numbers, window):
        points_by_metric.setdefault(metric, []).append(point)
    return [_metric(metric, points, window) for metric, points in points_by_metric.items()]


def _points(numbers: Numbers, window: Window) -> Iterator[tuple[Metric, Any]]:
    """The points of each metric; deltas have no gauges of the application, because it has ended."""
    for name, group in numbers.groups.items():
        labels = {spark_names.STAGE_GROUP.name: name}
        for metric, histogram in group.histograms.items():
            yield MEASURES[metric].metric, _histogram(MEASURES[metric], histogram, labels, window)
        for metric, count in group.counts.items():
            yield _METRICS[metric], _number(metric, count, labels, window)
    for key, count in numbers.counts.items():
        yield _labelled(key, (), count, window)
    for metric, level in numbers.levels.items() if not window.is_delta else ():
        yield _labelled((metric,), (), level, window)
    for name, query in numbers.queries.items():
        yield from _of_query(name, query, window)


def _of_query(name: str, query: QueryNumbers, window: Window) -> Iterator[tuple[Metric, Any]]:
    if sum(query.durations.counts) or not window.is_delta:
        labels = {names.PIPELINE.name: name}
        yield BATCH_DURATION.metric, _histogram(BATCH_DURATION, query.durations, labels, window)
    status = query.status
    is_fresh = status is not None and window.ended_ns / 1e9 - status.known_at <= FRESH_SECONDS
    values = dict(query.counts)
    if status is not None and is_fresh:
        values |= status.levels
        values[names.STREAM_STATE_TIME.name, status.state] = status.known_at
        for state in names.STREAM_STATES:
            values[names.STREAM_STATE_NOW.name, state] = float(state == status.state)
    for key, value in values.items():
        yield _labelled(key, (name,), value, window)


def _labelled(key: Series, first: tuple[str, ...], value: float, window: Window) -> tuple[Metric, Any]:
    """The point of a series by its metric and the values of its labels, in the order of the catalogue."""
    metric = _METRICS[key[0]]
    labels = dict(zip((label.name for label in metric.labels), (*first, *key[1:]), strict=True))
    return metric, _number(metric.name, value, labels, window)


def _metric(metric: Metric, points: list[Any], window: Window) -> sdk.Metric:
    data: sdk.DataT
    match metric.kind:
        case "histogram":
            data = sdk.Histogram(points, window.temporality)
        case "counter":
            data = sdk.Sum(points, window.temporality, is_monotonic=True)
        case "gauge":
            data = sdk.Gauge(points)
    return sdk.Metric(metric.name, metric.meaning, metric.unit, data)


def _number(metric: str, value: float, labels: Mapping[str, str], window: Window) -> sdk.NumberDataPoint:
    per_unit = PER_UNIT.get(metric)
    in_unit = value if per_unit is None else value / per_unit
    return sdk.NumberDataPoint(labels, window.started_ns, window.ended_ns, in_unit)


def _histogram(
    measure: Measure, histogram: Histogram, labels: Mapping[str, str], window: Window
) -> sdk.HistogramDataPoint:
    def in_unit(value: int | None) -> float:
        return (value or 0) / measure.per_unit

    return sdk.HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=window.started_ns,
        time_unix_nano=window.ended_ns,
        count=sum(histogram.counts),
        sum=in_unit(histogram.sum),
        bucket_counts=histogram.counts,
        explicit_bounds=measure.metric.buckets,
        min=in_unit(histogram.least),
        max=in_unit(histogram.most),
        exemplars=[_exemplar(histogram.exemplar, in_unit)] if histogram.exemplar else [],
    )


def _exemplar(exemplar: Exemplar, in_unit: Callable[[int | None], float]) -> SdkExemplar:
    time, trace = exemplar.time_ms * NANOSECONDS, int(exemplar.trace_id, 16)
    return SdkExemplar({}, in_unit(exemplar.value), time, exemplar.span_id, trace)

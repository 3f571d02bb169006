"""Metrics and log records of the files of a run, as exporters take them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.proto_json.logs.v1.logs import LogRecord as StoredLogRecord
from opentelemetry.proto_json.logs.v1.logs import LogsData
from opentelemetry.proto_json.metrics.v1 import metrics as stored
from opentelemetry.sdk._logs import LogRecordLimits, ReadableLogRecord
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import TraceFlags

from spark_app.telemetry.run_files_reader import attributes_of

_LIMITS: Final = LogRecordLimits()


def metrics_of(line: bytes) -> MetricsData:
    """The metrics of one collection.

    Raises:
        ValueError: The line holds no metrics.
    """
    groups = stored.MetricsData.from_json(line).resource_metrics
    return MetricsData([_resource_metrics(group) for group in groups])


def parts_of(metrics: MetricsData, now_ns: int) -> list[MetricsData]:
    """Counters and histograms as if collected now, and gauges with their times: a later run may have set a newer value.

    They are two requests: Prometheus refuses a whole request, counters included, for one gauge that is too old.
    """
    counts = _kept(metrics, lambda metric: None if isinstance(metric.data, sdk.Gauge) else _at(metric, now_ns))
    gauges = _kept(metrics, lambda metric: metric if isinstance(metric.data, sdk.Gauge) else None)
    return [part for part in (counts, gauges) if part.resource_metrics]


def logs_of(line: bytes) -> Iterator[ReadableLogRecord]:
    """The log records of a line.

    Raises:
        ValueError: The line holds no log records.
    """
    for group in LogsData.from_json(line).resource_logs:
        resource = Resource(attributes_of(group.resource.attributes if group.resource else []))
        for scope in group.scope_logs:
            name = InstrumentationScope((scope.scope and scope.scope.name) or "")
            for record in scope.log_records:
                yield ReadableLogRecord(_log_record(record), resource, name, _LIMITS)


def _resource_metrics(group: stored.ResourceMetrics) -> sdk.ResourceMetrics:
    resource = Resource(attributes_of(group.resource.attributes if group.resource else []))
    scopes = [
        sdk.ScopeMetrics(
            InstrumentationScope((scope.scope and scope.scope.name) or ""),
            [_metric(each) for each in scope.metrics],
            "",
        )
        for scope in group.scope_metrics
    ]
    return sdk.ResourceMetrics(resource, scopes, "")


def _metric(metric: stored.Metric) -> sdk.Metric:
    data: sdk.DataT
    if metric.sum is not None:
        temporality = AggregationTemporality(int(metric.sum.aggregation_temporality or 0))
        data = sdk.Sum(list(map(_number, metric.sum.data_points)), temporality, bool(metric.sum.is_monotonic))
    elif metric.histogram is not None:
        temporality = AggregationTemporality(int(metric.histogram.aggregation_temporality or 0))
        data = sdk.Histogram(list(map(_histogram, metric.histogram.data_points)), temporality)
    elif metric.gauge is not None:
        data = sdk.Gauge(list(map(_number, metric.gauge.data_points)))
    else:
        raise ValueError(f"metric {metric.name} is of a kind that runs do not write")
    return sdk.Metric(metric.name or "", metric.description, metric.unit, data)


def _number(point: stored.NumberDataPoint) -> sdk.NumberDataPoint:
    value = point.as_int if point.as_int is not None else point.as_double or 0.0
    times = (point.start_time_unix_nano or 0, point.time_unix_nano or 0)
    return sdk.NumberDataPoint(attributes_of(point.attributes), *times, value)


def _histogram(point: stored.HistogramDataPoint) -> sdk.HistogramDataPoint:
    return sdk.HistogramDataPoint(
        attributes=attributes_of(point.attributes),
        start_time_unix_nano=point.start_time_unix_nano or 0,
        time_unix_nano=point.time_unix_nano or 0,
        count=point.count or 0,
        sum=point.sum or 0.0,
        bucket_counts=point.bucket_counts,
        explicit_bounds=point.explicit_bounds,
        min=point.min or 0.0,
        max=point.max or 0.0,
    )


def _at(metric: sdk.Metric, now_ns: int) -> sdk.Metric:
    points: list[Any] = [
        replace(point, start_time_unix_nano=now_ns - 1_000_000, time_unix_nano=now_ns)
        for point in metric.data.data_points
    ]
    data: Any = metric.data
    return replace(metric, data=replace(data, data_points=points))


def _kept(metrics: MetricsData, keep: Callable[[sdk.Metric], sdk.Metric | None]) -> MetricsData:
    """The metrics that are kept, without resources that have none."""
    groups = []
    for group in metrics.resource_metrics:
        scopes = [replace(scope, metrics=list(filter(None, map(keep, scope.metrics)))) for scope in group.scope_metrics]
        if any(scope.metrics for scope in scopes):
            groups.append(replace(group, scope_metrics=scopes))
    return MetricsData(groups)


def _log_record(record: StoredLogRecord) -> LogRecord:
    return LogRecord(
        timestamp=record.time_unix_nano or 0,
        observed_timestamp=record.observed_time_unix_nano or 0,
        trace_id=int.from_bytes(record.trace_id or b""),
        span_id=int.from_bytes(record.span_id or b""),
        trace_flags=TraceFlags((record.flags or 0) & 0xFF),
        severity_number=SeverityNumber(int(record.severity_number or 0)),
        severity_text=record.severity_text or None,
        body=(record.body and record.body.string_value) or "",
        attributes=attributes_of(record.attributes),
    )

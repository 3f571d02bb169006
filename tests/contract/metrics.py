"""The names of series in Prometheus: those of the catalogue, translated, and those that other programs make."""

import re
from collections.abc import Iterator
from typing import Any, Final

import promql_parser

from app.telemetry import names, spark_names
from app.telemetry.names import Metric

UNIT_SUFFIXES: Final = {"s": "seconds", "By": "bytes", "1": ""}
HISTOGRAM_SUFFIXES: Final = ("_bucket", "_sum", "_count")

# Of Prometheus about its targets, of span_metrics in the collector, and of the collector, which adds no `_total`.
_ANY: Final = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "target_info", "ALERTS", "ALERTS_FOR_STATE"}
_SPANS: Final = {
    "traces_span_metrics_calls_total",
    *(f"traces_span_metrics_duration_seconds{suffix}" for suffix in HISTOGRAM_SUFFIXES),
}
_SIGNALS: Final = ("spans", "metric_points", "log_records")
_COLLECTOR: Final = {
    *(f"otelcol_receiver_{what}_{signal}" for what in ("accepted", "refused", "failed") for signal in _SIGNALS),
    *(f"otelcol_exporter_{what}_{signal}" for what in ("sent", "send_failed", "enqueue_failed") for signal in _SIGNALS),
    *(f"otelcol_processor_{what}_items" for what in ("incoming", "outgoing")),
    *(f"otelcol_scraper_{what}_metric_points" for what in ("scraped", "errored")),
    *(f"otelcol_deltatocumulative_{what}" for what in ("datapoints", "streams_tracked", "streams_limit")),
    *(f"otelcol_process_{what}" for what in ("uptime", "cpu_seconds", "memory_rss", "runtime_heap_alloc_bytes")),
    "otelcol_exporter_queue_size",
    "otelcol_exporter_queue_capacity",
    "otelcol_exporter_in_flight_requests",
}
# Of Spark's master and workers, with the names that prometheus/scrape/spark.yml gives them.
_HEAP: Final = {f"metrics_jvm_heap_{what}_Number" for what in ("used", "committed", "max", "usage")}
_SPARK: Final = _HEAP | {
    *(f"metrics_master_{what}_Number" for what in ("workers", "aliveWorkers", "apps", "waitingApps")),
    *(f"metrics_worker_{what}_Number" for what in ("executors", "coresUsed", "coresFree", "memUsed_MB", "memFree_MB")),
    "metrics_application_cores_Number",
    "metrics_application_runtime_ms_Number",
    "metrics_jvm_gc_time_Number",
    "metrics_jvm_gc_count_Number",
}
# Of kafka_metrics in the collector: a gauge of its without a unit gets `_ratio`, though it is a number of messages.
_KAFKA: Final = {
    "kafka_brokers",
    "kafka_topic_partitions",
    "kafka_partition_current_offset_ratio",
    "kafka_partition_oldest_offset_ratio",
    "kafka_partition_replicas",
    "kafka_partition_replicas_in_sync",
    "kafka_consumer_group_lag_ratio",
    "kafka_consumer_group_lag_sum_ratio",
    "kafka_consumer_group_members",
}
_PROMETHEUS: Final = {
    "prometheus_tsdb_head_series",
    "prometheus_tsdb_storage_blocks_bytes",
    "prometheus_tsdb_exemplar_exemplars_in_storage",
    "prometheus_rule_evaluation_failures_total",
    "prometheus_notifications_dropped_total",
    "alertmanager_alerts",
    "alertmanager_notifications_total",
    "alertmanager_notifications_failed_total",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
}

_JAEGER: Final = {
    "otelcol_receiver_accepted_spans_total",
    "otelcol_receiver_refused_spans_total",
    "otelcol_exporter_sent_spans_total",
    "otelcol_process_memory_rss_bytes",
    "otelcol_process_cpu_seconds_total",
}

# Of the bridge about itself (app/eventlog/bridge/selfmetrics.py).
_BRIDGE: Final = {
    *(f"spark_bridge_{what}_total" for what in ("events", "unreadable_lines", "lost_files", "tasks_suppressed")),
    *(f"spark_bridge_spans_{what}_total" for what in ("sent", "dropped", "suppressed")),
    *(f"spark_bridge_{what}" for what in ("spans_waiting", "logs_followed", "unread_bytes", "lag_seconds")),
    "spark_bridge_silence_seconds",
    *(f"spark_bridge_volume_{what}_bytes" for what in ("free", "size")),
    "spark_bridge_export_failures_total",
}

THIRD_PARTY: Final[frozenset[str]] = frozenset(
    _ANY | _BRIDGE | _JAEGER | _SPANS | _COLLECTOR | _SPARK | _KAFKA | _PROMETHEUS
)
"""What other programs tell, at the versions of .env: from their answers, Kafka's from the collector's source."""


def catalogued() -> set[str]:
    """The names of all series that the metrics of the catalogue become."""
    return {name for metric in (*names.METRICS, *spark_names.METRICS) for name in series(metric)}


def series(metric: Metric) -> list[str]:
    """The names of the series of one metric: three for a histogram, one for any other."""
    name = translated(metric)
    return [name + suffix for suffix in HISTOGRAM_SUFFIXES] if metric.kind == "histogram" else [name]


def translated(metric: Metric) -> str:
    """A metric's name as Prometheus makes it of OTLP (UnderscoreEscapingWithSuffixes).

    A unit that the name has already as a word is not added again.
    """
    words = re.split(r"[._]", metric.name)
    unit = "" if metric.unit.startswith("{") else UNIT_SUFFIXES[metric.unit]
    if unit and unit not in words:
        words.append(unit)
    if metric.kind == "counter":
        words.append("total")
    if metric.kind == "gauge" and metric.unit == "1":
        words.append("ratio")
    return "_".join(words)


def names_in(expression: str) -> set[str]:
    """The names of the series that a PromQL expression reads.

    Raises:
        ValueError: It is no PromQL, its types do not fit, or it selects series without saying of which name.
    """
    return {_name(selector) for selector in selectors(promql_parser.parse(expression))}


def selectors(expression: Any) -> Iterator[Any]:
    """The vector selectors of a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression
    for part in _parts(expression):
        yield from selectors(part)


def _parts(expression: Any) -> list[Any]:
    match expression:
        case promql_parser.MatrixSelector():
            return [expression.vector_selector]
        case promql_parser.Call():
            return list(expression.args)
        case promql_parser.BinaryExpr():
            return [expression.lhs, expression.rhs]
        case promql_parser.AggregateExpr():
            return [expression.expr, *([] if expression.param is None else [expression.param])]
        case promql_parser.ParenExpr() | promql_parser.SubqueryExpr() | promql_parser.UnaryExpr():
            return [expression.expr]
    return []


def _name(selector: Any) -> str:
    if not selector.name:
        raise ValueError(f"a selector without a name: {selector.prettify()}")
    return str(selector.name)

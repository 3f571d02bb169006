"""The names of series in Prometheus: those of the catalogue, translated, and those of other programs."""

import re
from collections.abc import Iterator
from typing import Any, Final

import promql_parser

from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Metric

UNIT_SUFFIXES: Final = {"s": "seconds", "By": "bytes", "1": "", "{row}/s": "per_second"}
HISTOGRAM_SUFFIXES: Final = ("_bucket", "_sum", "_count")

# Of Prometheus about its targets, of span_metrics, and of the collector, which adds no `_total`.
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
    "otelcol_elasticsearch_docs_processed",
}
# Of the Spark master and workers, as prometheus/scrape/spark.yml renames them.
_HEAP: Final = {f"metrics_jvm_heap_{what}_Number" for what in ("used", "committed", "max", "usage")}
_SPARK: Final = _HEAP | {
    *(f"metrics_master_{what}_Number" for what in ("workers", "aliveWorkers", "apps", "waitingApps")),
    *(f"metrics_worker_{what}_Number" for what in ("executors", "coresUsed", "coresFree", "memUsed_MB", "memFree_MB")),
    "metrics_application_cores_Number",
    "metrics_application_runtime_ms_Number",
    "metrics_jvm_gc_time_Number",
    "metrics_jvm_gc_count_Number",
}
# Of kafka_metrics in the collector: its gauges without a unit get `_ratio`, although they count messages.
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
# Of config/probe/probe.sh.
_PROBE: Final = {"probe_success", "probe_timestamp_seconds"}
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


def catalogued() -> set[str]:
    """The series that runs and the bridge export over OTLP."""
    return {name for metric in (*names.METRICS, *spark_names.METRICS) for name in series(metric)}


def series(metric: Metric) -> list[str]:
    """The names of the series of one metric: three for a histogram, one for any other."""
    name = translated(metric)
    return [name + suffix for suffix in HISTOGRAM_SUFFIXES] if metric.kind == "histogram" else [name]


def translated(metric: Metric) -> str:
    """The name of a metric after Prometheus translates it from OTLP (UnderscoreEscapingWithSuffixes).

    It adds no unit that the name has already as a word.
    """
    words = re.split(r"[._]", metric.name)
    unit = "" if metric.unit.endswith("}") else UNIT_SUFFIXES[metric.unit]
    if unit and unit not in words:
        words.append(unit)
    if metric.kind == "counter":
        words.append("total")
    if metric.kind == "gauge" and metric.unit == "1":
        words.append("ratio")
    return "_".join(words)


SCRAPED: Final[frozenset[str]] = frozenset(
    _ANY
    | _JAEGER
    | _SPANS
    | _COLLECTOR
    | _SPARK
    | _KAFKA
    | _PROBE
    | _PROMETHEUS
    | set(map(translated, spark_names.BRIDGE_METRICS))
)
"""The series of running processes: those of the bridge, and those of other programs at the versions of .env."""


def names_in(expression: str) -> set[str]:
    """The names of the series that a PromQL expression reads.

    Raises:
        ValueError: It is no valid PromQL, or a selector has no metric name.
    """
    return {_name(selector) for selector in selectors(parsed(expression))}


def parsed(expression: str) -> Any:
    """A parsed expression; the parser does not know the modifier `anchored`, which changes no selector.

    Raises:
        ValueError: It is no valid PromQL.
    """
    return promql_parser.parse(expression.replace(" anchored)", ")"))


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

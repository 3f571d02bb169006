"""Whether telemetry arrives: from the jobs through the collector to Jaeger, Prometheus and Elasticsearch."""

from functools import partial

from grafana import links
from grafana.board import Board, Row
from grafana.look import NONE_IS_GOOD, UNKNOWN, UP, Look
from grafana.panels import Panel, Query, figure, lines, states, top
from grafana.queries import RANGE, added, grown, known, level
from grafana.verdict import verdict
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.prometheus_names import series

ONWARD = (links.ALERTS, links.OVERVIEW)
SENDERS = (links.ALL_TRACES, links.TROUBLE, links.ALERTS)
COLLECTOR = 'job="otel-collector"'
BRIDGE = 'job="spark-bridge"'
OF_BRIDGE = (links.PERFORMANCE, links.ALERTS)
# Jaeger is built on an older collector, whose metrics have their units and `_total` in their names.
JAEGER = 'job="jaeger"'
seen = partial(Look, empty=UNKNOWN)
"""The look of what Prometheus scrapes: without an answer nothing is known."""
PER_SECOND = "suffix:/s"
COLLECTOR_UP = f"up{{{COLLECTOR}}}"
BRIDGE_UP = f"up{{{BRIDGE}}}"
SIGNALS = {"spans": "spans", "metric_points": "metric points", "log_records": "log records"}


def board() -> Board:
    """Each component: what it receives, exports, queues and loses."""
    return Board(
        "telemetry-path",
        "platform",
        "Telemetry path: does all telemetry arrive?",
        "What each component receives, exports, queues and loses. Jobs never wait for any of them.",
        (
            Row("Is it well, since when, where to look", verdict("telemetry-path")),
            Row("What is lost, and what waits", _losses()),
            Row("Components", (_up(), _probes(), _scrapes(), _samples())),
            Row("Bridge", (_bridge_reads(), _bridge_lag(), _bridge_sends(), _bridge_room())),
            Row("Collector: receivers", (_received("accepted"), _received("refused"))),
            Row("Collector: exporters", (_sent(), _queues(), _lost(), _added_up())),
            Row("Collector: resources", (_streams(), _memory(), _cpu())),
            Row("Jaeger", (_jaeger_in(), _jaeger_out())),
            Row("Prometheus and Alertmanager", (*_prometheus(), _alerts())),
        ),
    )


def _losses() -> tuple[Panel, ...]:
    """Whether something is lost or late: one tile for each place where it can be."""
    return (
        _loss(
            "Refused by the collector",
            "What the collector refused. Alert: CollectorRefusing.",
            COLLECTOR_UP,
            *(
                f"sum(increase(otelcol_receiver_refused_{signal}{{{COLLECTOR}}}[{RANGE}] anchored))"
                for signal in SIGNALS
            ),
        ),
        _loss(
            "Lost on the way out",
            "What back ends rejected, and what did not fit in a queue. Alert: CollectorDropping.",
            COLLECTOR_UP,
            *(
                f"sum(increase(otelcol_exporter_{what}_{signal}{{{COLLECTOR}}}[{RANGE}] anchored))"
                for what in ("send_failed", "enqueue_failed")
                for signal in SIGNALS
            ),
        ),
        _loss(
            "Spans lost by the bridge",
            "Spans of applications that could not be sent. Alert: SparkBridgeDropping.",
            BRIDGE_UP,
            f"sum(increase({_of_bridge(spark_names.BRIDGE_SPANS_DROPPED)}[{RANGE}] anchored))",
        ),
        figure(
            "Bridge behind by",
            seen(
                "Age of the oldest event that the bridge has not read. Alert: SparkBridgeBehind.",
                "s",
                OF_BRIDGE,
                {None: "green", 300: "red"},
                empty=UNKNOWN,
            ),
            Query(f"max({_of_bridge(spark_names.BRIDGE_LAG)})"),
        ).sized(6, 4),
    )


def _loss(title: str, text: str, witness: str, *lost: str) -> Panel:
    parts = " or ".join(f'label_replace({each}, "part", "{place}", "", "")' for place, each in enumerate(lost))
    look = seen(text, "locale", SENDERS, NONE_IS_GOOD)
    return figure(title, look, Query(known(f"sum({parts})", witness))).sized(6, 4)


def _up() -> Panel:
    look = seen(
        "Whether Prometheus could scrape each target. Alerts: CollectorDown, TelemetryBackendDown.",
        "none",
        ONWARD,
        texts=UP,
    )
    # A service that was left out never answered, and is not down.
    answering = Query(
        "min by (target) (probe_success and on (target) max by (target) (max_over_time(probe_success[14d])) == 1)",
        "{{target}}",
    )
    return states("Targets", look, Query("min by (job, instance) (up)", "{{job}} {{instance}}"), answering).sized(20, 8)


def _probes() -> Panel:
    text = "How often `spark-app doctor` sent a test trace, metric and log, and Prometheus received the metric."
    look = seen(text, "none", (links.traces("Its traces", service=names.PROBE_SERVICE_NAME), links.ALERTS))
    return figure("Checks by spark-app doctor", look, Query(added(grown(names.PROBES, RANGE, "")))).sized(4, 8)


def _scrapes() -> Panel:
    text = "How long Prometheus took to scrape each target. Scrapes of more than 10 s fail."
    return lines(
        "Scrape duration",
        seen(text, "s", ONWARD),
        *top(
            f"max by (job, instance) ({level('scrape_duration_seconds')})",
            "{{job}} {{instance}}",
            "job",
            "instance",
            others="max",
        ),
    )


def _samples() -> Panel:
    text = "Series that a target exposes. Endless growth means a label with too many values."
    return lines(
        "Series per scrape",
        seen(text, "locale", ONWARD),
        *top(f"sum by (job) ({level('scrape_samples_scraped')})", "{{job}}", "job"),
    )


def _bridge_reads() -> Panel:
    text = (
        "Spark events that the bridge reads. It counts lines that it cannot parse, and events that a bug of it dropped."
    )
    return lines(
        "Events read",
        seen(text, PER_SECOND, OF_BRIDGE),
        _rate(spark_names.BRIDGE_EVENTS, "events"),
        _rate(spark_names.BRIDGE_UNREADABLE_LINES, "unreadable lines"),
        _rate(spark_names.BRIDGE_FAILED_EVENTS, "dropped by a bug"),
    )


def _rate(metric: Metric, legend: str) -> Query:
    return Query(f"sum(rate({_of_bridge(metric)}[$__rate_interval]))", legend)


def _of_bridge(metric: Metric) -> str:
    return f"{series(metric)}{{{BRIDGE}}}"


def _bridge_lag() -> Panel:
    text = "Age of the oldest event that the bridge has not read yet. Alerts: SparkBridgeDown, SparkBridgeBehind."
    look = seen(text, "s", OF_BRIDGE)
    return lines("Bridge lag", look, Query(f"max({_of_bridge(spark_names.BRIDGE_LAG)})", "behind"))


def _bridge_sends() -> Panel:
    text = "Spans that the bridge sent, dropped and still holds. Alert: SparkBridgeDropping."
    return lines(
        "Spans of Spark applications",
        seen(text, PER_SECOND, OF_BRIDGE),
        _rate(spark_names.BRIDGE_SPANS_SENT, "sent"),
        _rate(spark_names.BRIDGE_SPANS_DROPPED, "lost"),
        Query(f"max({_of_bridge(spark_names.BRIDGE_SPANS_WAITING)})", "waiting"),
    )


def _bridge_room() -> Panel:
    text = "Free share of the event log volume. Alert: SparkEventVolumeFilling, below 10 %."
    volume = (spark_names.BRIDGE_VOLUME_FREE, spark_names.BRIDGE_VOLUME_SIZE)
    free, size = (f"min({_of_bridge(metric)})" for metric in volume)
    return lines(
        "Free space for event logs", seen(text, "percentunit", OF_BRIDGE, maximum=1), Query(f"{free} / {size}", "free")
    )


def _rates(metric: str, by: str, job: str = COLLECTOR) -> list[Query]:
    """One query for each signal: the rate of its counter."""
    return [
        Query(f"sum by ({by}) (rate({metric.format(signal)}{{{job}}}[$__rate_interval]))", f"{{{{{by}}}}} {name}")
        for signal, name in SIGNALS.items()
    ]


def _received(what: str) -> Panel:
    text = {
        "accepted": "What each receiver accepts. Jobs send at the end of their steps.",
        "refused": "What the collector refused: no memory, or a queue is full. Alert: CollectorRefusing.",
    }[what]
    return lines(
        what.capitalize(), seen(text, PER_SECOND, SENDERS), *_rates(f"otelcol_receiver_{what}_{{}}", "receiver")
    )


def _sent() -> Panel:
    rates = [
        f"sum by (exporter) (rate(otelcol_exporter_sent_{signal}{{{COLLECTOR}}}[$__rate_interval]))"
        for signal in SIGNALS
    ]
    return lines(
        "Sent", seen("What the back ends accepted.", PER_SECOND, ONWARD), Query(" or ".join(rates), "{{exporter}}")
    )


def _lost() -> Panel:
    text = (
        "What was lost since the collector started: a back end rejected it or was down for a day, a "
        "queue was full, data points could not be summed, or log lines did not fit. Alerts: CollectorExporterFailing, "
        "CollectorDropping, LogLinesRefused."
    )
    # Totals, not rates: the counter appears with the first loss, which a rate does not show.
    lost = [
        f'label_replace(sum by (exporter) (otelcol_exporter_{what}_{signal}{{{COLLECTOR}}}), "why", "{why}", "", "")'
        for what, why in (("send_failed", "rejected or no answer"), ("enqueue_failed", "queue full"))
        for signal in SIGNALS
    ]
    adding = f'sum by (error) (otelcol_deltatocumulative_datapoints{{{COLLECTOR}, error!=""}})'
    lost.append(f'label_replace({adding}, "why", "$1", "error", "(.+)")')
    refused = f'sum by (error_type) (otelcol_elasticsearch_docs_processed{{{COLLECTOR}, outcome!="success"}})'
    lost.append(f'label_replace({refused}, "why", "$1", "error_type", "(.+)")')
    shown = top(f"sum by (exporter, why) ({' or '.join(lost)})", "{{exporter}} {{why}}", "exporter", "why")
    look = Look(text, "locale", SENDERS, empty="Nothing was lost, if Telemetry arrives")
    return lines("Lost since the collector started", look, *shown)


def _queues() -> Panel:
    text = "How full each queue is. It fills while its back end is down. Alert: CollectorExporterStuck."
    size, capacity = (
        f"max by (exporter, data_type) (otelcol_exporter_queue_{what}{{{COLLECTOR}}})" for what in ("size", "capacity")
    )
    return lines(
        "Queues",
        seen(text, "percentunit", ONWARD, maximum=1),
        Query(f"{size} / {capacity}", "{{exporter}} {{data_type}}"),
    )


def _added_up() -> Panel:
    text = "Data points that deltatocumulative sums into series that outlive a run."
    query = f"sum(rate(otelcol_deltatocumulative_datapoints{{{COLLECTOR}}}[$__rate_interval]))"
    return lines("Data points summed", seen(text, PER_SECOND, SENDERS), Query(query, "points"))


def _streams() -> Panel:
    text = "Series that deltatocumulative tracks, and its limit. At the limit, new series are lost."
    return lines(
        "Series tracked",
        seen(text, "none", ONWARD),
        Query(f"max(otelcol_deltatocumulative_streams_tracked{{{COLLECTOR}}})", "tracked"),
        Query(f"max(otelcol_deltatocumulative_streams_limit{{{COLLECTOR}}})", "limit"),
    )


def _memory() -> Panel:
    text = "Memory of each component. The collector refuses telemetry when its heap is near the limit of its container."
    return lines(
        "Memory",
        seen(text, "bytes", ONWARD),
        Query(f"max by (job) (otelcol_process_memory_rss{{{COLLECTOR}}})", "{{job}}"),
        Query(f"max by (job) (otelcol_process_runtime_heap_alloc_bytes{{{COLLECTOR}}})", "{{job}}, its heap"),
        Query(f"max by (job) (otelcol_process_memory_rss_bytes{{{JAEGER}}})", "{{job}}"),
        Query("max by (job) (process_resident_memory_bytes)", "{{job}}"),
    )


def _cpu() -> Panel:
    return lines(
        "Cores",
        seen("Processor cores that each component uses.", "none", ONWARD),
        Query(f"sum by (job) (rate(otelcol_process_cpu_seconds{{{COLLECTOR}}}[$__rate_interval]))", "{{job}}"),
        Query(f"sum by (job) (rate(otelcol_process_cpu_seconds_total{{{JAEGER}}}[$__rate_interval]))", "{{job}}"),
        Query("sum by (job) (rate(process_cpu_seconds_total[$__rate_interval]))", "{{job}}"),
    )


def _jaeger_in() -> Panel:
    text = "Spans that Jaeger accepted and refused. Compare with what the collector sent."
    return lines(
        "Spans received by Jaeger",
        seen(text, PER_SECOND, (links.ALL_TRACES, *ONWARD)),
        Query(f"sum(rate(otelcol_receiver_accepted_spans_total{{{JAEGER}}}[$__rate_interval]))", "accepted"),
        Query(f"sum(rate(otelcol_receiver_refused_spans_total{{{JAEGER}}}[$__rate_interval]))", "refused"),
    )


def _jaeger_out() -> Panel:
    query = f"sum by (exporter) (rate(otelcol_exporter_sent_spans_total{{{JAEGER}}}[$__rate_interval]))"
    return lines(
        "Spans stored by Jaeger",
        seen("Spans that Jaeger wrote to disk.", PER_SECOND, (links.ALL_TRACES, *ONWARD)),
        Query(query, "{{exporter}}"),
    )


def _prometheus() -> tuple[Panel, ...]:
    own = 'job="prometheus"'
    return (
        figure(
            "Series",
            seen("Series that Prometheus has in memory.", "locale", ONWARD),
            Query(f"sum(prometheus_tsdb_head_series{{{own}}})"),
        ),
        figure(
            "On disk",
            seen("Size of the blocks on disk; Prometheus writes the first after two hours.", "bytes", ONWARD),
            Query(f"sum(prometheus_tsdb_storage_blocks_bytes{{{own}}})"),
        ),
        figure(
            "Exemplars",
            seen("Stored exemplars: the points that link a metric to a trace.", "locale", ONWARD),
            Query(f"sum(prometheus_tsdb_exemplar_exemplars_in_storage{{{own}}})"),
        ),
        lines(
            "Failed rules and notifications",
            seen(
                "Failed rule evaluations, and alerts that Alertmanager did not accept. Both should be 0.",
                PER_SECOND,
                ONWARD,
            ),
            Query(f"sum(rate(prometheus_rule_evaluation_failures_total{{{own}}}[$__rate_interval]))", "rules"),
            Query(f"sum(rate(prometheus_notifications_dropped_total{{{own}}}[$__rate_interval]))", "notifications"),
        ).sized(12, 8),
    )


def _alerts() -> Panel:
    text = "Notifications that Alertmanager sent and failed to send. It sends none unless ALERT_WEBHOOK_URL is set."
    webhook = '{job="alertmanager", integration="webhook"}[$__rate_interval]'
    return lines(
        "Notifications of alerts",
        seen(text, PER_SECOND, ONWARD),
        Query(f"sum(rate(alertmanager_notifications_total{webhook}))", "sent"),
        Query(f"sum(rate(alertmanager_notifications_failed_total{webhook}))", "failed"),
    ).sized(12, 8)

"""Whether what is told arrives: from the jobs through the collector to Jaeger, Prometheus and Elasticsearch."""

from app.telemetry import names
from grafana import links
from grafana.board import Board, Row
from grafana.look import UP, Look
from grafana.panels import Panel, Query, figure, lines, states
from grafana.queries import RANGE, added, grown

ONWARD = (links.ALERTS, links.OVERVIEW)
SENDERS = (links.ALL_TRACES, links.TROUBLE, links.ALERTS)
COLLECTOR = 'job="otel-collector"'
BRIDGE = 'job="spark-bridge"'
OF_BRIDGE = (links.PERFORMANCE, links.ALERTS)
# Jaeger is made of an older collector, whose metrics have their units and `_total` in their names.
JAEGER = 'job="jaeger"'
SIGNALS = {"spans": "spans", "metric_points": "metric points", "log_records": "log records"}


def board() -> Board:
    """Each hop: what goes in, what comes out, what waits, what is lost."""
    return Board(
        "telemetry-path",
        "platform",
        "Telemetry path",
        "What each hop takes in, passes on, keeps waiting and loses. Jobs never wait for any of them.",
        (
            Row("Hops", (_up(), _probes(), _scrapes(), _samples())),
            Row("Bridge", (_bridge_reads(), _bridge_lag(), _bridge_sends(), _bridge_room())),
            Row("Into the collector", (_received("accepted"), _received("refused"))),
            Row("Out of the collector", (_sent(), _queues(), _lost(), _added_up())),
            Row("Inside the collector", (_streams(), _memory(), _cpu())),
            Row("Jaeger", (_jaeger_in(), _jaeger_out())),
            Row("Prometheus and Alertmanager", (*_prometheus(), _alerts())),
        ),
    )


def _up() -> Panel:
    look = Look(
        "Whether each target answered Prometheus. Alerts: CollectorDown, TelemetryBackendDown.",
        "none",
        ONWARD,
        texts=UP,
    )
    return states("Targets", look, Query("min by (job, instance) (up)", "{{job}} {{instance}}")).sized(20, 8)


def _probes() -> Panel:
    text = "How often `spark-app doctor` sent a trace, a metric and a log, and Prometheus got the metric."
    look = Look(text, "none", (links.traces("Its traces", service=names.PROBE_SERVICE_NAME), links.ALERTS))
    return figure("Looks by the doctor", look, Query(added(grown(names.PROBES, RANGE, "")))).sized(4, 8)


def _scrapes() -> Panel:
    text = "How long a target took to answer Prometheus. Near the 10 s that it may take, samples get lost."
    return lines(
        "Time to answer",
        Look(text, "s", ONWARD),
        Query("max by (job, instance) (scrape_duration_seconds)", "{{job}} {{instance}}"),
    )


def _samples() -> Panel:
    text = "Series that a target told in one answer. A climb without end is a label with too many values."
    return lines("Series told", Look(text, "none", ONWARD), Query("sum by (job) (scrape_samples_scraped)", "{{job}}"))


def _bridge_reads() -> Panel:
    text = "Events of Spark that the bridge reads; lines that it cannot read are counted and left out."
    return lines(
        "Events read",
        Look(text, "cps", OF_BRIDGE),
        Query(f"sum(rate(spark_bridge_events_total{{{BRIDGE}}}[$__rate_interval]))", "events"),
        Query(f"sum(rate(spark_bridge_unreadable_lines_total{{{BRIDGE}}}[$__rate_interval]))", "unreadable lines"),
    )


def _bridge_lag() -> Panel:
    text = "How old the oldest line is that the bridge has not read yet. Alerts: SparkBridgeDown, SparkBridgeBehind."
    look = Look(text, "s", OF_BRIDGE)
    return lines("Behind", look, Query(f"max(spark_bridge_lag_seconds{{{BRIDGE}}})", "behind"))


def _bridge_sends() -> Panel:
    text = "Spans that the collector took, spans that wait, and spans that were lost. Alert: SparkBridgeDropping."
    return lines(
        "Spans of Spark",
        Look(text, "cps", OF_BRIDGE),
        Query(f"sum(rate(spark_bridge_spans_sent_total{{{BRIDGE}}}[$__rate_interval]))", "sent"),
        Query(f"sum(rate(spark_bridge_spans_dropped_total{{{BRIDGE}}}[$__rate_interval]))", "lost"),
        Query(f"max(spark_bridge_spans_waiting{{{BRIDGE}}})", "waiting"),
    )


def _bridge_room() -> Panel:
    text = "Share of the volume of event logs that is free. Alert: SparkEventVolumeFilling, below 10 %."
    free, size = (f"min(spark_bridge_volume_{what}_bytes{{{BRIDGE}}})" for what in ("free", "size"))
    return lines(
        "Room for event logs", Look(text, "percentunit", OF_BRIDGE, maximum=1), Query(f"{free} / {size}", "free")
    )


def _rates(metric: str, by: str, job: str = COLLECTOR) -> list[Query]:
    """One query for each signal: what its counter grows by in a second."""
    return [
        Query(f"sum by ({by}) (rate({metric.format(signal)}{{{job}}}[$__rate_interval]))", f"{{{{{by}}}}} {words}")
        for signal, words in SIGNALS.items()
    ]


def _received(what: str) -> Panel:
    text = {
        "accepted": "What comes in by each receiver. Jobs send at the end of their steps.",
        "refused": "What the collector did not take, for want of memory or room in a queue. Alert: CollectorRefusing.",
    }[what]
    return lines(what.capitalize(), Look(text, "cps", SENDERS), *_rates(f"otelcol_receiver_{what}_{{}}", "receiver"))


def _sent() -> Panel:
    rates = [
        f"sum by (exporter) (rate(otelcol_exporter_sent_{signal}{{{COLLECTOR}}}[$__rate_interval]))"
        for signal in SIGNALS
    ]
    return lines("Sent", Look("What the back ends took.", "cps", ONWARD), Query(" or ".join(rates), "{{exporter}}"))


def _lost() -> Panel:
    text = (
        "What was lost since the collector started: a back end refused it or was away for 15 minutes, its queue was "
        "full, or it was not to be added up. Empty until then. Alerts: CollectorExporterFailing, CollectorDropping."
    )
    # In sums and not by the second: the counter appears with the first loss, of which a rate shows nothing.
    lost = [
        f'label_replace(sum by (exporter) (otelcol_exporter_{what}_{signal}{{{COLLECTOR}}}), "why", "{why}", "", "")'
        for what, why in (("send_failed", "refused or away"), ("enqueue_failed", "queue full"))
        for signal in SIGNALS
    ]
    adding = f'sum by (error) (otelcol_deltatocumulative_datapoints{{{COLLECTOR}, error!=""}})'
    lost.append(f'label_replace({adding}, "why", "$1", "error", "(.+)")')
    query = Query(" or ".join(lost), "{{exporter}} {{why}}")
    return lines("Lost on the way out", Look(text, "locale", SENDERS), query)


def _queues() -> Panel:
    text = "How full the queue of each exporter is. Full for long: its back end is away. Alert: CollectorExporterStuck."
    size, capacity = (
        f"max by (exporter, data_type) (otelcol_exporter_queue_{what}{{{COLLECTOR}}})" for what in ("size", "capacity")
    )
    return lines(
        "Queues",
        Look(text, "percentunit", ONWARD, maximum=1),
        Query(f"{size} / {capacity}", "{{exporter}} {{data_type}}"),
    )


def _added_up() -> Panel:
    text = "Points of one-shot runs on their way into series that last longer than the run."
    query = f"sum(rate(otelcol_deltatocumulative_datapoints{{{COLLECTOR}}}[$__rate_interval]))"
    return lines("Points added up", Look(text, "cps", SENDERS), Query(query, "points"))


def _streams() -> Panel:
    text = "Series that the collector adds up for one-shot runs, and how many it may. At the limit, new ones are lost."
    return lines(
        "Series added up",
        Look(text, "none", ONWARD),
        Query(f"max(otelcol_deltatocumulative_streams_tracked{{{COLLECTOR}}})", "tracked"),
        Query(f"max(otelcol_deltatocumulative_streams_limit{{{COLLECTOR}}})", "limit"),
    )


def _memory() -> Panel:
    text = (
        "Memory that the programs on the path hold. The collector refuses when its heap is near its container's limit."
    )
    return lines(
        "Memory",
        Look(text, "bytes", ONWARD),
        Query(f"max by (job) (otelcol_process_memory_rss{{{COLLECTOR}}})", "{{job}}"),
        Query(f"max by (job) (otelcol_process_runtime_heap_alloc_bytes{{{COLLECTOR}}})", "{{job}}, its heap"),
        Query(f"max by (job) (otelcol_process_memory_rss_bytes{{{JAEGER}}})", "{{job}}"),
        Query("max by (job) (process_resident_memory_bytes)", "{{job}}"),
    )


def _cpu() -> Panel:
    return lines(
        "Cores",
        Look("Cores that the programs on the path keep busy.", "none", ONWARD),
        Query(f"sum by (job) (rate(otelcol_process_cpu_seconds{{{COLLECTOR}}}[$__rate_interval]))", "{{job}}"),
        Query(f"sum by (job) (rate(otelcol_process_cpu_seconds_total{{{JAEGER}}}[$__rate_interval]))", "{{job}}"),
        Query("sum by (job) (rate(process_cpu_seconds_total[$__rate_interval]))", "{{job}}"),
    )


def _jaeger_in() -> Panel:
    text = "Spans that Jaeger took and refused. Beside what the collector sent: what is lost between them."
    return lines(
        "Spans into Jaeger",
        Look(text, "cps", (links.ALL_TRACES, *ONWARD)),
        Query(f"sum(rate(otelcol_receiver_accepted_spans_total{{{JAEGER}}}[$__rate_interval]))", "accepted"),
        Query(f"sum(rate(otelcol_receiver_refused_spans_total{{{JAEGER}}}[$__rate_interval]))", "refused"),
    )


def _jaeger_out() -> Panel:
    query = f"sum by (exporter) (rate(otelcol_exporter_sent_spans_total{{{JAEGER}}}[$__rate_interval]))"
    return lines(
        "Spans into Jaeger's store",
        Look("Spans that Jaeger wrote to its disk.", "cps", (links.ALL_TRACES, *ONWARD)),
        Query(query, "{{exporter}}"),
    )


def _prometheus() -> tuple[Panel, ...]:
    own = 'job="prometheus"'
    return (
        figure(
            "Series",
            Look("Series that Prometheus has in memory.", "locale", ONWARD),
            Query(f"sum(prometheus_tsdb_head_series{{{own}}})"),
        ),
        figure(
            "On disk",
            Look("Size of the blocks that Prometheus keeps; the first is written after two hours.", "bytes", ONWARD),
            Query(f"sum(prometheus_tsdb_storage_blocks_bytes{{{own}}})"),
        ),
        figure(
            "Exemplars",
            Look("Exemplars in store: the points that lead from a metric to a trace.", "locale", ONWARD),
            Query(f"sum(prometheus_tsdb_exemplar_exemplars_in_storage{{{own}}})"),
        ),
        lines(
            "Rules and notifications that failed",
            Look(
                "Evaluations of rules that failed, and alerts that Alertmanager did not take. Both are to be 0.",
                "cps",
                ONWARD,
            ),
            Query(f"sum(rate(prometheus_rule_evaluation_failures_total{{{own}}}[$__rate_interval]))", "rules"),
            Query(f"sum(rate(prometheus_notifications_dropped_total{{{own}}}[$__rate_interval]))", "notifications"),
        ).sized(12, 8),
    )


def _alerts() -> Panel:
    text = "Alerts that Alertmanager sent, and could not send. Nothing is sent unless ALERT_WEBHOOK_URL is set."
    webhook = '{job="alertmanager", integration="webhook"}[$__rate_interval]'
    return lines(
        "Alerts sent",
        Look(text, "cps", ONWARD),
        Query(f"sum(rate(alertmanager_notifications_total{webhook}))", "sent"),
        Query(f"sum(rate(alertmanager_notifications_failed_total{webhook}))", "failed"),
    ).sized(12, 8)

"""Whether anything is wrong, and where: one row for each part of the platform."""

from grafana import links
from grafana.board import Board, Row
from grafana.look import FULL_IS_BAD, NONE_IS_GOOD, ONE_IS_GOOD, OUTCOMES, UP, Column, Look
from grafana.panels import Panel, Query, alerts, bars, figure, lines, lines_of_log, rows, states
from grafana.queries import INTERVAL, RANGE, added, grown, largest, last, legend, mean, share
from spark_app.telemetry import names

ANY = ""
FAILED = 'pipeline_run_outcome!="succeeded"'
TROUBLE = "severity_text:(WARN OR ERROR OR FATAL)"


def board() -> Board:
    """The dashboard that Grafana opens with."""
    return Board(
        "platform-overview",
        "platform",
        "Platform overview",
        "Whether anything is wrong, and where. Each panel links to the dashboard with the details.",
        (
            Row("Now", _now()),
            Row("What is wrong", (_alerts(), _targets())),
            Row("Pipelines", (_pipelines(), _outcomes(), _rows())),
            Row("Kafka", _kafka()),
            Row("Logs", (_logs(),)),
        ),
    )


def _now() -> tuple[Panel, ...]:
    return (
        figure(
            "Alerts firing",
            Look("Alerts that fire and are not silenced.", "none", (links.ALERTS,), NONE_IS_GOOD),
            Query(
                'sum(alertmanager_alerts{job="alertmanager", state="active"})'
                ' - count(ALERTS{alertname="Watchdog", alertstate="firing"})'
            ),
        ),
        figure(
            "Targets down",
            Look(
                "Targets that Prometheus cannot scrape. None is down between jobs.",
                "none",
                (links.PATH,),
                NONE_IS_GOOD,
            ),
            Query("count(up) - sum(up)"),
        ),
        figure(
            "Runs not succeeded",
            Look("Runs in the time range that did not succeed.", "none", (links.RUNS, links.ALL_TRACES), NONE_IS_GOOD),
            Query(added(grown(names.RUNS, RANGE, FAILED))),
        ),
        figure(
            "Workers alive",
            Look("Workers that the Spark master considers alive.", "none", (links.CLUSTER, links.DAEMONS), ONE_IS_GOOD),
            Query('sum(metrics_master_aliveWorkers_Number{job="spark-master"})'),
        ),
        figure(
            "Cores in use",
            Look(
                "Share of the workers' cores that applications use.",
                "percentunit",
                (links.CLUSTER,),
                FULL_IS_BAD,
                maximum=1,
            ),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number", 'job="spark-worker"')),
        ),
        figure(
            "Kafka brokers",
            Look("Kafka brokers that answer the collector.", "none", (links.PATH,), ONE_IS_GOOD),
            Query("max(kafka_brokers)"),
        ),
    )


def _alerts() -> Panel:
    text = "Alerts that are pending or fire. Each has a section in docs/runbook.md."
    return alerts("Alerts", Look(text, "none", (links.ALERTS,))).sized(12, 9)


def _targets() -> Panel:
    text = "Whether Prometheus could scrape each target; red is an outage."
    look = Look(text, "none", (links.PATH,), texts=UP)
    return states("Targets", look, Query("min by (job, instance) (up)", "{{job}} {{instance}}")).sized(12, 9)


def _pipelines() -> Panel:
    by = names.PIPELINE
    columns = (
        Column("pipeline_name", "Pipeline", links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column("Value #A", "Last success", "dateTimeFromNow"),
        Column("Value #B", "Runs"),
        Column("Value #C", "Not succeeded", colors=NONE_IS_GOOD),
        Column("Value #D", "Mean duration", "s"),
        Column("Value #E", "Rows read", "locale"),
        Column("Value #F", "Rows quarantined", "locale"),
    )
    text = "Each pipeline that ran within the time range. Empty if none ran."
    return rows(
        "Pipelines",
        Look(text, "none", (links.RUNS, links.QUALITY)),
        columns,
        Query(f"1000 * {largest(last(names.LAST_SUCCESS, RANGE, ANY), by)}"),
        Query(added(grown(names.RUNS, RANGE, ANY), by)),
        Query(added(grown(names.RUNS, RANGE, FAILED), by)),
        Query(mean(names.RUN_DURATION, RANGE, by, where=ANY)),
        Query(added(grown(names.READ, RANGE, ANY), by)),
        Query(added(grown(names.QUARANTINED, RANGE, ANY), by)),
    ).sized(24, 7)


def _outcomes() -> Panel:
    text = "Finished runs by outcome. `rejected` means that the data violate an expectation and nothing was published."
    look = Look(text, "none", (links.RUNS, links.ALL_TRACES), series=OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL, ANY), names.OUTCOME), legend(names.OUTCOME))
    )


def _rows() -> Panel:
    text = "Rows that pipelines read. Check a day that is much smaller or larger than its neighbours."
    look = Look(text, "locale", (links.RUNS_OF, links.QUALITY_OF))
    return bars(
        "Rows read", look, Query(added(grown(names.READ, INTERVAL, ANY), names.PIPELINE), legend(names.PIPELINE))
    )


def _kafka() -> tuple[Panel, ...]:
    newest, oldest = (f"sum by (topic) (kafka_partition_{end}_offset_ratio)" for end in ("current", "oldest"))
    kept = "Messages that each topic holds: newest minus oldest offset, summed over its partitions."
    replicas = (
        "Replicas of partitions that are in sync with their leader. Fewer than all means that a broker is in trouble."
    )
    return (
        lines(
            "Messages kept by Kafka",
            Look(kept, "locale", (links.PATH, links.TROUBLE)),
            Query(f"{newest} - {oldest}", "{{topic}}"),
        ),
        lines(
            "Replicas in sync",
            Look(replicas, "none", (links.PATH, links.TROUBLE)),
            Query("sum by (topic) (kafka_partition_replicas_in_sync)", "{{topic}} in sync"),
            Query("sum by (topic) (kafka_partition_replicas)", "{{topic}} in all"),
        ),
    )


def _logs() -> Panel:
    text = "Warnings and errors of Spark drivers, executors and daemons. A line with a trace id links to its trace."
    return lines_of_log("Warnings and errors", Look(text, "none", (links.TROUBLE,)), TROUBLE)

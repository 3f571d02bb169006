"""Is anything wrong, and where: one line for each part of the platform."""

from app.telemetry import names
from grafana import links
from grafana.board import Board, Row
from grafana.look import FULL_IS_BAD, NONE_IS_GOOD, ONE_IS_GOOD, OUTCOMES, UP, Column, Look
from grafana.panels import Panel, Query, alerts, bars, figure, lines, lines_of_log, rows, states
from grafana.queries import INTERVAL, RANGE, added, grown, largest, last, legend, mean, share

ANY = ""
FAILED = 'pipeline_run_outcome!="succeeded"'
TROUBLE = "severity_text:(WARN OR ERROR OR FATAL)"


def board() -> Board:
    """The dashboard that Grafana opens with."""
    return Board(
        "platform-overview",
        "platform",
        "Platform overview",
        "Is anything wrong, and where. Each panel leads to the dashboard that tells more.",
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
            Look("Alerts that Alertmanager holds and nobody has silenced.", "none", (links.ALERTS,), NONE_IS_GOOD),
            Query('sum(alertmanager_alerts{job="alertmanager", state="active"})'),
        ),
        figure(
            "Targets down",
            Look(
                "What Prometheus scrapes and does not reach. Nothing is down between jobs.",
                "none",
                (links.PATH,),
                NONE_IS_GOOD,
            ),
            Query("count(up) - sum(up)"),
        ),
        figure(
            "Runs without success",
            Look("Runs in the time range that did not succeed.", "none", (links.RUNS, links.ALL_TRACES), NONE_IS_GOOD),
            Query(added(grown(names.RUNS, RANGE, FAILED))),
        ),
        figure(
            "Workers alive",
            Look("Workers that Spark's master counts on.", "none", (links.CLUSTER, links.DAEMONS), ONE_IS_GOOD),
            Query('sum(metrics_master_aliveWorkers_Number{job="spark-master"})'),
        ),
        figure(
            "Cores in use",
            Look(
                "Share of the workers' cores that applications hold.",
                "percentunit",
                (links.CLUSTER,),
                FULL_IS_BAD,
                maximum=1,
            ),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number")),
        ),
        figure(
            "Kafka brokers",
            Look("Brokers that answer the collector.", "none", (links.PATH,), ONE_IS_GOOD),
            Query("max(kafka_brokers)"),
        ),
    )


def _alerts() -> Panel:
    text = "Alerts of Prometheus that are pending or fire; each has a heading of its name in docs/runbook.md."
    return alerts("Alerts", Look(text, "none", (links.ALERTS,))).sized(12, 9)


def _targets() -> Panel:
    text = "Whether each target answered Prometheus; red is an outage."
    look = Look(text, "none", (links.PATH,), texts=UP)
    return states("Targets", look, Query("min by (job, instance) (up)", "{{job}} {{instance}}")).sized(12, 9)


def _pipelines() -> Panel:
    by = names.PIPELINE
    columns = (
        Column("pipeline_name", "Pipeline", links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column("Value #A", "Last success", "dateTimeFromNow"),
        Column("Value #B", "Runs"),
        Column("Value #C", "Without success", colors=NONE_IS_GOOD),
        Column("Value #D", "Took on average", "s"),
        Column("Value #E", "Rows read", "locale"),
        Column("Value #F", "Rows quarantined", "locale"),
    )
    text = "Each pipeline that ran within the time range. Empty where nothing ran."
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
    text = "Runs that ended, by how they ended. `rejected`: the data broke a promise, and nothing was published."
    look = Look(text, "none", (links.RUNS, links.ALL_TRACES), series=OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL, ANY), names.OUTCOME), legend(names.OUTCOME))
    )


def _rows() -> Panel:
    text = "Rows that pipelines read. A day that is much smaller or larger than its neighbours is worth a look."
    look = Look(text, "locale", (links.RUNS_OF, links.QUALITY_OF))
    return bars(
        "Rows read", look, Query(added(grown(names.READ, INTERVAL, ANY), names.PIPELINE), legend(names.PIPELINE))
    )


def _kafka() -> tuple[Panel, ...]:
    newest, oldest = (f"sum by (topic) (kafka_partition_{end}_offset_ratio)" for end in ("current", "oldest"))
    kept = "Messages that each topic holds: the newest offset less the oldest, over all partitions."
    replicas = (
        "Partitions' replicas that are in sync with their leader; fewer than there are replicas is a broker in trouble."
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
    text = "What drivers, executors and daemons of Spark warn of. A line with a trace id leads to its trace."
    return lines_of_log("Warnings and errors", Look(text, "none", (links.TROUBLE,)), TROUBLE)

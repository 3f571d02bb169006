"""Whether anything is wrong, and where: one row for each part of the platform."""

from grafana import links
from grafana.board import Board, Row
from grafana.look import NONE_IS_GOOD, ONE_IS_GOOD, UNKNOWN, UP, Column, Look
from grafana.panels import Panel, Query, alerts, bars, figure, lines, lines_of_log, rows, states, top
from grafana.queries import FAILED, INTERVAL, RANGE, added, grown, known, largest, last, legend, level, mean, share
from grafana.verdict import FIRING, WELL, how_many, of_board, verdict_of_all
from spark_app.vocabulary import names

ANY = ""
TROUBLE = "severity_text:(WARN OR ERROR OR FATAL)"


def board() -> Board:
    """The dashboard that Grafana opens with."""
    return Board(
        "platform-overview",
        "platform",
        "Platform overview: is anything wrong, and where?",
        "Whether anything is wrong, since when, and where. Each panel links to the dashboard with the details.",
        (
            Row("Is it well, since when, where to look", verdict_of_all()),
            Row("Parts of the platform", _areas()),
            Row("Pipelines", (_pipelines(), _outcomes(), _rows())),
            Row("What is there, and in use", (*(each.sized(6, 4) for each in _in_use()), _targets(), _alerts())),
            Row("Kafka", _kafka()),
            Row("Logs", (_logs(),)),
        ),
    )


def _areas() -> tuple[Panel, ...]:
    """One tile for each of the other dashboards, which it leads to."""
    areas = (
        ("Pipeline runs", links.RUNS),
        ("Data quality", links.QUALITY),
        ("Streaming", links.STREAMING),
        ("Models", links.MODELS),
        ("Spark cluster", links.CLUSTER),
        ("Applications", links.PERFORMANCE),
        ("Telemetry path", links.PATH),
    )
    return (*(_area(title, onward) for title, onward in areas), _failed())


def _area(title: str, onward: links.Link) -> Panel:
    text = "Alerts of this part that fire and that somebody must act on. A click leads to its dashboard."
    return figure(
        title,
        Look(text, FIRING, (onward,), NONE_IS_GOOD, texts=WELL, empty=UNKNOWN),
        Query(how_many(of_board(onward.uid))),
    ).sized(3, 4)


def _failed() -> Panel:
    text = "Runs in the time range that failed, were rejected or killed; what somebody stopped is no failure."
    look = Look(text, "locale", (links.RUNS, links.ALL_TRACES), NONE_IS_GOOD, empty=UNKNOWN)
    return figure("Runs failed", look, Query(known(added(grown(names.RUNS, RANGE, FAILED))))).sized(3, 4)


def _in_use() -> tuple[Panel, ...]:
    return (
        figure(
            "Workers alive",
            Look(
                "Workers that the Spark master considers alive.",
                "none",
                (links.CLUSTER, links.DAEMONS),
                ONE_IS_GOOD,
                empty=UNKNOWN,
            ),
            Query('sum(metrics_master_aliveWorkers_Number{job="spark-master"})'),
        ),
        figure(
            "Cores in use",
            Look(
                "Share of the workers' cores that applications use. All is no fault, unless an application waits.",
                "percentunit",
                (links.CLUSTER,),
                maximum=1,
                empty=UNKNOWN,
            ),
            Query(share("metrics_worker_coresUsed_Number", "metrics_worker_coresFree_Number", 'job="spark-worker"')),
        ),
        figure(
            "Kafka brokers",
            Look(
                "Kafka brokers that answer the collector.",
                "none",
                (links.PATH,),
                ONE_IS_GOOD,
                empty="No broker answered within a day",
            ),
            # The collector sends nothing of a broker that is down, and Prometheus shows the last sample for 5 minutes.
            Query("max(last_over_time(kafka_brokers[1m])) or on () 0 * max(last_over_time(kafka_brokers[1d]))"),
        ),
        figure(
            "Targets down",
            Look("Targets that Prometheus cannot scrape.", "none", (links.PATH,), NONE_IS_GOOD, empty=UNKNOWN),
            Query("count(up) - sum(up)"),
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
        Column(
            "pipeline_name", "Pipeline", width=260, links=(links.RUNS_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)
        ),
        Column("Value #A", "Last success", "dateTimeFromNow"),
        Column("Value #B", "Runs"),
        Column("Value #C", "Failed", colors=NONE_IS_GOOD),
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
    look = Look(text, "none", (links.RUNS, links.ALL_TRACES), series=names.OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL, ANY), names.OUTCOME), legend(names.OUTCOME))
    )


def _rows() -> Panel:
    text = "Rows that pipelines read. Check a day that is much smaller or larger than its neighbours."
    look = Look(text, "locale", (links.RUNS_OF, links.QUALITY_OF))
    return bars(
        "Rows read",
        look,
        *top(added(grown(names.READ, INTERVAL, ANY), names.PIPELINE), legend(names.PIPELINE), names.PIPELINE),
    )


def _kafka() -> tuple[Panel, ...]:
    newest, oldest, replicas_of, in_sync = (
        f"sum by (topic) ({level(f'kafka_partition_{of}')})"
        for of in ("current_offset_ratio", "oldest_offset_ratio", "replicas", "replicas_in_sync")
    )
    kept = "Messages that each topic holds: newest minus oldest offset, summed over its partitions."
    replicas = (
        "Replicas of partitions that are missing from those in sync with their leader. More than 0 means that a broker "
        "is in trouble."
    )
    onward = (links.PATH, links.TROUBLE)
    return (
        lines(
            "Messages kept by Kafka",
            Look(kept, "locale", onward, empty=UNKNOWN),
            *top(f"({newest} - {oldest})", "{{topic}}", "topic"),
        ),
        lines(
            "Replicas out of sync",
            Look(replicas, "locale", onward, empty=UNKNOWN),
            *top(f"({replicas_of} - {in_sync})", "{{topic}}", "topic"),
        ),
    )


def _logs() -> Panel:
    text = "Warnings and errors of Spark drivers, executors and daemons. A line with a trace id links to its trace."
    return lines_of_log("Warnings and errors", Look(text, "none", (links.TROUBLE,)), TROUBLE)

"""Runs of pipelines: outcome, duration, rows, and how fresh the data is."""

from grafana import links
from grafana.board import PIPELINES, Board, Row
from grafana.look import NONE_IS_GOOD, OUTCOMES, Column, Look
from grafana.panels import Panel, Query, bars, figure, lines_of_log, points, ranking, rows, runs
from grafana.queries import INTERVAL, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean, step
from spark_app.telemetry import names
from spark_app.telemetry.prometheus_names import label

ONWARD = (links.TRACES_OF, links.LOGS_OF)
NEVER = {"0": ("not scheduled", "text")}


def board() -> Board:
    """Runs of the chosen pipelines."""
    return Board(
        "pipeline-runs",
        "pipelines",
        "Pipeline runs",
        "Outcome and duration of runs, what they read and wrote, and how fresh the data is.",
        (
            Row("Outcome", (_ended(), _since_success(), _unresolved(), _outcomes(), _durations())),
            Row("Duration", (_span_durations(), _step_span_durations(), _means(), _steps())),
            Row("Rows and bytes", (_read(), _written(), _set_aside(), _bytes())),
            Row("Freshness and schedule", (_freshness(), _schedule())),
            Row("Traces and logs", (_traces(), _logs())),
        ),
        by=(PIPELINES,),
        since="now-24h",
    )


def _ended() -> Panel:
    look = Look("Runs that ended within the time range, by outcome.", "none", (links.ALL_TRACES,), series=OUTCOMES)
    return figure("Runs", look, Query(added(grown(names.RUNS, RANGE), names.OUTCOME), legend(names.OUTCOME))).sized(
        12, 4
    )


def _since_success() -> Panel:
    text = "Time since the last success within 15 days. Alert: PipelineRunLate, if the pipeline has a schedule."
    recorded = f"pipeline:run_last_success_timestamp_seconds:max{{{OF_PIPELINE}}}"
    return figure(
        "Since the last success",
        Look(text, "s", ONWARD),
        Query(f"time() - {largest(recorded, names.PIPELINE)}", legend(names.PIPELINE)),
    ).sized(6, 4)


def _unresolved() -> Panel:
    text = "Rows that were read and then lost; more than 0 is a bug. Alert: PipelineRowsUnaccounted."
    look = Look(text, "locale", ONWARD, NONE_IS_GOOD)
    return figure(
        "Rows unaccounted", look, Query(added(grown(names.UNACCOUNTED, RANGE), names.PIPELINE), legend(names.PIPELINE))
    ).sized(6, 4)


def _outcomes() -> Panel:
    text = "Runs by outcome. `rejected` means that the data violate an expectation. Alert: PipelineRunFailing."
    look = Look(text, "none", (links.ALL_TRACES,), series=OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL), names.OUTCOME), legend(names.OUTCOME))
    )


def _durations() -> Panel:
    text = "How long runs took: one point when a run ends, the mean if several end together."
    query = Query(
        mean(names.RUN_DURATION, INTERVAL, names.PIPELINE, names.OUTCOME), legend(names.PIPELINE, names.OUTCOME)
    )
    return points("Duration of runs", Look(text, "s", ONWARD, interval="1m"), query)


def _span_durations() -> Panel:
    text = "95th percentile of the duration of runs, estimated from buckets. A diamond is a run and links to its trace."
    return _of_spans("Runs and their traces", text, f"{names.RUN_SPAN.prefix} ($pipeline)")


def _step_span_durations() -> Panel:
    text = (
        "95th percentile of the duration of steps, estimated from buckets. A diamond is a step and links to its trace."
    )
    return _of_spans("Steps and their traces", text, f"{names.STEP_SPAN.prefix} .+")


def _of_spans(title: str, text: str, spans: str) -> Panel:
    where = f'service_name="{names.DEFAULT_SERVICE_NAME}", span_name=~"{spans}"'
    buckets = f"traces_span_metrics_duration_seconds_bucket{{{where}}}"
    new = step(buckets, f"{buckets} offset {INTERVAL}")
    query = Query(f"histogram_quantile(0.95, sum by (le, span_name) ({new}))", "{{span_name}}", has_exemplars=True)
    return points(title, Look(text, "s", (links.TRACES_OF_SPAN,), interval="1m"), query)


def _means() -> Panel:
    text = "Mean duration of the runs of each pipeline within the time range."
    query = Query(mean(names.RUN_DURATION, RANGE, names.PIPELINE), legend(names.PIPELINE))
    return ranking("Mean duration of runs", Look(text, "s", ONWARD), query)


def _steps() -> Panel:
    text = "Mean duration of each step: where runs spend their time."
    query = mean(names.STEP_DURATION, RANGE, names.PIPELINE, names.STEP, names.STEP_KIND)
    return ranking(
        "Mean duration of steps",
        Look(text, "s", ONWARD),
        Query(f"sort_desc({query})", legend(names.PIPELINE, names.STEP)),
    )


def _read() -> Panel:
    query = Query(added(grown(names.READ, INTERVAL), names.PIPELINE), legend(names.PIPELINE))
    return bars("Rows read", Look("Rows that runs read from their sources.", "locale", ONWARD), query)


def _written() -> Panel:
    query = Query(
        added(grown(names.WRITTEN, INTERVAL), names.PIPELINE, names.TABLE), legend(names.PIPELINE, names.TABLE)
    )
    return bars("Rows written", Look("Rows that runs wrote, by table.", "locale", ONWARD), query)


def _set_aside() -> Panel:
    text = "Rows that were read and not published: quarantined as invalid, or older versions of a key."
    return bars(
        "Rows not published",
        Look(text, "locale", (links.QUALITY_OF, *ONWARD)),
        Query(added(grown(names.QUARANTINED, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} quarantined"),
        Query(added(grown(names.DUPLICATE, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} duplicate"),
    )


def _bytes() -> Panel:
    return bars(
        "Bytes",
        Look("Bytes that runs read from their sources and wrote to their tables.", "bytes", ONWARD),
        Query(added(grown(names.READ_BYTES, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} read"),
        Query(added(grown(names.WRITTEN_BYTES, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} written"),
    )


def _freshness() -> Panel:
    text = "Age of the newest row when its table was published, measured from the end of its day."
    query = largest(last(names.FRESHNESS, INTERVAL), names.PIPELINE, names.TABLE)
    look = Look(text, "s", (links.QUALITY_OF, *ONWARD), interval="1m")
    return points("Age of the newest row", look, Query(query, legend(names.PIPELINE, names.TABLE))).sized(10, 8)


def _schedule() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Pipeline", links=(links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
        Column("Value #A", "Last success", "dateTimeFromNow"),
        Column("Value #B", "Last failure", "dateTimeFromNow"),
        Column("Value #C", "Next run due", "dateTimeFromNow", texts=NEVER),
        Column("Value #D", "Run missed", "dateTimeFromNow", texts=NEVER),
        Column("Value #E", "Data stale", "dateTimeFromNow"),
        Column("Value #F", "Days to run again", "none"),
    )
    moments = (names.LAST_SUCCESS, names.LAST_FAILURE, names.SCHEDULE_DUE, names.SCHEDULE_MISSED, names.DATA_STALE)
    text = (
        "Last runs, what the `schedule` expects, and days of tables that were made of what has changed since. "
        "Alerts: PipelineRunLate, PipelineRunMissing, PipelineDataStale, PipelineInputsChanged."
    )
    queries = [Query(f"1000 * {largest(last(moment, '15d'), names.PIPELINE)}") for moment in moments]
    queries.append(Query(largest(last(names.STALE_DAYS, "25h"), names.PIPELINE)))
    return rows("Schedule", Look(text, "none", (links.ALERTS, links.ALL_TRACES)), columns, *queries).sized(14, 8)


def _traces() -> Panel:
    text = "The latest runs of all pipelines. The trace id links to the trace, and the trace to its logs."
    return runs("Latest traces", Look(text, "none", (links.ALL_TRACES,)), names.DEFAULT_SERVICE_NAME)


def _logs() -> Panel:
    text = "Log lines of drivers. A line links to its trace, and the trace to the lines of executors."
    return lines_of_log(
        "Log lines of runs",
        Look(text, "none", (links.TROUBLE, links.EXECUTORS)),
        f"attributes.{names.PIPELINE.name}:$pipeline",
    )

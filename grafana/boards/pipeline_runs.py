"""Runs of pipelines: outcome, duration, rows, and how fresh the data is."""

from grafana import links
from grafana.board import PIPELINES, Board, Row
from grafana.look import NONE_IS_GOOD, UNKNOWN, Column, Look
from grafana.panels import FIRST, Panel, Query, bars, documents, figure, lines_of_log, points, ranking, rows, runs, top
from grafana.queries import (
    FAILED,
    INTERVAL,
    OF_PIPELINE,
    RANGE,
    added,
    grown,
    known,
    largest,
    last,
    legend,
    mean,
    step,
)
from grafana.verdict import verdict
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label

ONWARD = (links.TRACES_OF, links.LOGS_OF)
NEVER = {"0": ("not scheduled", "text")}


def board() -> Board:
    """Runs of the chosen pipelines."""
    return Board(
        "pipeline-runs",
        "pipelines",
        "Pipeline runs: do they succeed, and in time?",
        "Outcome and duration of runs, what they read and wrote, and how fresh the data is.",
        (
            Row("Is it well, since when, where to look", verdict("pipeline-runs")),
            Row("Outcome", (_ended(), _since_success(), _unresolved(), _schedule(), _latest_runs())),
            Row("Over time", (_outcomes(), _span_durations())),
            Row("Where the time goes", (_means(), _steps(), _step_span_durations(), _freshness())),
            Row("Rows and bytes", (_read(), _written(), _set_aside(), _bytes())),
            Row("Traces and logs", (_traces(), _logs())),
        ),
        by=(PIPELINES,),
        since="now-24h",
    )


def _ended() -> Panel:
    text = "Runs that ended within the time range, by outcome; interrupted means that somebody stopped it."
    look = Look(text, "locale", (links.ALL_TRACES,), series=names.OUTCOMES)
    return figure("Runs", look, Query(added(grown(names.RUNS, RANGE), names.OUTCOME), legend(names.OUTCOME))).sized(
        12, 4
    )


def _since_success() -> Panel:
    text = (
        "The pipeline whose last success, within 15 days, is longest ago. Alert: PipelineRunLate, if it has a schedule."
    )
    recorded = f"pipeline:run_last_success_timestamp_seconds:max{{{OF_PIPELINE}}}"
    return figure(
        "Longest without a success",
        Look(text, "s", ONWARD, empty="No success within 15 days"),
        Query(f"topk(1, time() - {largest(recorded, names.PIPELINE)})", legend(names.PIPELINE)),
    ).sized(6, 4)


def _unresolved() -> Panel:
    text = "Rows that were read and then lost; more than 0 is a bug. Alert: PipelineRowsUnaccounted."
    look = Look(text, "locale", ONWARD, NONE_IS_GOOD, empty=UNKNOWN)
    return figure("Rows unaccounted", look, Query(known(added(grown(names.UNACCOUNTED, RANGE))))).sized(6, 4)


def _latest_runs() -> Panel:
    text = "The latest runs, each with its trace, its log lines and its report."
    ended = f'attributes.{names.PIPELINE.name}:$pipeline AND body.text:("run succeeded" OR "run ended by")'
    columns = (
        Column("@timestamp", "Ended", "dateTimeAsLocal", width=200),
        Column(f"attributes.{names.PIPELINE.name}", "Pipeline", links=(links.RUNS_OF_CELL, links.QUALITY_OF_CELL)),
        Column(f"attributes.{names.RUN_SLICE.name}", "Of", width=120),
        Column("body.text", "Outcome", width=420),
        Column("trace_id", "Trace", links=(links.TRACE_OF_CELL,)),
        Column(
            f"attributes.{names.RUN_ID.name}", "Log lines and report", links=(links.LOGS_OF_RUN, links.REPORT_OF_RUN)
        ),
    )
    return documents("Latest runs", Look(text, "none", (links.ALL_TRACES,)), columns, ended).sized(24, 9)


def _outcomes() -> Panel:
    text = "Runs by outcome. `rejected` means that the data violate an expectation. Alert: PipelineRunFailing."
    look = Look(text, "none", (links.ALL_TRACES,), series=names.OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL), names.OUTCOME), legend(names.OUTCOME))
    )


def _span_durations() -> Panel:
    text = "How long a run took; the mean if several end together. A diamond is a run and links to its trace."
    return _of_spans("Duration of runs", text, f"{names.RUN_SPAN.prefix} ($pipeline)")


def _step_span_durations() -> Panel:
    text = "How long a step took; the mean if several end together. A diamond is a step and links to its trace."
    return _of_spans("Duration of steps", text, f"{names.STEP_SPAN.prefix} .+")


def _of_spans(title: str, text: str, spans: str) -> Panel:
    """The mean, which is exact; the count is that of the largest bucket, since exemplars are of buckets."""
    where = f'service_name="{names.DEFAULT_SERVICE_NAME}", span_name=~"{spans}"'
    seconds, buckets = (f"traces_span_metrics_duration_seconds_{part}{{{where}}}" for part in ("sum", "bucket"))
    total = f"sum by (span_name) ({step(seconds, f'{seconds} offset {INTERVAL}')})"
    count = f"sum by (span_name) (max without (le) ({step(buckets, f'{buckets} offset {INTERVAL}')}))"
    longest = f"topk({FIRST}, sum by (span_name) (last_over_time({seconds}[{RANGE}] @ end())))"
    mean_of_spans = f"{total} / ({count} > 0) and on (span_name) {longest}"
    named = f'label_replace({mean_of_spans}, "name", "$1", "span_name", "[a-z]+ (.+)")'
    query = Query(named, "{{name}}", has_exemplars=True)
    return points(title, Look(text, "s", (links.TRACES_OF_SPAN,), interval="1m"), query)


def _means() -> Panel:
    text = "Mean duration of the runs of each pipeline within the time range."
    query = mean(names.RUN_DURATION, RANGE, names.PIPELINE)
    shown = top(query, legend(names.PIPELINE), names.PIPELINE, others="max")
    return ranking("Mean duration of runs", Look(text, "s", ONWARD), *shown)


def _steps() -> Panel:
    text = "Mean duration of each step: where runs spend their time."
    by = (names.PIPELINE, names.STEP)
    shown = top(mean(names.STEP_DURATION, RANGE, *by), legend(*by), *by, others="max")
    return ranking("Mean duration of steps", Look(text, "s", ONWARD), *shown)


def _read() -> Panel:
    query = added(grown(names.READ, INTERVAL), names.PIPELINE)
    look = Look("Rows that runs read from their sources.", "locale", ONWARD)
    return bars("Rows read", look, *top(query, legend(names.PIPELINE), names.PIPELINE))


def _written() -> Panel:
    by = (names.PIPELINE, names.TABLE)
    look = Look("Rows that runs wrote, by table.", "locale", ONWARD)
    return bars("Rows written", look, *top(added(grown(names.WRITTEN, INTERVAL), *by), legend(*by), *by))


def _set_aside() -> Panel:
    text = "Rows that were read and not published: quarantined as invalid, or older versions of a key."
    return bars(
        "Rows not published",
        Look(text, "locale", (links.QUALITY, links.ALL_TRACES)),
        Query(added(grown(names.QUARANTINED, INTERVAL)), "quarantined"),
        Query(added(grown(names.DUPLICATE, INTERVAL)), "duplicate"),
    )


def _bytes() -> Panel:
    return bars(
        "Bytes",
        Look("Bytes that runs read from their sources and wrote to their tables.", "bytes", (links.ALL_TRACES,)),
        Query(added(grown(names.READ_BYTES, INTERVAL)), "read"),
        Query(added(grown(names.WRITTEN_BYTES, INTERVAL)), "written"),
    )


def _freshness() -> Panel:
    text = "Age of the newest row when its table was published, measured from the end of its day."
    by = (names.PIPELINE, names.TABLE)
    query = largest(last(names.FRESHNESS, INTERVAL), *by)
    look = Look(text, "s", (links.QUALITY_OF, *ONWARD), interval="1m")
    return points("Age of the newest row", look, *top(query, legend(*by), *by, others="max"))


def _schedule() -> Panel:
    columns = (
        Column(
            label(names.PIPELINE), "Pipeline", links=(links.QUALITY_OF_CELL, links.TRACES_OF_CELL, links.LOGS_OF_CELL)
        ),
        Column("Value #A", "Runs", "locale", width=80),
        Column("Value #B", "Failed", "locale", colors=NONE_IS_GOOD, width=80),
        Column("Value #C", "Last success", "dateTimeFromNow", empty="never"),
        Column("Value #D", "Last failure", "dateTimeFromNow", empty="never"),
        Column("Value #E", "Next run due", "dateTimeFromNow", texts=NEVER, empty="not scheduled"),
        Column("Value #F", "Run missed", "dateTimeFromNow", texts=NEVER, empty="not scheduled"),
        Column("Value #G", "Data stale", "dateTimeFromNow", empty="no"),
        Column("Value #H", "Days to run again", "locale"),
    )
    moments = (names.LAST_SUCCESS, names.LAST_FAILURE, names.SCHEDULE_DUE, names.SCHEDULE_MISSED, names.DATA_STALE)
    text = (
        "Last runs, what the `schedule` expects, and days of tables that were made of what has changed since. "
        "Alerts: PipelineRunLate, PipelineRunMissing, PipelineDataStale, PipelineInputsChanged."
    )
    queries = [
        Query(added(grown(names.RUNS, RANGE), names.PIPELINE)),
        Query(added(grown(names.RUNS, RANGE, f"{OF_PIPELINE}, {FAILED}"), names.PIPELINE)),
        *(Query(f"1000 * {largest(last(moment, '15d'), names.PIPELINE)}") for moment in moments),
        Query(largest(last(names.STALE_DAYS, "25h"), names.PIPELINE)),
    ]
    look = Look(text, "none", (links.ALERTS, links.ALL_TRACES), empty="No run within 15 days")
    return rows("Pipelines and their schedule", look, columns, *queries).sized(24, 8)


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

"""What pipelines did: how their runs ended, how long they took, what went in and came out, how fresh it is."""

from app.telemetry import names
from app.telemetry.prometheus_names import label
from grafana import links
from grafana.board import PIPELINES, Board, Row
from grafana.look import NONE_IS_GOOD, OUTCOMES, Column, Look
from grafana.panels import Panel, Query, bars, figure, lines_of_log, points, ranking, rows, runs
from grafana.queries import INTERVAL, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean, step

ONWARD = (links.TRACES_OF, links.LOGS_OF)
NEVER = {"0": ("not scheduled", "text")}


def board() -> Board:
    """Runs of the chosen pipelines."""
    return Board(
        "pipeline-runs",
        "pipelines",
        "Pipeline runs",
        "How runs ended, how long they took, what they read and wrote, and how fresh it is.",
        (
            Row("Outcome", (_ended(), _since_success(), _unresolved(), _outcomes(), _durations())),
            Row("Duration", (_span_durations(), _step_span_durations(), _means(), _steps())),
            Row("Rows and bytes", (_read(), _written(), _set_aside(), _bytes())),
            Row("Freshness and schedule", (_freshness(), _schedule())),
            Row("Traces and logs", (_traces(), _logs())),
        ),
        by=PIPELINES,
        since="now-24h",
    )


def _ended() -> Panel:
    look = Look(
        "Runs that ended within the time range, by how they ended.", "none", (links.ALL_TRACES,), series=OUTCOMES
    )
    return figure("Runs", look, Query(added(grown(names.RUNS, RANGE), names.OUTCOME), legend(names.OUTCOME))).sized(
        12, 4
    )


def _since_success() -> Panel:
    text = "Time since the last success, looking back 15 days. Alert: PipelineRunLate, where a schedule is declared."
    recorded = f"pipeline:run_last_success_timestamp_seconds:max{{{OF_PIPELINE}}}"
    return figure(
        "Since the last success",
        Look(text, "s", ONWARD),
        Query(f"time() - {largest(recorded, names.PIPELINE)}", legend(names.PIPELINE)),
    ).sized(6, 4)


def _unresolved() -> Panel:
    text = "Rows that were read and are nowhere, in all; anything but 0 is a bug. Alert: PipelineRowsUnaccounted."
    look = Look(text, "locale", ONWARD, NONE_IS_GOOD)
    return figure(
        "Rows unaccounted", look, Query(added(grown(names.UNACCOUNTED, RANGE), names.PIPELINE), legend(names.PIPELINE))
    ).sized(6, 4)


def _outcomes() -> Panel:
    text = "Runs by how they ended; `rejected`: by a promise about the data. Alert: PipelineRunFailing."
    look = Look(text, "none", (links.ALL_TRACES,), series=OUTCOMES)
    return bars(
        "Runs by outcome", look, Query(added(grown(names.RUNS, INTERVAL), names.OUTCOME), legend(names.OUTCOME))
    )


def _durations() -> Panel:
    text = "How long runs took: one point where runs ended, their mean if there were several."
    query = Query(
        mean(names.RUN_DURATION, INTERVAL, names.PIPELINE, names.OUTCOME), legend(names.PIPELINE, names.OUTCOME)
    )
    return points("Duration of runs", Look(text, "s", ONWARD, interval="1m"), query)


def _span_durations() -> Panel:
    text = "95 % of the runs ended within this time, as far as buckets tell. A diamond is a run and leads to its trace."
    return _of_spans("Runs and their traces", text, f"{names.RUN_SPAN.prefix} ($pipeline)")


def _step_span_durations() -> Panel:
    text = (
        "95 % of the steps ended within this time, as far as buckets tell. A diamond is a step and leads to its trace."
    )
    return _of_spans("Steps and their traces", text, f"{names.STEP_SPAN.prefix} .+")


def _of_spans(title: str, text: str, spans: str) -> Panel:
    where = f'service_name="{names.DEFAULT_SERVICE_NAME}", span_name=~"{spans}"'
    buckets = f"traces_span_metrics_duration_seconds_bucket{{{where}}}"
    new = step(buckets, f"{buckets} offset {INTERVAL}")
    query = Query(f"histogram_quantile(0.95, sum by (le, span_name) ({new}))", "{{span_name}}", has_exemplars=True)
    return points(title, Look(text, "s", (links.TRACES_OF_SPAN,), interval="1m"), query)


def _means() -> Panel:
    text = "How long the runs of each pipeline took on average within the time range."
    query = Query(mean(names.RUN_DURATION, RANGE, names.PIPELINE), legend(names.PIPELINE))
    return ranking("Mean duration of runs", Look(text, "s", ONWARD), query)


def _steps() -> Panel:
    text = "Where the time goes: how long each step took on average. What is slow here is worth opening in a trace."
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
    text = "Rows that were read and not published: quarantined as invalid, or with a later version of their key."
    return bars(
        "Rows set aside",
        Look(text, "locale", (links.QUALITY_OF, *ONWARD)),
        Query(added(grown(names.QUARANTINED, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} quarantined"),
        Query(added(grown(names.DUPLICATE, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} duplicate"),
    )


def _bytes() -> Panel:
    return bars(
        "Bytes",
        Look("Bytes that runs read from their sources, and wrote to their tables.", "bytes", ONWARD),
        Query(added(grown(names.READ_BYTES, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} read"),
        Query(added(grown(names.WRITTEN_BYTES, INTERVAL), names.PIPELINE), f"{legend(names.PIPELINE)} written"),
    )


def _freshness() -> Panel:
    text = "How old the newest row was when its table was published, seen from the end of its day."
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
    )
    moments = (names.LAST_SUCCESS, names.LAST_FAILURE, names.SCHEDULE_DUE, names.SCHEDULE_MISSED, names.DATA_STALE)
    text = "Last runs, and what the `schedule` expects. Alerts: PipelineRunLate, PipelineRunMissing, PipelineDataStale."
    asked = [Query(f"1000 * {largest(last(moment, '15d'), names.PIPELINE)}") for moment in moments]
    return rows("Schedule", Look(text, "none", (links.ALERTS, links.ALL_TRACES)), columns, *asked).sized(14, 8)


def _traces() -> Panel:
    text = "The latest runs of all pipelines, each with its steps. The id leads to the trace, and that to its logs."
    return runs("Latest traces", Look(text, "none", (links.ALL_TRACES,)), names.DEFAULT_SERVICE_NAME)


def _logs() -> Panel:
    text = (
        "What runs of the chosen pipelines logged; a line leads to its trace, and the trace to the lines of executors."
    )
    return lines_of_log(
        "Log lines of runs",
        Look(text, "none", (links.TROUBLE, links.EXECUTORS)),
        f"attributes.{names.PIPELINE.name}:$pipeline",
    )

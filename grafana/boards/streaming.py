"""Streaming queries: whether they run, how fast, how far behind, what they remember, and what they leave out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from grafana import links
from grafana.board import NAMESPACES, Board, Choice, Row
from grafana.look import NONE_IS_GOOD, STREAM_STATES, Column, Look
from grafana.panels import Panel, Query, bars, lines, lines_of_log, rows, states, top
from grafana.queries import INTERVAL, OF_APPLICATION, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean
from grafana.verdict import verdict
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series

ONWARD: Final = (links.BATCHES_OF, links.LOGS_OF)
ALIVE: Final = "5m"
PROGRAMS: Final = Choice("application", "Application", series(names.STREAM_BATCHES), names.APPLICATION)
NAMESPACES_OF_PROGRAMS: Final = replace(NAMESPACES, series=series(names.STREAM_BATCHES))
QUERIES: Final = Choice("pipeline", "Query", series(names.STREAM_BATCHES), names.PIPELINE)
CHOSEN: Final = f"{OF_APPLICATION}, {OF_PIPELINE}"
OF_A_QUERY: Final = (names.PIPELINE, names.APPLICATION)
"""Queries of two applications may have one name."""
OF_A_TOPIC: Final = (*OF_A_QUERY, names.TOPIC)
ENDED: Final[tuple[names.StreamState, ...]] = ("stopped", "failed")
"""The states that a query keeps: it gives no sign of life, and that is no fault."""
NO_QUERY: Final = "No query ran in this time range, if Telemetry arrives"
NO_STATE: Final = "No query that ran has a state"
NO_WATERMARK: Final = "No query that ran has a watermark"
NAMED: Final = f"{legend(names.PIPELINE)} of {legend(names.APPLICATION)}"


def board() -> Board:
    """The chosen streaming queries."""
    return Board(
        "streaming",
        "pipelines",
        "Streaming: do queries run and keep up?",
        "Whether streaming queries run and keep up, what they remember, and what they leave out: those of pipelines, "
        "and those of any program whose event log is followed, by the names of query and application.",
        (
            Row(
                "Is it well, since when, where to look",
                verdict("streaming", onward=(links.BATCHES_OF_CELL, links.LOGS_OF_CELL)),
            ),
            Row("Queries", (_queries(), _states())),
            Row("Speed", (_rates(), _durations(), _batches(), _phases(), _progress_ages())),
            Row("Lag", (_lag_records(), _lag_time())),
            Row("Watermark and state", (_watermark_delay(), _state_rows(), _state_memory(), _state_commits())),
            Row("Left out, and started again", (_left_out(),)),
            Row("Logs", (_logs(),)),
        ),
        by=(NAMESPACES_OF_PROGRAMS, PROGRAMS, QUERIES),
    )


def _queries() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Query", links=(links.BATCHES_OF_CELL, links.LOGS_OF_CELL)),
        Column("Value #A", "State", texts=STREAM_STATES, empty="no sign of life", width=120),
        Column(label(names.APPLICATION), "Application", links=(links.TRACES_OF_APPLICATION_CELL,)),
        Column("Value #B", "Last sign of life", "dateTimeFromNow"),
        Column("Value #C", "Last batch", "dateTimeFromNow"),
        Column("Value #D", "Batches", "locale", width=85),
        Column("Value #E", "Unread records", "locale"),
        Column("Value #F", "Lag", "s", width=90),
        Column("Value #G", "Late rows", "locale"),
        Column("Value #H", "Dead letters", "locale", colors=NONE_IS_GOOD),
        Column("Value #I", "Restarts", "locale", colors=NONE_IS_GOOD, width=85),
    )
    text = "One without a state gives no sign of life. Counts are for the time range. Alert: StreamQueryDown."
    return rows(
        "Queries",
        Look(text, "none", (links.ALERTS, links.ALL_TRACES), empty=NO_QUERY),
        columns,
        Query(f"{_state(ALIVE)} or {_state(RANGE, ENDED)} > 0"),
        Query(f"1000 * {_last(names.STREAM_STATE_TIME, RANGE)}"),
        Query(f"1000 * {_last(names.STREAM_LAST_BATCH, RANGE)}"),
        Query(_grown(names.STREAM_BATCHES, RANGE)),
        Query(added(largest(last(names.STREAM_LAG_RECORDS, ALIVE, CHOSEN), *OF_A_TOPIC), *OF_A_QUERY)),
        Query(_last(names.STREAM_LAG_TIME, ALIVE)),
        Query(_grown(names.STREAM_LATE, RANGE)),
        Query(_grown(names.DEAD_LETTERS, RANGE)),
        Query(_grown(names.STREAM_RESTARTS, RANGE)),
    ).sized(24, 7)


def _state(window: str, states: Sequence[names.StreamState] = names.STREAM_STATES) -> str:
    """The number of the present state of each query, from 1; the other states are 0."""
    gauges = {
        state: last(names.STREAM_STATE_NOW, window, f'{CHOSEN}, {label(names.STREAM_STATE)}="{state}"')
        for state in states
    }
    numbered = (f"{names.STREAM_STATES.index(state) + 1} * {gauge}" for state, gauge in gauges.items())
    return largest(" or ".join(numbered), *OF_A_QUERY)


def _states() -> Panel:
    text = (
        "What each query does; `idle` waits for input. Nothing is drawn without a sign of life. Alert: StreamQueryDown."
    )
    look = Look(text, "none", ONWARD, texts=STREAM_STATES, interval="1m", empty=NO_QUERY)
    return states("States", look, Query(_state(INTERVAL), NAMED)).sized(24, 7)


def _rates() -> Panel:
    text = "Rows that arrived and rows that running batches processed, per second. Nothing is drawn while idle."
    return lines(
        "Rows per second",
        Look(text, "rowsps", (links.ALL_TRACES, links.TROUBLE), interval="1m", empty=NO_QUERY),
        Query(added(_last(names.STREAM_INPUT_RATE)), "arrived"),
        Query(added(_last(names.STREAM_PROCESSED_RATE)), "processed"),
    )


def _durations() -> Panel:
    text = "Mean duration of batches by the interval of the trigger: above 100 % a batch delays the next one."
    duration = mean(names.STREAM_BATCH_DURATION, INTERVAL, *OF_A_QUERY, where=CHOSEN)
    look = Look(text, "percentunit", ONWARD, interval="1m", empty=NO_QUERY)
    return lines(
        "Batches by their trigger", look, *_of_a_query(f"{duration} / ({_last(names.STREAM_TRIGGER)} > 0)", "max")
    )


def _batches() -> Panel:
    text = "Mean duration of batches."
    duration = mean(names.STREAM_BATCH_DURATION, INTERVAL, *OF_A_QUERY, where=CHOSEN)
    look = Look(text, "s", ONWARD, interval="1m", empty=NO_QUERY)
    return lines("Duration of batches", look, *_of_a_query(duration, "max"))


def _phases() -> Panel:
    text = "Time in each phase of batches. `addBatch` is the work itself; all else is overhead. Choose one query."
    query = Query(added(grown(names.STREAM_PHASE_DURATION, INTERVAL, CHOSEN), names.PHASE), legend(names.PHASE))
    return bars("Phases of batches", Look(text, "s", ONWARD, empty=NO_QUERY), query)


def _progress_ages() -> Panel:
    text = "Time since a query last ended a batch or found no input. Alert: StreamQueryStuck."
    return _over_time("Since the last progress", text, "s", names.STREAM_PROGRESS_AGE).sized(12, 9)


def _lag_records() -> Panel:
    text = (
        "Records that Kafka has and no batch has read, asked each second, or as Spark said after the last batch of a "
        "program that is only observed; of files, and while no broker answers, nothing is drawn. Alert: "
        "StreamFallingBehind."
    )
    return _by_topic("Unread records", text, "locale", names.STREAM_LAG_RECORDS)


def _lag_time() -> Panel:
    text = (
        "Age of the oldest unread record; of files, of the newest one that was read. 0 while nothing is unread. Alert: "
        "StreamLagHigh."
    )
    return _by_topic("Lag in time", text, "s", names.STREAM_LAG_TIME)


def _watermark_delay() -> Panel:
    text = "Newest event minus watermark. It stays near the configured delay. Alert: StreamWatermarkStalled."
    return _over_time("Watermark delay", text, "s", names.STREAM_WATERMARK_DELAY, NO_WATERMARK)


def _state_rows() -> Panel:
    text = "Rows that a query remembers. Alert: StreamStateGrowing."
    return _over_time("Rows in state", text, "locale", names.STREAM_STATE_ROWS, NO_STATE)


def _state_memory() -> Panel:
    text = "Memory that the state uses; of RocksDB, its files on disk are not included."
    return _over_time("Memory of state", text, "bytes", names.STREAM_STATE_MEMORY, NO_STATE)


def _state_commits() -> Panel:
    text = "Time that tasks spent on commits of state, added up over partitions."
    return _counted("Commits of state", text, names.STREAM_STATE_COMMIT, "s")


def _left_out() -> Panel:
    text = (
        "Rows after the watermark, duplicates, records that could not be parsed, those with fields that the schema of "
        "their topic does not know (the table events keeps them), those that Kafka deleted before they were read, and "
        "restarts of queries that failed. Alerts: StreamLateRows, StreamDeadLetters, StreamRecordsDeleted."
    )
    kinds = {
        "late": names.STREAM_LATE,
        "duplicate": names.DUPLICATE,
        "dead letters": names.DEAD_LETTERS,
        "unknown fields": names.STREAM_UNKNOWN_FIELDS,
        "deleted": names.STREAM_DELETED,
        "restarts": names.STREAM_RESTARTS,
    }
    look = Look(text, "locale", (links.ALL_TRACES, links.TROUBLE))
    queries = (Query(added(grown(metric, INTERVAL, CHOSEN)), name) for name, metric in kinds.items())
    return bars("Left out, and started again", look, *queries).sized(24, 8)


def _logs() -> Panel:
    return lines_of_log(
        "Log lines of queries",
        Look("Log lines of drivers about these queries.", "none", (links.TROUBLE, links.EXECUTORS)),
        f"attributes.{names.PIPELINE.name}:$pipeline",
    )


def _last(metric: names.Metric, window: str = INTERVAL) -> str:
    return largest(last(metric, window, CHOSEN), *OF_A_QUERY)


def _grown(metric: names.Metric, window: str = INTERVAL) -> str:
    return added(grown(metric, window, CHOSEN), *OF_A_QUERY)


def _of_a_query(expression: str, others: str = "sum") -> list[Query]:
    return top(expression, NAMED, *OF_A_QUERY, others=others)


def _over_time(title: str, text: str, unit: str, metric: names.Metric, empty: str = NO_QUERY) -> Panel:
    look = Look(text, unit, ONWARD, interval="1m", empty=empty)
    return lines(title, look, *_of_a_query(_last(metric), "max")).sized(12, 9)


def _by_topic(title: str, text: str, unit: str, metric: names.Metric) -> Panel:
    levels = largest(last(metric, INTERVAL, CHOSEN), *OF_A_TOPIC)
    shown = top(levels, f"{NAMED}: {legend(names.TOPIC)}", *OF_A_TOPIC, others="max")
    look = Look(text, unit, ONWARD, interval="1m", empty="No query read such a source in this time range")
    return lines(title, look, *shown).sized(12, 9)


def _counted(title: str, text: str, metric: names.Metric, unit: str = "locale") -> Panel:
    return bars(title, Look(text, unit, ONWARD), *_of_a_query(_grown(metric))).sized(12, 9)

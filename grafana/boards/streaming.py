"""Streaming queries: whether they run, how fast, how far behind, what they remember, and what they leave out."""

from dataclasses import replace
from typing import Final

from grafana import links
from grafana.board import NAMESPACES, Board, Choice, Row
from grafana.look import NONE_IS_GOOD, STREAM_STATES, Column, Look
from grafana.panels import Panel, Query, bars, lines, lines_of_log, rows, states
from grafana.queries import INTERVAL, OF_APPLICATION, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean
from spark_app.telemetry import names
from spark_app.telemetry.prometheus_names import label, series

ONWARD: Final = (links.BATCHES_OF, links.LOGS_OF)
ALIVE: Final = "5m"
PROGRAMS: Final = Choice("application", "Application", series(names.STREAM_BATCHES), names.APPLICATION)
NAMESPACES_OF_PROGRAMS: Final = replace(NAMESPACES, series=series(names.STREAM_BATCHES))
QUERIES: Final = Choice("pipeline", "Query", series(names.STREAM_BATCHES), names.PIPELINE)
CHOSEN: Final = f"{OF_APPLICATION}, {OF_PIPELINE}"
OF_A_QUERY: Final = (names.PIPELINE, names.APPLICATION)
"""Queries of two applications may have one name."""
OF_A_TOPIC: Final = (*OF_A_QUERY, names.TOPIC)
NAMED: Final = f"{legend(names.PIPELINE)} of {legend(names.APPLICATION)}"


def board() -> Board:
    """The chosen streaming queries."""
    return Board(
        "streaming",
        "pipelines",
        "Streaming",
        "Whether streaming queries run and keep up, what they remember, and what they leave out: those of pipelines, "
        "and those of any program whose event log is followed, by the names of query and application.",
        (
            Row("Queries", (_queries(), _states())),
            Row("Speed", (_rates(), _durations(), _phases(), _progress_ages())),
            Row("Lag", (_lag_records(), _lag_time(), _watermark_delay())),
            Row("State", (_state_rows(), _state_memory(), _state_commits())),
            Row(
                "Left out, and started again",
                (_late(), _duplicates(), _dead_letters(), _unknown_fields(), _deleted(), _restarts()),
            ),
            Row("Logs", (_logs(),)),
        ),
        by=(NAMESPACES_OF_PROGRAMS, PROGRAMS, QUERIES),
    )


def _queries() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Query", links=(links.BATCHES_OF_CELL, links.LOGS_OF_CELL)),
        Column(label(names.APPLICATION), "Application", links=(links.TRACES_OF_APPLICATION_CELL,)),
        Column("Value #A", "State", texts=STREAM_STATES),
        Column("Value #B", "Last sign of life", "dateTimeFromNow"),
        Column("Value #C", "Last batch", "dateTimeFromNow"),
        Column("Value #D", "Batches", "locale"),
        Column("Value #E", "Unread records", "locale"),
        Column("Value #F", "Lag", "s"),
        Column("Value #G", "Late rows", "locale"),
        Column("Value #H", "Dead letters", "locale", colors=NONE_IS_GOOD),
        Column("Value #I", "Restarts", "none", colors=NONE_IS_GOOD),
    )
    text = "One without a state gives no sign of life. Counts are for the time range. Alert: StreamQueryDown."
    return rows(
        "Queries",
        Look(text, "none", (links.ALERTS, links.ALL_TRACES)),
        columns,
        Query(_state(ALIVE)),
        Query(f"1000 * {_last(names.STREAM_STATE_TIME, RANGE)}"),
        Query(f"1000 * {_last(names.STREAM_LAST_BATCH, RANGE)}"),
        Query(_grown(names.STREAM_BATCHES, RANGE)),
        Query(added(largest(last(names.STREAM_LAG_RECORDS, ALIVE, CHOSEN), *OF_A_TOPIC), *OF_A_QUERY)),
        Query(_last(names.STREAM_LAG_TIME, ALIVE)),
        Query(_grown(names.STREAM_LATE, RANGE)),
        Query(_grown(names.DEAD_LETTERS, RANGE)),
        Query(_grown(names.STREAM_RESTARTS, RANGE)),
    ).sized(24, 7)


def _state(window: str) -> str:
    """The number of the present state of each query, from 1; the other states are 0."""
    of_states = [f'{CHOSEN}, {label(names.STREAM_STATE)}="{state}"' for state in names.STREAM_STATES]
    gauges = [last(names.STREAM_STATE_NOW, window, where) for where in of_states]
    return largest(" or ".join(f"{place + 1} * {gauge}" for place, gauge in enumerate(gauges)), *OF_A_QUERY)


def _states() -> Panel:
    text = (
        "What each query does; `idle` waits for input. Nothing is drawn without a sign of life. Alert: StreamQueryDown."
    )
    look = Look(text, "none", ONWARD, texts=STREAM_STATES, interval="1m")
    return states("States", look, Query(_state(INTERVAL), NAMED)).sized(24, 7)


def _rates() -> Panel:
    text = "Rows that arrived and rows that a running batch processed, per second. Nothing is drawn while idle."
    return lines(
        "Rows per second",
        Look(text, "rowsps", ONWARD, interval="1m"),
        Query(_last(names.STREAM_INPUT_RATE), f"{NAMED}: arrived"),
        Query(_last(names.STREAM_PROCESSED_RATE), f"{NAMED}: processed"),
    )


def _durations() -> Panel:
    text = "Mean duration of batches beside the interval of the trigger: a longer batch delays the next one."
    return lines(
        "Duration of batches",
        Look(text, "s", ONWARD, interval="1m"),
        Query(mean(names.STREAM_BATCH_DURATION, INTERVAL, *OF_A_QUERY, where=CHOSEN), NAMED),
        Query(_last(names.STREAM_TRIGGER), f"{NAMED}: trigger"),
    )


def _phases() -> Panel:
    text = "Time in each phase of batches. `addBatch` is the work itself; all else is overhead. Choose one query."
    query = Query(added(grown(names.STREAM_PHASE_DURATION, INTERVAL, CHOSEN), names.PHASE), legend(names.PHASE))
    return bars("Phases of batches", Look(text, "s", ONWARD), query)


def _progress_ages() -> Panel:
    text = "Time since a query last ended a batch or found no input. Alert: StreamQueryStuck."
    query = Query(_last(names.STREAM_PROGRESS_AGE), NAMED)
    return lines("Since the last progress", Look(text, "s", ONWARD, interval="1m"), query)


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
    return _over_time("Watermark delay", text, "s", names.STREAM_WATERMARK_DELAY)


def _state_rows() -> Panel:
    text = "Rows that a query remembers. Alert: StreamStateGrowing."
    return _over_time("Rows in state", text, "locale", names.STREAM_STATE_ROWS)


def _state_memory() -> Panel:
    text = "Memory that the state uses; of RocksDB, its files on disk are not included."
    return _over_time("Memory of state", text, "bytes", names.STREAM_STATE_MEMORY)


def _state_commits() -> Panel:
    text = "Time that tasks spent on commits of state, added up over partitions."
    return _counted("Commits of state", text, names.STREAM_STATE_COMMIT, "s")


def _late() -> Panel:
    text = "Rows that came after the watermark and were dropped. Alert: StreamLateRows."
    return _counted("Late rows", text, names.STREAM_LATE)


def _duplicates() -> Panel:
    return _counted("Duplicates", "Rows that were dropped as duplicates.", names.DUPLICATE)


def _dead_letters() -> Panel:
    text = "Records that could not be parsed. Alert: StreamDeadLetters."
    return _counted("Dead letters", text, names.DEAD_LETTERS)


def _unknown_fields() -> Panel:
    text = "Records with fields that the schema of their topic does not know; the table events keeps them."
    return _counted("Unknown fields", text, names.STREAM_UNKNOWN_FIELDS)


def _deleted() -> Panel:
    text = "Records that Kafka deleted before they were read. Alert: StreamRecordsDeleted."
    return _counted("Deleted before they were read", text, names.STREAM_DELETED)


def _restarts() -> Panel:
    text = "Restarts of queries that failed."
    return _counted("Restarts", text, names.STREAM_RESTARTS)


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


def _over_time(title: str, text: str, unit: str, metric: names.Metric) -> Panel:
    return lines(title, Look(text, unit, ONWARD, interval="1m"), Query(_last(metric), NAMED)).sized(8, 8)


def _by_topic(title: str, text: str, unit: str, metric: names.Metric) -> Panel:
    query = Query(largest(last(metric, INTERVAL, CHOSEN), *OF_A_TOPIC), f"{NAMED}: {legend(names.TOPIC)}")
    return lines(title, Look(text, unit, ONWARD, interval="1m"), query).sized(8, 8)


def _counted(title: str, text: str, metric: names.Metric, unit: str = "locale") -> Panel:
    return bars(title, Look(text, unit, ONWARD), Query(_grown(metric), NAMED)).sized(8, 8)

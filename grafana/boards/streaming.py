"""Streaming queries: whether they run, how fast, how far behind, what they remember, and what they leave out."""

from typing import Final

from grafana import links
from grafana.board import Board, Choice, Row
from grafana.look import NONE_IS_GOOD, STREAM_STATES, Column, Look
from grafana.panels import Panel, Query, bars, lines, lines_of_log, rows, states
from grafana.queries import INTERVAL, OF_PIPELINE, RANGE, added, grown, largest, last, legend, mean
from spark_app.telemetry import names
from spark_app.telemetry.prometheus_names import label, series

ONWARD: Final = (links.TRACES_OF, links.LOGS_OF)
ALIVE: Final = "5m"
QUERIES: Final = Choice("pipeline", "Query", series(names.STREAM_BATCHES), names.PIPELINE)
OF_A_TOPIC: Final = (names.PIPELINE, names.TOPIC)


def board() -> Board:
    """The chosen streaming queries."""
    return Board(
        "streaming",
        "pipelines",
        "Streaming",
        "Whether streaming queries run and keep up, what they remember, and what they leave out: those of pipelines, "
        "and those of any program whose event log is followed, by the name of the query or else of the application.",
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
        by=QUERIES,
    )


def _queries() -> Panel:
    columns = (
        Column(label(names.PIPELINE), "Query", links=(links.TRACES_OF_CELL, links.LOGS_OF_CELL)),
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
        Query(f"1000 * {largest(last(names.STREAM_STATE_TIME), names.PIPELINE)}"),
        Query(f"1000 * {largest(last(names.STREAM_LAST_BATCH), names.PIPELINE)}"),
        Query(added(grown(names.STREAM_BATCHES, RANGE), names.PIPELINE)),
        Query(added(largest(last(names.STREAM_LAG_RECORDS, ALIVE), *OF_A_TOPIC), names.PIPELINE)),
        Query(largest(last(names.STREAM_LAG_TIME, ALIVE), names.PIPELINE)),
        Query(added(grown(names.STREAM_LATE, RANGE), names.PIPELINE)),
        Query(added(grown(names.DEAD_LETTERS, RANGE), names.PIPELINE)),
        Query(added(grown(names.STREAM_RESTARTS, RANGE), names.PIPELINE)),
    ).sized(24, 7)


def _state(window: str) -> str:
    """The number of the present state of each query, from 1; the other states are 0."""
    of_states = [f'{OF_PIPELINE}, {label(names.STREAM_STATE)}="{state}"' for state in names.STREAM_STATES]
    gauges = [last(names.STREAM_STATE_NOW, window, where) for where in of_states]
    return largest(" or ".join(f"{place + 1} * {gauge}" for place, gauge in enumerate(gauges)), names.PIPELINE)


def _states() -> Panel:
    text = (
        "What each query does; `idle` waits for input. Nothing is drawn without a sign of life. Alert: StreamQueryDown."
    )
    look = Look(text, "none", ONWARD, texts=STREAM_STATES, interval="1m")
    return states("States", look, Query(_state(INTERVAL), legend(names.PIPELINE))).sized(24, 7)


def _rates() -> Panel:
    text = "Rows that arrived and rows that a running batch processed, per second. Nothing is drawn while idle."
    return lines(
        "Rows per second",
        Look(text, "rowsps", ONWARD, interval="1m"),
        Query(_last(names.STREAM_INPUT_RATE), f"{legend(names.PIPELINE)} arrived"),
        Query(_last(names.STREAM_PROCESSED_RATE), f"{legend(names.PIPELINE)} processed"),
    )


def _durations() -> Panel:
    text = "Mean duration of batches beside the interval of the trigger: a longer batch delays the next one."
    return lines(
        "Duration of batches",
        Look(text, "s", ONWARD, interval="1m"),
        Query(mean(names.STREAM_BATCH_DURATION, INTERVAL, names.PIPELINE), legend(names.PIPELINE)),
        Query(_last(names.STREAM_TRIGGER), f"{legend(names.PIPELINE)} trigger"),
    )


def _phases() -> Panel:
    text = "Time in each phase of batches. `addBatch` is the work itself; all else is overhead. Choose one query."
    query = Query(added(grown(names.STREAM_PHASE_DURATION, INTERVAL), names.PHASE), legend(names.PHASE))
    return bars("Phases of batches", Look(text, "s", ONWARD), query)


def _progress_ages() -> Panel:
    text = "Time since a query last ended a batch or found no input. Alert: StreamQueryStuck."
    query = Query(_last(names.STREAM_PROGRESS_AGE), legend(names.PIPELINE))
    return lines("Since the last progress", Look(text, "s", ONWARD, interval="1m"), query)


def _lag_records() -> Panel:
    text = (
        "Records that Kafka has and no batch has read, asked each second, or as Spark said after the last batch of a "
        "program that is only observed; of files, and while no broker answers, nothing is drawn. Alert: "
        "StreamFallingBehind."
    )
    query = Query(largest(last(names.STREAM_LAG_RECORDS, INTERVAL), *OF_A_TOPIC), legend(*OF_A_TOPIC))
    return lines("Unread records", Look(text, "locale", ONWARD, interval="1m"), query).sized(8, 8)


def _lag_time() -> Panel:
    text = (
        "Age of the oldest unread record; of files, of the newest one that was read. 0 while nothing is unread. Alert: "
        "StreamLagHigh."
    )
    query = Query(largest(last(names.STREAM_LAG_TIME, INTERVAL), *OF_A_TOPIC), legend(*OF_A_TOPIC))
    return lines("Lag in time", Look(text, "s", ONWARD, interval="1m"), query).sized(8, 8)


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
    query = Query(added(grown(names.STREAM_STATE_COMMIT, INTERVAL), names.PIPELINE), legend(names.PIPELINE))
    return bars("Commits of state", Look(text, "s", ONWARD), query).sized(8, 8)


def _late() -> Panel:
    text = "Rows that came after the watermark and were dropped. Alert: StreamLateRows."
    return _counted("Late rows", text, names.STREAM_LATE).sized(8, 8)


def _duplicates() -> Panel:
    return _counted("Duplicates", "Rows that were dropped as duplicates.", names.DUPLICATE).sized(8, 8)


def _dead_letters() -> Panel:
    text = "Records that could not be parsed. Alert: StreamDeadLetters."
    return _counted("Dead letters", text, names.DEAD_LETTERS).sized(8, 8)


def _unknown_fields() -> Panel:
    text = "Records with fields that the schema of their topic does not know; the table events keeps them."
    return _counted("Unknown fields", text, names.STREAM_UNKNOWN_FIELDS).sized(8, 8)


def _deleted() -> Panel:
    text = "Records that Kafka deleted before they were read. Alert: StreamRecordsDeleted."
    return _counted("Deleted before they were read", text, names.STREAM_DELETED).sized(8, 8)


def _restarts() -> Panel:
    text = "Restarts of queries that failed."
    return _counted("Restarts", text, names.STREAM_RESTARTS).sized(8, 8)


def _logs() -> Panel:
    return lines_of_log(
        "Log lines of queries",
        Look("Log lines of drivers about these queries.", "none", (links.TROUBLE, links.EXECUTORS)),
        f"attributes.{names.PIPELINE.name}:$pipeline",
    )


def _last(metric: names.Metric) -> str:
    return largest(last(metric, INTERVAL), names.PIPELINE)


def _over_time(title: str, text: str, unit: str, metric: names.Metric) -> Panel:
    query = Query(_last(metric), legend(names.PIPELINE))
    return lines(title, Look(text, unit, ONWARD, interval="1m"), query).sized(8, 8)


def _counted(title: str, text: str, metric: names.Metric, where: str = OF_PIPELINE) -> Panel:
    query = Query(added(grown(metric, INTERVAL, where), names.PIPELINE), legend(names.PIPELINE))
    return bars(title, Look(text, "locale", ONWARD), query)

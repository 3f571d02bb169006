"""Measures the streaming queries of a program that does not measure them itself, by what its event log says.

Metrics and labels are those of our own queries (`spark_app.telemetry.stream_telemetry`). What a log cannot tell is
absent: dead letters, records that Kafka deleted, rows by table, and lag between two micro-batches.
"""

from typing import Final

from spark_app.eventlog.bridge.histograms import BATCH_DURATION
from spark_app.eventlog.bridge.metrics import Numbers, QueryStatus, Series
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.parse.events import QueryStarted
from spark_app.vocabulary import names
from spark_app.vocabulary.names import StreamState
from spark_app.vocabulary.spark_names import UNNAMED, WORKLOAD
from spark_app.vocabulary.spark_progress import Progress
from spark_app.vocabulary.stream_measurements import measurements

MAX_NAME: Final = 100
"""Characters of the name of a query in a label."""
MAX_TOPICS: Final = 50
"""Topics of a micro-batch that are labels; a query that subscribes to a pattern may read any number."""
SILENCE_MS: Final = 60_000
"""A query is alive for so long without an event, or for three times its longest time between two reports."""
UNKNOWN_SILENCE_MS: Final = 3_600_000
"""The same while a micro-batch runs, and before a second report: how long that takes is not known."""


class StreamMetrics:
    """The streaming queries of one log; of an application of `spark-app`, which measures its own, nothing."""

    def __init__(self, app: Application) -> None:
        """Takes each event after the application took it."""
        self._app = app

    @property
    def _measures_itself(self) -> bool:
        return WORKLOAD in self._app.properties

    def started(self, numbers: Numbers, event: QueryStarted) -> None:
        """Counts the start of a run."""
        query = self._app.streams.queries[event.query]
        if self._measures_itself:
            return
        counted = numbers.query(_name(query))
        counted.count(names.STREAM_BATCHES, more=0)
        counted.count(names.STREAM_RESTARTS, more=int(query.is_restart))

    def progressed(self, numbers: Numbers, progress: Progress) -> None:
        """Counts a micro-batch, unless the log had it before."""
        query = self._app.streams.queries[progress.query]
        if self._measures_itself or query.progress is not progress:
            return
        counted = numbers.query(_name(query))
        if progress.duration_ms is not None:
            counted.durations.add([progress.duration_ms], BATCH_DURATION.bounds)
        for each in measurements(progress):
            if each.metric.kind == "counter":
                counted.count(each.metric, *each.labels.values(), more=each.value)
        rows = {names.READ: progress.rows_read, names.DUPLICATE: progress.rows_duplicate}
        for metric, count in rows.items():
            if count is not None:
                counted.count(metric, more=count)

    def look(self, numbers: Numbers, *, now: float, is_over: bool) -> None:
        """Sets the status of each query; of a log that is no longer read, as of its last event."""
        queries = [] if self._measures_itself else self._app.streams.queries.values()
        for query in queries:
            numbers.query(_name(query)).status = None
        for query in queries:
            numbers.query(_name(query)).is_now(self._status(query, round(now * 1000), is_over=is_over))

    def _status(self, query: StreamQuery, now: int, *, is_over: bool) -> QueryStatus:
        ended = self._app.ended if query.ended is None else query.ended
        if ended is not None:  # known later than what was said of it while it ran
            known_at = now if now - ended <= UNKNOWN_SILENCE_MS else ended
            return QueryStatus(ended / 1000, known_at / 1000, "stopped" if query.error is None else "failed")
        reported_at = query.reported_at or query.started or 0
        until = max(self._app.last, reported_at) + self._patience(query)
        levels = self._levels(query, now) if now <= until and not is_over else {}
        return QueryStatus(reported_at / 1000, min(now, until) / 1000, self._state(query), levels)

    def _patience(self, query: StreamQuery) -> int:
        """How long a query that is alive may give no sign of life, in milliseconds."""
        if query.longest_silence_ms is None or self._app.streams.open_batch(query) is not None:
            return UNKNOWN_SILENCE_MS
        return max(SILENCE_MS, 3 * query.longest_silence_ms)

    def _state(self, query: StreamQuery) -> StreamState:
        if self._app.streams.open_batch(query) is not None:
            return "running"
        if query.reported_at is None:
            return "starting"
        return "idle" if query.is_idle else "running"

    def _levels(self, query: StreamQuery, now: int) -> dict[Series, float]:
        """The gauges: those of the last micro-batch for a minute, and the age of one that runs."""
        levels = dict[Series, float]()
        if query.trigger.interval_ms is not None:
            levels[names.STREAM_TRIGGER.name,] = query.trigger.interval_ms / 1000
        batch = self._app.streams.open_batch(query)
        if batch is not None:
            levels[names.STREAM_PROGRESS_AGE.name,] = max(0, now - (query.reported_at or batch.started)) / 1000
        if query.progress is not None and now - query.progress.ended <= SILENCE_MS:
            levels |= _of_batch(query.progress)
        return levels


def _name(query: StreamQuery) -> str:
    """As in the spans of its micro-batches; without a name, its id would be another at each start."""
    return (query.name or UNNAMED)[:MAX_NAME]


def _of_batch(progress: Progress) -> dict[Series, float]:
    gauges = [each for each in measurements(progress) if each.metric.kind == "gauge"]
    topics = sorted({topic for each in gauges for topic in each.labels.values()})[:MAX_TOPICS]
    return {
        (each.metric.name, *each.labels.values()): each.value
        for each in gauges
        if all(topic in topics for topic in each.labels.values())
    }

"""The streaming queries of an application: their runs, and their current batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_app.eventlog.model import batch_descriptions
from spark_app.eventlog.model.stream_queries import StreamQuery, slim
from spark_app.eventlog.model.stream_samples import StateSkew
from spark_app.eventlog.model.stream_triggers import interval_ms
from spark_app.eventlog.parse.events import (
    JobProperties,
    QueryIdle,
    QueryProgress,
    QueryStarted,
    QueryTerminated,
    whole_number,
)
from spark_app.vocabulary.spark_progress import Progress

MAX_QUERIES: Final = 200
"""Queries of an application that are known at once: one without a checkpoint is another query at each start."""


class BatchKey(NamedTuple):
    """Identifies a batch by its streaming query, the run, and its number from 0."""

    query: str
    run: str
    number: int


@dataclass(slots=True)
class Batch:
    """A batch of a streaming query that has run queries or jobs.

    Attributes:
        first_seen, last_seen: The first start and the last end of its jobs and queries.
        name: The name of the query, if it has one.
        predecessor: The batch of its query before it in the log.
        traceparent: That of its first SQL execution or job, which the query has inherited from the thread that started
            it.
        progress: Spark's report about a finished batch, without custom metrics of its state; None for a failed one.
        skew: The stages with state that have ended so far.
        is_stopped: Whether its query ended during the batch.
        error: Why the query ended, if that was an error.
    """

    key: BatchKey
    first_seen: int
    last_seen: int
    name: str | None = None
    predecessor: BatchKey | None = None
    traceparent: str | None = None
    progress: Progress | None = None
    skew: StateSkew | None = None
    is_stopped: bool = False
    error: str | None = None

    def saw(self, time: int) -> None:
        """Notes the start or the end of a part of this batch."""
        self.first_seen = min(self.first_seen, time)
        self.last_seen = max(self.last_seen, time)

    @property
    def started(self) -> int:
        """The time of its trigger; if that is unknown, the start of its first job or query."""
        return self.first_seen if self.progress is None else min(self.first_seen, self.progress.started)

    @property
    def ended(self) -> int | None:
        """The time of its end; None while it runs."""
        if self.progress is not None:
            return max(self.last_seen, self.progress.ended)
        return self.last_seen if self.is_stopped else None


class Streams:
    """The batches so far, and the current run of each query.

    Attributes:
        batches: Batches that have run queries or jobs.
        queries: The streaming queries by their ids, with the history of all their batches.
        overhead_ms: The time of all batches outside of their SQL executions: for offsets, plans and checkpoints.
    """

    def __init__(self) -> None:
        """Starts without queries."""
        self.batches: dict[BatchKey, Batch] = {}
        self.queries: dict[str, StreamQuery] = {}
        self.overhead_ms = 0
        self._runs: dict[str, QueryStarted] = {}
        self._latest: dict[str, BatchKey] = {}
        self._newest: dict[str, BatchKey] = {}

    def query_started(self, event: QueryStarted) -> None:
        """Notes the start of a run; a query has one run at a time."""
        self._runs[event.query] = event
        self._query(event.query).begin(event)

    def restore(self, queries: Mapping[str, StreamQuery]) -> None:
        """Takes the histories of queries as of an earlier time, with the runs that have begun by then."""
        self.queries.update(queries)

    def configured(self, key: BatchKey | None, settings: Mapping[str, str]) -> None:
        """Takes what the session of a batch has changed."""
        if key is not None:
            self._query(key.query).settings = settings

    def stage_ended(self, key: BatchKey | None, skew: StateSkew | None) -> None:
        """Takes a stage with state of a batch."""
        batch = None if key is None else self.batches.get(key)
        if batch is None or skew is None:
            return
        if batch.skew is None:
            batch.skew = skew
        else:
            batch.skew.add(skew)

    def _query(self, number: str) -> StreamQuery:
        if number not in self.queries and len(self.queries) >= MAX_QUERIES:
            ended = (key for key, query in self.queries.items() if query.ended is not None)
            del self.queries[next(ended, next(iter(self.queries)))]
        return self.queries.setdefault(number, StreamQuery(number))

    def run_of(self, group: str | None) -> QueryStarted | None:
        """The current run of a streaming query with this job group."""
        return next((begun for begun in self._runs.values() if begun.run == group), None)

    def batch_in(self, time: int, begun: QueryStarted, description: str, traceparent: str | None) -> BatchKey | None:
        """The batch that a description names; None if it names none, as before the first batch."""
        described = batch_descriptions.parse(description)
        number = whole_number(described.batch) if described else None
        if number is None:
            return None
        return self._known(BatchKey(begun.query, begun.run, number), time, begun.name, traceparent)

    def batch_of(self, time: int, properties: JobProperties) -> BatchKey | None:
        """The batch of a job; None for jobs outside of batches.

        Where the log lacks the start of the query, the group of the job stands for the run: Spark sets the run's id as
        the group, unless the program sets another.
        """
        number = whole_number(properties.batch)
        if properties.query is None or number is None:
            return None
        self._query(properties.query).trigger.configured_ms = interval_ms(properties.trigger)
        begun = self._runs.get(properties.query)
        run = begun.run if begun else properties.group or ""
        name = begun.name if begun else None
        return self._known(BatchKey(properties.query, run, number), time, name, properties.traceparent)

    def _known(self, key: BatchKey, time: int, name: str | None, traceparent: str | None) -> BatchKey:
        self._latest[key.run] = key
        if key not in self.batches:
            before = self._newest.pop(key.query, None)
            self.batches[key] = Batch(key, time, time, name, before if before != key else None)
            self._newest[key.query] = key
            if len(self._newest) > MAX_QUERIES:
                self._newest.pop(next(iter(self._newest)))
        self.batches[key].traceparent = self.batches[key].traceparent or traceparent
        return key

    def saw(self, key: BatchKey | None, time: int) -> None:
        """Notes the start or the end of a part of a batch, if the batch is known and has not ended.

        A job that is cancelled with its query ends after the batch, whose span was sent.
        """
        batch = None if key is None else self.batches.get(key)
        if batch is not None and batch.ended is None:
            batch.saw(time)

    def progressed(self, event: QueryProgress) -> Batch | None:
        """Ends a batch; None if it ran no jobs, because a trigger found no new data, or has ended before."""
        progress = event.progress
        batch = self.batches.get(BatchKey(progress.query, progress.run, progress.batch))
        if self._query(progress.query).add(progress, batch.skew if batch else None):
            self.overhead_ms += progress.overhead_ms
        if batch is None or batch.ended is not None:
            return None
        batch.progress, batch.skew = slim(progress), None
        return batch

    def idle(self, event: QueryIdle) -> None:
        """Takes that a trigger found nothing to do."""
        self._query(event.query).report(event.run, round(event.triggered_at.timestamp() * 1000), is_idle=True)

    def open_batch(self, query: StreamQuery) -> Batch | None:
        """The batch that the current run of a query works on; None between batches."""
        key = self._latest.get(query.run)
        batch = None if key is None else self.batches.get(key)
        return batch if batch is not None and batch.ended is None else None

    def query_terminated(self, event: QueryTerminated, time: int) -> Batch | None:
        """Ends a run at the time of the events before; returns its unfinished batch, if any."""
        if event.query in self.queries:
            self.queries[event.query].end(event, time)
        self._runs.pop(event.query, None)
        key = self._latest.pop(event.run, None)
        batch = None if key is None else self.batches.get(key)
        if batch is None or batch.ended is not None:
            return None
        batch.saw(time)  # the log may lack the ends of its parts
        batch.is_stopped, batch.error = True, event.error
        return batch

"""Streaming queries of an application: their runs, and their batches, of which only those at work are known."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.eventlog.events import QueryProgress, QueryStarted, QueryTerminated
from app.eventlog.parts import JobProperties, Progress

_BATCH: Final = re.compile(r"\bbatch = (\d+)$")
"""How Spark describes what runs for a batch (`StreamExecution.getBatchDescriptionString`)."""


class BatchKey(NamedTuple):
    """Which batch: of a streaming query, in one run of it, from 0."""

    query: str
    run: str
    number: int


@dataclass(slots=True)
class Batch:
    """A batch of a streaming query that has run queries or jobs.

    Attributes:
        first_seen, last_seen: When its jobs and queries are known to have begun and ended.
        name: Of the query, if it has one.
        progress: What Spark reports of a batch that is done; None of a batch that failed.
        is_stopped: Whether its query ended in its midst.
        error: Why the query ended, if that was an error.
    """

    key: BatchKey
    first_seen: int
    last_seen: int
    name: str | None = None
    progress: Progress | None = None
    is_stopped: bool = False
    error: str | None = None

    def saw(self, time: int) -> None:
        """A part of this batch began or ended at a time."""
        self.first_seen = min(self.first_seen, time)
        self.last_seen = max(self.last_seen, time)

    @property
    def started(self) -> int:
        """When it was triggered; if that is unknown, when its first job or query began."""
        return self.first_seen if self.progress is None else self.progress.started

    @property
    def ended(self) -> int | None:
        """When it was done, or stopped; None while it is at work."""
        if self.progress is not None:
            return self.progress.started + self.progress.duration_ms
        return self.last_seen if self.is_stopped else None


class Streams:
    """The batches so far, and which run each query is in."""

    def __init__(self) -> None:
        """No query has begun."""
        self.batches: dict[BatchKey, Batch] = {}
        self._runs: dict[str, QueryStarted] = {}
        self._latest: dict[str, BatchKey] = {}

    def query_started(self, event: QueryStarted) -> None:
        """A run begins; a query has one at a time."""
        self._runs[event.query] = event

    def run_of(self, group: str | None) -> QueryStarted | None:
        """The run of a streaming query, at work, that a group of jobs stands for."""
        return next((begun for begun in self._runs.values() if begun.run == group), None)

    def batch_told(self, time: int, begun: QueryStarted, description: str) -> BatchKey | None:
        """The batch that a description is of; None where it is of none, as before the first."""
        found = _BATCH.search(description)
        return None if found is None else self._known(BatchKey(begun.query, begun.run, int(found[1])), time, begun.name)

    def batch_of(self, time: int, properties: JobProperties) -> BatchKey | None:
        """The batch that a job is a part of; None for other jobs.

        Where the log lacks the start of the query, the group of the job stands for the run: Spark sets the run's id as
        the group, unless the program sets another.
        """
        if properties.query is None or properties.batch is None or not properties.batch.isdigit():
            return None
        begun = self._runs.get(properties.query)
        run = begun.run if begun else properties.group or ""
        return self._known(BatchKey(properties.query, run, int(properties.batch)), time, begun.name if begun else None)

    def _known(self, key: BatchKey, time: int, name: str | None) -> BatchKey:
        self._latest[key.run] = key
        self.batches.setdefault(key, Batch(key, time, time, name))
        return key

    def saw(self, key: BatchKey | None, time: int) -> None:
        """A part of a batch, if it is known, began or ended at a time."""
        if key in self.batches:
            self.batches[key].saw(time)

    def progressed(self, event: QueryProgress) -> Batch | None:
        """Ends a batch; None where nothing has run for it, as when a trigger found nothing new, or has ended before."""
        progress = event.progress
        batch = self.batches.get(BatchKey(progress.query, progress.run, progress.batch))
        if batch is None or batch.ended is not None:
            return None
        batch.progress = progress
        return batch

    def query_terminated(self, event: QueryTerminated) -> Batch | None:
        """Ends a run; gives the batch that it was in the midst of, if any."""
        self._runs.pop(event.query, None)
        key = self._latest.pop(event.run, None)
        batch = None if key is None else self.batches.get(key)
        if batch is None or batch.ended is not None:
            return None
        batch.is_stopped, batch.error = True, event.error
        return batch

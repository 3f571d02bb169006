"""SQL executions of an application, and where in a trace they belong."""

from collections.abc import Mapping

from app.eventlog.events import DriverNumbers, SqlEnd, SqlPlanChanged, SqlStart
from app.eventlog.model import Job, Query
from app.eventlog.streams import Streams
from app.telemetry.spark_names import STEP_TAG


class Queries:
    """The queries so far.

    Attributes:
        known: By their numbers.
        open: The numbers of the queries that are at work.
        numbers: What operators of all queries have counted, by the id of the accumulable.
    """

    def __init__(self, streams: Streams) -> None:
        """No query has begun."""
        self.known: dict[int, Query] = {}
        self.open: set[int] = set()
        self.numbers: dict[int, int] = {}
        self._streams = streams

    def started(self, event: SqlStart) -> None:
        """A query has begun.

        One that a streaming query runs says its batch: it may end before the event of its first job. Of others the
        first job says where they belong; until then the tag of a step does, if there is one.
        """
        self.open.add(event.id)
        root = None if event.root in (None, event.id) else event.root
        told = (event.description, event.details, event.plan.copy())
        query = self.known[event.id] = Query(event.id, root, event.time, *told, settings=event.settings)
        stream = self._streams.run_of(event.group)
        if stream is not None:  # its thread has the tags of whoever began the streaming query
            query.batch = self._streams.batch_told(event.time, stream, event.description)
            query.is_placed = query.batch is not None
        else:
            tags = (tag.removeprefix(STEP_TAG) for tag in event.tags if tag.startswith(STEP_TAG))
            query.traceparent = next(tags, None)

    def plan_changed(self, event: SqlPlanChanged) -> None:
        """Adaptive execution has another plan."""
        if event.id in self.known:
            self.known[event.id].plan = event.plan.copy()
            self.known[event.id].plans += 1

    def job_started(self, job: Job) -> None:
        """Places the query of a job, and those that it is a part of, below the batch or the step of the job."""
        number = job.query
        if number in self.known:
            self.known[number].jobs.append(job.id)
        while number is not None and number in self.known:
            found = self.known[number]
            if not found.is_placed:
                found.is_placed, found.traceparent, found.batch = True, job.properties.traceparent, job.batch
            self._streams.saw(found.batch, found.started)
            number = found.root

    def counted(self, number: int | None, numbers: Mapping[int, int]) -> None:
        """Operators have counted: a query that is at work, if one asked for it, and those that it is a part of."""
        self.numbers.update(numbers)
        while number is not None and number in self.open:
            self.known[number].numbers.update(numbers)
            number = self.known[number].root

    def driver_counted(self, event: DriverNumbers) -> None:
        """The same of what the driver counts."""
        self.counted(event.id, dict(event.updates))

    def ended(self, event: SqlEnd) -> Query | None:
        """A query has ended; its parent no longer changes."""
        self.open.discard(event.id)
        query = self.known.get(event.id)
        if query is not None:
            query.ended, query.error = event.time, event.error or None
            query.settle(None if query.root is None else self.known.get(query.root))
            self._streams.saw(query.batch, event.time)
        return query

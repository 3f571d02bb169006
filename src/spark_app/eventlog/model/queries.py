"""The SQL executions of an application, and their parents in a trace."""

from collections.abc import Mapping

from spark_app.eventlog.model.clock import Clock
from spark_app.eventlog.model.connect import Connect
from spark_app.eventlog.model.entities import Job, Query
from spark_app.eventlog.model.streams import Streams
from spark_app.eventlog.model.targets import target_of
from spark_app.eventlog.parse.events import DriverNumbers, SqlEnd, SqlPlanChanged, SqlStart
from spark_app.vocabulary.spark_names import STEP_TAG


class Queries:
    """The queries so far.

    Attributes:
        known: The queries by their numbers.
        open: The numbers of the running queries.
        numbers: The SQL metrics of all queries, by the id of the accumulable.
    """

    def __init__(self, streams: Streams, connect: Connect, clock: Clock) -> None:
        """Starts without queries."""
        self.known: dict[int, Query] = {}
        self.open: set[int] = set()
        self.numbers: dict[int, int] = {}
        self._streams, self._connect, self._clock = streams, connect, clock

    def start_of(self, event: SqlStart, application_started: int | None) -> int:
        """When a query started: not before the query that it is a part of, or else the application."""
        root = None if event.root == event.id else event.root
        return self._clock.start(event.time, self.known[root].started if root in self.known else application_started)

    def end_of(self, event: SqlEnd) -> int:
        """When a query ended: not before it started, and not before its parts ended."""
        query = self.known.get(event.id)
        return event.time if query is None else self._clock.end(event.time, query.started, query.latest)

    def started(self, event: SqlStart, time: int) -> None:
        """Adds a query that started at a time.

        The description of a query in a streaming query names its batch, because the query may end before the event of
        its first job. The first job of any other query has its parent; until then the tag of a step does, if present.
        """
        self.open.add(event.id)
        root = None if event.root in (None, event.id) else event.root
        texts = (event.description, event.details, event.plan.copy())
        target = target_of(event.plan_description, event.plan)
        query = Query(event.id, root, time, *texts, settings=event.settings, target=target)
        self.known[event.id] = query
        if target and root in self.known:  # a command runs the query that writes for it
            self.known[root].target = self.known[root].target or target
        tags = (tag.removeprefix(STEP_TAG) for tag in event.tags if tag.startswith(STEP_TAG))
        traceparent = next(tags, None)
        stream = self._streams.run_of(event.group)
        if stream is not None:  # its thread inherits the tags of the code that started the streaming query
            query.batch = self._streams.batch_in(time, stream, event.description, traceparent)
            query.is_placed = query.batch is not None
            self._streams.saw(query.batch, time)
            self._streams.configured(query.batch, event.settings)
        else:
            query.traceparent = traceparent
            query.operation = self._connect.of_tags(event.tags)

    def plan_changed(self, event: SqlPlanChanged) -> None:
        """Replaces the plan of a query after adaptive execution changed it."""
        if event.id in self.known:
            self.known[event.id].plan = event.plan.copy()
            self.known[event.id].plans += 1

    def job_started(self, job: Job) -> None:
        """Places the query of a job, and its parent queries, below the batch or the step of the job."""
        number = job.query
        if number in self.known:
            self.known[number].jobs.append(job.id)
        while number is not None and number in self.known:
            query = self.known[number]
            if not query.is_placed:
                query.is_placed, query.traceparent, query.batch = True, job.properties.traceparent, job.batch
            self._streams.saw(query.batch, query.started)
            number = query.root

    def part_ended(self, number: int | None, time: int) -> None:
        """Notes the end of a job, a stage or a query that is a part of a query, which ends no earlier."""
        if number in self.open:
            self.known[number].latest = max(self.known[number].latest, time)

    def counted(self, number: int | None, numbers: Mapping[int, int]) -> None:
        """Adds SQL metrics to a running query and to its parent queries."""
        self.numbers.update(numbers)
        while number is not None and number in self.open:
            self.known[number].numbers.update(numbers)
            number = self.known[number].root

    def driver_counted(self, event: DriverNumbers) -> None:
        """Adds the SQL metrics that the driver counts."""
        self.counted(event.id, dict(event.updates))

    def ended(self, event: SqlEnd, time: int) -> Query | None:
        """Ends a query at a time; its parent no longer changes."""
        self.open.discard(event.id)
        query = self.known.get(event.id)
        if query is None or query.ended is not None:  # in a damaged log it may have ended before
            return None
        query.ended, query.error = time, event.error or None
        query.settle(None if query.root is None else self.known.get(query.root))
        self.part_ended(query.root, time)
        self._streams.saw(query.batch, time)
        return query

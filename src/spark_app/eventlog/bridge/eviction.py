"""Lets an application be followed for months: queries, jobs and batches are forgotten a while after they ended."""

from collections import deque
from contextlib import suppress
from itertools import chain
from typing import Final

from msgspec import Raw

from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.model.connect import Operation, Session
from spark_app.eventlog.model.entities import Job, Query
from spark_app.eventlog.model.streams import Batch
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import SqlPlan

MAX_QUERIES: Final = 16
"""How many queries (with all below them) and jobs without a query are kept whole after their ends: tasks that were
killed with a job end after it."""
MAX_OF_STREAMS: Final = 200
"""The same, for a report of streaming queries while they run, or at their end."""
MAX_BARE: Final = 500
"""How many queries and batches are kept after that, without their jobs: a job that begins late finds its parent. And
how many sessions and operations of Spark Connect are kept after their ends."""
MAX_TEXT: Final = 10_000
"""Characters of texts of a query that are kept after its end; its plan may have millions, and is not kept."""
_NO_PLAN: Final = Raw(b'{"nodeName":"forgotten"}')


class Eviction:
    """Forgets by the order of events alone, so that a second reader of a log forgets at the same places.

    Attributes:
        forgotten: How many queries, and jobs without a query, are not kept whole any more.
    """

    def __init__(self, app: Application, *, kept: int = MAX_QUERIES, strips_at_end: bool = True) -> None:
        """Nothing is forgotten yet.

        Args:
            app: The application.
            kept: How many queries, and jobs without a query, are kept whole after their ends.
            strips_at_end: Whether a query loses its plan when it ends, and not only when it is forgotten.
        """
        self._app, self._kept, self._strips_at_end = app, kept, strips_at_end
        self.forgotten = 0
        self._over: deque[Query | Job] = deque()
        self._bare: dict[int, None] = {}
        self._batches: deque[Batch] = deque()
        self._operations: deque[Operation] = deque()
        self._sessions: deque[Session] = deque()

    def after(self, ended: Ended) -> None:
        """Something has ended, and its spans were sent."""
        if self._strips_at_end and isinstance(ended, Query) and not ended.is_held:
            for query in (ended, *(self._app.queries[number] for number in ended.held)):
                self._strip(query)
        match ended:
            case Query() if self._is_bare(ended.root):
                self._over.append(ended)
            case Job() if self._is_bare(ended.query):
                self._over.append(ended)
            case Batch():
                self._batches.append(ended)
            case Operation() | Session():
                self._forget_clients(ended)
        if len(self._batches) > MAX_BARE:
            self._app.batches.pop(self._batches.popleft().key, None)
        for _ in range(2):  # one that is not over yet goes to the end of the line
            if len(self._over) > self._kept:
                self._forget(self._over.popleft())

    def _forget_clients(self, ended: Operation | Session) -> None:
        """Keeps what clients of Spark Connect have asked for last; jobs and queries know their own operation."""
        if isinstance(ended, Session):
            self._sessions.append(ended)
        self._operations.extend(ended.left if isinstance(ended, Session) else [ended])
        while len(self._operations) > MAX_BARE:
            self._app.connect.forget(self._operations.popleft())
        if len(self._sessions) > MAX_BARE:
            self._app.connect.sessions.pop(self._sessions.popleft().key, None)

    def _is_bare(self, query: int | None) -> bool:
        """Whether a query is unknown, or nothing is left of it but its place in the trace."""
        return query is None or query not in self._app.queries or query in self._bare

    def _forget(self, oldest: Query | Job) -> None:
        queries = self._below(oldest)
        jobs = [oldest] if isinstance(oldest, Job) else self._jobs(queries)
        if not self._is_over(queries, jobs):
            self._over.append(oldest)
            return
        self.forgotten += 1
        for query in queries:
            self._forget_query(query)
        for job in jobs:
            self._forget_job(job)

    def _below(self, oldest: Query | Job) -> list[Query]:
        if isinstance(oldest, Job):
            return []
        return [oldest, *(query for query in self._app.queries.values() if query.root == oldest.id)]

    def _jobs(self, queries: list[Query]) -> list[Job]:
        numbers = chain.from_iterable(query.jobs for query in queries)
        return [self._app.jobs[number] for number in numbers if number in self._app.jobs]

    def _is_over(self, queries: list[Query], jobs: list[Job]) -> bool:
        stages = [self._app.stages[key] for job in jobs for key in job.ran if key in self._app.stages]
        ends = chain(
            (query.ended for query in queries),
            (job.completed for job in jobs),
            (stage.info.completed for stage in stages),
        )
        return all(end is not None for end in ends)

    def _strip(self, query: Query) -> None:
        with suppress(ValueError):  # a plan that is none has no numbers
            self._forget_numbers(events.plan(query.plan))
        query.plan, query.numbers = _NO_PLAN, {}
        query.description, query.details = query.description[:MAX_TEXT], query.details[:MAX_TEXT]

    def _forget_query(self, query: Query) -> None:
        if not self._strips_at_end:
            self._strip(query)
        query.description, query.details = "", ""
        query.jobs.clear()
        self._bare[query.id] = None
        if len(self._bare) > MAX_BARE:
            oldest = next(iter(self._bare))
            del self._bare[oldest]
            self._app.queries.pop(oldest, None)

    def _forget_numbers(self, plan: SqlPlan) -> None:
        for metric in plan.metrics:
            self._app.numbers.pop(metric.id, None)
        for child in plan.children:
            self._forget_numbers(child)

    def _forget_job(self, job: Job) -> None:
        self._app.jobs.pop(job.id, None)
        for key in job.ran:
            stage = self._app.stages.pop(key, None)
            for accumulable in stage.info.accumulables if stage else ():
                self._app.numbers.pop(accumulable.id, None)

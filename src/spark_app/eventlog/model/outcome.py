"""How an application ended, by its log and its exit code: one rule for tables, reports, findings and run profiles."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import is_own_server
from spark_app.eventlog.model.entities import Job, Query
from spark_app.eventlog.model.streams import BatchKey
from spark_app.formatting import count, quantity

Outcome = Literal["succeeded", "ended", "failed", "killed", "incomplete", "running"]
GOOD: Final[tuple[Outcome, ...]] = ("succeeded", "ended")
"""Outcomes without a known failure: exit code 0, and the end of a log whose exit code is not known."""
BAD: Final[tuple[Outcome, ...]] = ("failed", "killed")
_STOPPED: Final = "SparkContext was shut down"
"""What Spark says of jobs that ran when the context was stopped (`DAGScheduler.cleanUpAfterSchedulerStop`)."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an application ended.

    Attributes:
        outcome: In a word.
        text: The outcome with its evidence: `failed with exit code 3`.
        error: The error of the job, query or batch that failed last, in Spark's words; None without any.
        query: The number of the query that failed last; None without any.
        failed_jobs: How many jobs failed, except those that were stopped with the application or with their stream.
    """

    outcome: Outcome
    text: str
    error: str | None = None
    query: int | None = None
    failed_jobs: int = 0


@dataclass(frozen=True, slots=True)
class _Work:
    """A job, a query, a batch or a streaming query that has ended, and its error, which is empty if it has no words."""

    ended: int
    error: str | None
    query: int | None = None
    kind: str = "job"


def ending_of(app: Application) -> Ending:
    """How an application ended, as far as its log and its exit code say.

    A nonzero exit code decides. Without one the application failed if its last job, query or batch failed: a program
    that goes on after a failure has handled it. The exit code 0 in a log proves nothing, because `SparkContext.stop`
    writes it from PySpark and from the shutdown hook of a killed JVM, too; the exit code of the process does. What a
    client of a Spark Connect server asked for, and failed, is no failure of the server.
    """
    work = sorted(_work(app), key=lambda work: (work.ended, work.query is not None))
    jobs = [job for job in app.jobs.values() if job.has_failed]
    failed = [job for job in jobs if not _was_stopped(job.failure) and not _is_of_stopped_stream(app, job.batch)]
    last = work[-1] if work else None
    outcome, text = _outcome(app, failed, last)
    handled = next((each for each in reversed(work) if each.error is not None), None)
    failure = handled if outcome in GOOD else last
    error, query = (failure.error or None, failure.query) if failure else (None, None)
    return Ending(outcome, text, error, query if error else None, len(failed))


def _outcome(app: Application, failed: list[Job], last: _Work | None) -> tuple[Outcome, str]:
    code = app.exit_code or None if app.process_exit_code is None else app.process_exit_code
    if app.ended is None and app.is_alive:
        return "running", "running: its log has no end yet"
    if app.ended is None and app.is_alive is False:
        return "killed", f"killed: its log has no end{_with(code)}"
    if code:
        by = _signal(code)
        return ("killed", f"killed by {by}{_with(code)}") if by else ("failed", f"failed with exit code {code}")
    if app.ended is None:
        return "incomplete", "incomplete: no end in its log, still running or killed"
    jobs = f"{count(len(failed))} of {quantity(len(app.jobs), 'job')}"
    if last is not None and last.error is not None:
        kind = last.kind if last.query is None else "query"
        return "failed", f"failed: its last {kind} failed ({jobs}{'' if code is None else ', exit code 0'})"
    stopped = stopped_jobs(app)
    if stopped and code is None:
        return "incomplete", f"incomplete: stopped while {quantity(stopped, 'job')} ran, by its program or from outside"
    outcome: Outcome = "ended" if code is None else "succeeded"
    if failed:
        return outcome, f"{outcome}: {jobs} failed{', not the last one' if last is not None else ''}"
    return outcome, outcome if outcome == "succeeded" else "ended, no job failed"


def stopped_jobs(app: Application) -> int:
    """How many jobs ran when the application was stopped."""
    return sum(_was_stopped(job.failure) or job.completed is None for job in app.jobs.values())


def _work(app: Application) -> Iterator[_Work]:
    """Queries without a root, their jobs where they have no end, other jobs, and batches, without what was stopped.

    A streaming query that fails between two batches, as when its source is gone, has an error that none of them has.
    """
    for job in app.jobs.values():
        query = app.query_of(job)
        is_stopped = _was_stopped(job.failure) or (job.has_failed and _is_of_stopped_stream(app, job.batch))
        is_over = job.completed is not None and (query is None or query.ended is None)
        if job.completed is not None and is_over and not is_stopped and not _is_of_client(app, job):
            yield _Work(job.completed, (job.failure or "") if job.has_failed else None, query.id if query else None)
    for query in app.queries.values():
        is_stopped = _was_stopped(query.error) or (bool(query.error) and _is_of_stopped_stream(app, query.batch))
        is_root = query.root not in app.queries
        if query.ended is not None and is_root and not is_stopped and not _is_of_client(app, query):
            yield _Work(query.ended, query.error, query.id)
    for batch in app.batches.values():
        if batch.ended is not None and not _was_stopped(batch.error):
            yield _Work(batch.ended, batch.error)
    for stream in app.streams.queries.values():
        if stream.ended is not None and stream.error and not _was_stopped(stream.error):
            yield _Work(stream.ended, stream.error, kind="streaming query")


def _is_of_client(app: Application, part: Job | Query) -> bool:
    """Whether a client of a server asked for it; not so where a program runs the server for itself."""
    return part.operation is not None and not is_own_server(app.properties)


def _was_stopped(error: str | None) -> bool:
    return _STOPPED in (error or "")


def _is_of_stopped_stream(app: Application, key: BatchKey | None) -> bool:
    """Whether a program stopped a streaming query in this batch: what it breaks has an error, and the query none."""
    batch = None if key is None else app.batches.get(key)
    return batch is not None and batch.is_stopped and batch.error is None


def _signal(code: int) -> str | None:
    """The signal that ended a process, by its exit code in a shell: 128 plus the number of the signal."""
    return next((each.name for each in signal.Signals if code == 128 + each), None)


def _with(code: int | None) -> str:
    return "" if code is None else f" (exit code {code})"

"""The place of each span of an application in a trace: its ids are derived, never drawn.

Every reader of a log makes the same spans, whenever it begins. A parent is always a span of the same log, or the one
that a `traceparent` names.
"""

import hashlib
import re
from typing import Final, NamedTuple

from app.eventlog.application import Application
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.parts import TaskInfo
from app.eventlog.streams import BatchKey

_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 1
"""The flag of W3C's Trace Context: whoever asked for the work records its trace."""


class Place(NamedTuple):
    """The ids of a span, as W3C has them; the parent is None for the root of a trace.

    Spans below a step whose trace is not recorded are not recorded either: theirs would be a trace without its root.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    is_sampled: bool = True

    def child(self, span_id: int) -> "Place":
        """The place of a span whose parent is here."""
        return Place(self.trace_id, span_id, self.span_id, self.is_sampled)


def of_application(app: Application) -> Place:
    """The root of every span without a `traceparent`."""
    return Place(_number(app, "trace", octets=16), _number(app, "application"), None)


def of_query(app: Application, query: Query) -> Place:
    """Below the query that it is a part of, or the batch or the step that it runs for, or the application."""
    span_id = _number(app, "query", query.id)
    root = app.queries.get(query.root) if query.root is not None else None
    if root is not None:
        return of_query(app, root).child(span_id)
    return _below(app, query.batch, query.traceparent, span_id)


def of_job(app: Application, job: Job) -> Place:
    """Below its query, or the batch or the step that it runs for, or the application."""
    span_id = _number(app, "job", job.id)
    query = app.query_of(job)
    if query is not None:
        return of_query(app, query).child(span_id)
    return _below(app, job.batch, job.properties.traceparent, span_id)


def of_stage(app: Application, stage: StageAttempt) -> Place:
    """Below the job that it ran for first."""
    job = app.job_of(stage)
    above = of_application(app) if job is None else of_job(app, job)
    return above.child(_number(app, "stage", stage.info.id, stage.info.attempt))


def of_task(app: Application, stage: StageAttempt, task: TaskInfo) -> Place:
    """Below the attempt of its stage."""
    return of_stage(app, stage).child(_number(app, "task", task.id))


def of_python_function(app: Application, stage: StageAttempt, task: TaskInfo, name: str) -> Place:
    """Below the task that called it."""
    return of_task(app, stage, task).child(_number(app, "python", task.id, name))


def of_batch(app: Application, key: BatchKey) -> Place:
    """Below the application: the step that started a streaming query may long have ended."""
    return of_application(app).child(_number(app, "batch", *key))


def _below(app: Application, batch: BatchKey | None, traceparent: str | None, span_id: int) -> Place:
    if batch is not None:
        return of_batch(app, batch).child(span_id)
    named = _TRACEPARENT.fullmatch(traceparent or "")
    if named and int(named[1], 16) and int(named[2], 16):
        return Place(int(named[1], 16), span_id, int(named[2], 16), bool(int(named[3], 16) & _SAMPLED))
    return of_application(app).child(span_id)


def _number(app: Application, *words: object, octets: int = 8) -> int:
    """A number of its own for each combination of application and words; never 0, which W3C forbids."""
    text = "\0".join(str(word) for word in (app.id, app.attempt, *words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:octets]) or 1

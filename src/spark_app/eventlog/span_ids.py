"""The ids of each span of an application in a trace: they are derived from its log, never drawn.

Every reader of a log makes the same spans, whenever it begins. A parent is always a span of the same log, or the one
that a `traceparent` names.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import Operation, SessionKey, is_own_server
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.streams import Batch, BatchKey
from spark_app.eventlog.parse.events import TaskInfo

TRACE_ID: Final = "spark.executorEnv.SPARK_TRACE_ID"
"""The Spark property with the trace id of an application, where its launch has named one (`config/spark/spark-env.sh`).

Its executors get the variable, and write the id into their log lines.
"""
_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 1
"""The flag of W3C's Trace Context: the caller records the trace."""


class SpanContext(NamedTuple):
    """A span that a `traceparent` names, and the flags of its trace."""

    trace_id: int
    span_id: int
    flags: int


class SpanIds(NamedTuple):
    """The ids of a span, as W3C has them; the parent is None for the root of a trace.

    Spans below a step whose trace is not sampled are not sampled either: their trace would have no root. `is_of_batch`:
    the root of the trace is a micro-batch.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    is_sampled: bool = True
    is_of_batch: bool = False

    def child(self, span_id: int) -> "SpanIds":
        """The ids of a span whose parent has these."""
        return SpanIds(self.trace_id, span_id, self.span_id, self.is_sampled, self.is_of_batch)


def of_application(app: Application) -> SpanIds:
    """The root of every span without a `traceparent`; applications of one launch may share a trace."""
    return SpanIds(trace_of(app.id, app.attempt, app.properties), _number(app, "application"), None)


def trace_of(application: str, attempt: str | None, properties: Mapping[str, str]) -> int:
    """The trace of an application: the one that its launch has named, or a derived one."""
    named = _TRACE_ID.fullmatch(properties.get(TRACE_ID, ""))
    return (int(named[0], 16) if named else 0) or _derived(application, attempt, "trace", octets=16)


def of_query(app: Application, query: Query) -> SpanIds:
    """Below the query that it is a part of, or the batch, operation or step that it runs for, or the application."""
    span_id = _number(app, "query", query.id)
    root = app.queries.get(query.root) if query.root is not None else None
    if root is not None:
        return of_query(app, root).child(span_id)
    return _below(app, query, query.traceparent, span_id)


def of_job(app: Application, job: Job) -> SpanIds:
    """Below its query, or the batch, the operation or the step that it runs for, or the application."""
    span_id = _number(app, "job", job.id)
    query = app.query_of(job)
    if query is not None:
        return of_query(app, query).child(span_id)
    return _below(app, job, job.properties.traceparent, span_id)


def of_stage(app: Application, stage: StageAttempt) -> SpanIds:
    """Below the job that it ran for first."""
    job = app.job_of(stage)
    above = of_application(app) if job is None else of_job(app, job)
    return above.child(_number(app, "stage", stage.info.id, stage.info.attempt))


def of_task(app: Application, stage: StageAttempt, task: TaskInfo) -> SpanIds:
    """Below the attempt of its stage."""
    return of_stage(app, stage).child(_number(app, "task", task.id))


def of_batch(app: Application, key: BatchKey) -> SpanIds:
    """The root of a trace of its own: a streaming query may run for months, and its trace would have no end."""
    return batch_ids(app.id, app.attempt, key)


def batch_ids(application: str, attempt: str | None, key: BatchKey) -> SpanIds:
    """The ids of the span of a batch, which a running query knows before the event log has the batch.

    A batch that a new run of its query repeats has other ids: its key has the run.
    """
    trace_id = _derived(application, attempt, "batch trace", *key, octets=16)
    return SpanIds(trace_id, _derived(application, attempt, "batch", *key), None, is_of_batch=True)


def of_session(app: Application, key: SessionKey) -> SpanIds:
    """The root of a trace of its own: a server may run for months, and serves many.

    Below the application where that runs the server in its own driver, for one program.
    """
    span_id = _number(app, "session", *key)
    if is_own_server(app.properties):
        return of_application(app).child(span_id)
    return SpanIds(_derived(app.id, app.attempt, "session trace", *key, octets=16), span_id, None)


def of_operation(app: Application, operation: Operation) -> SpanIds:
    """Below its session."""
    return of_session(app, operation.session).child(_number(app, "operation", operation.id))


def links_of_session(app: Application, key: SessionKey) -> list[SpanContext]:
    """The application, where the session is the root of a trace."""
    above = of_application(app)
    is_root = of_session(app, key).parent_id is None
    return [SpanContext(above.trace_id, above.span_id, _SAMPLED)] if is_root else []


def links_of_batch(app: Application, batch: Batch) -> list[SpanContext]:
    """The batch before it, and the step that has started its query; the application where no step has."""
    before = None if batch.predecessor is None else of_batch(app, batch.predecessor)
    above = of_application(app)
    started_by = context_of(batch.traceparent) or SpanContext(above.trace_id, above.span_id, _SAMPLED)
    return [*([] if before is None else [SpanContext(before.trace_id, before.span_id, _SAMPLED)]), started_by]


def context_of(traceparent: str | None) -> SpanContext | None:
    """What a `traceparent` names; None for any text that W3C's Trace Context does not allow."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    context = SpanContext(*(int(part, 16) for part in match.groups()))
    return context if context.trace_id and context.span_id else None


def _below(app: Application, part: Query | Job, traceparent: str | None, span_id: int) -> SpanIds:
    if part.batch is not None:
        return of_batch(app, part.batch).child(span_id)
    if part.operation is not None:
        return of_operation(app, part.operation).child(span_id)
    named = context_of(traceparent)
    if named is not None:
        return SpanIds(named.trace_id, span_id, named.span_id, bool(named.flags & _SAMPLED))
    return of_application(app).child(span_id)


def _number(app: Application, *words: object) -> int:
    return _derived(app.id, app.attempt, *words)


def _derived(*words: object, octets: int = 8) -> int:
    """A number of its own for each combination of application, attempt and words; never 0, which W3C forbids."""
    text = "\0".join(map(str, words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:octets]) or 1

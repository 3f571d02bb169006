"""Spans of what has ended in an application: with the times of its events, derived ids, and nothing that is unknown."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, assert_never

from spark_app.eventlog import batch_spans, span_ids
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import kubernetes_pods, task_numbers, work_names
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.model.connect import Operation, Session
from spark_app.eventlog.model.entities import Job, LateTask, Query, StageAttempt, totals_of
from spark_app.eventlog.model.failures import MAX_TEXT, Failure, failure_of, failure_of_task
from spark_app.eventlog.model.operators import NO_PLAN, own_plan_of
from spark_app.eventlog.model.outcome import BAD, ending_of
from spark_app.eventlog.model.stage_groups import group_of, name_of_operation, work_of
from spark_app.eventlog.model.streams import Batch
from spark_app.eventlog.model.task_numbers import Totals
from spark_app.eventlog.parse.events import TaskEnd
from spark_app.eventlog.span_ids import SpanContext, SpanIds
from spark_app.redaction import shortened
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import APPLICATION, Attribute, SpanName

Value = str | int | bool
MAX_PLAN: Final = 8000
"""Characters of a plan with its numbers that a span carries."""


@dataclass(frozen=True, slots=True)
class SparkSpan:
    """A span from an event log; times in milliseconds since the epoch; findings become its events.

    Links lead to spans of other traces; `links_left_out` counts those that it could have had and has not.
    """

    kind: SpanName
    name: str
    ids: SpanIds
    started: int
    ended: int
    attributes: Mapping[str, Value]
    failure: Failure | None = None
    findings: tuple[Finding, ...] = ()
    links: tuple[SpanContext, ...] = ()
    links_left_out: int = 0


@dataclass(frozen=True, slots=True)
class TracedWork:
    """Something that took time: its ids in the trace, and when; the waterfall of a report draws the same.

    Attributes:
        ids: Its own, and that of its parent.
        started: In milliseconds since the epoch.
        ended: Where the log lacks its end, when the whole ended that it is a part of; None while that runs, too.
        failure: Why it failed.
        is_incomplete: Whether the log lacks its end.
    """

    ids: SpanIds
    started: int
    ended: int | None
    failure: Failure | None = None
    is_incomplete: bool = False


Part = Query | Job | Batch | StageAttempt | Operation | Session


def work(app: Application, part: Part) -> TracedWork:
    """A part of the work of an application."""
    ended = end_of(app, part)
    match part:
        case Query():
            failure = failure_of(part.error)
            return TracedWork(span_ids.of_query(app, part), part.started, ended, failure, part.ended is None)
        case Job():
            failure = (failure_of(part.failure) or Failure(None, "")) if part.has_failed else None
            return TracedWork(span_ids.of_job(app, part), part.submitted, ended, failure, part.completed is None)
        case Batch():
            started = max(part.started, app.started or 0)  # the clock may have been set back
            return TracedWork(span_ids.of_batch(app, part.key), started, ended, failure_of(part.error), ended is None)
        case StageAttempt():
            launched = min(part.launched, default=None) if part.first_launch is None else part.first_launch
            started = (launched if part.info.submitted is None else part.info.submitted) or app.last
            failure = failure_of(part.info.failure)
            return TracedWork(span_ids.of_stage(app, part), started, ended, failure, part.info.completed is None)
        case Operation():
            failure = failure_of(part.error) if part.status == "failed" else None
            return TracedWork(span_ids.of_operation(app, part), part.started, ended, failure, part.finished is None)
        case Session():
            is_incomplete = part.is_cut or (part.ended is None and app.ended is None)
            return TracedWork(span_ids.of_session(app, part.key), part.started, ended, None, is_incomplete)
    assert_never(part)


def of_ended(app: Application, ended: Ended) -> Iterator[SparkSpan]:
    """The spans of something that has ended; an executor has none."""
    match ended:
        case Query():
            yield from _with_held(app, ended, has_span=not ended.is_held)
        case Job():
            yield of_job(app, ended)
        case Batch():
            yield of_batch(app, ended)
        case StageAttempt():
            yield of_stage(app, ended)
        case Operation():
            yield of_operation(app, ended)
        case Session():
            yield from _of_session_and_rest(app, ended)
    for stage, task in spanned_tasks(ended):
        yield of_task(app, stage, task)


def spanned_tasks(ended: Ended) -> Iterator[tuple[StageAttempt, TaskEnd]]:
    """The task attempts of a stage that get a span when the stage, or a late task, has ended."""
    match ended:
        case StageAttempt():
            for task in {task.info.id: task for task in (*ended.kept, *ended.slowest)}.values():
                yield ended, task
        case LateTask() if ended.stage.kept and ended.stage.kept[-1] is ended.task:
            yield ended.stage, ended.task


def _with_held(app: Application, query: Query, *, has_span: bool = True) -> Iterator[SparkSpan]:
    """The span of a query, unless it is held back, and the spans of sub-queries that were held until it ended."""
    if has_span:
        yield of_query(app, query)
    for number in query.held:
        yield of_query(app, app.queries[number])


def _of_session_and_rest(app: Application, session: Session) -> Iterator[SparkSpan]:
    """The span of a session, and those of the operations that were not over when it ended."""
    for operation in (*session.left, *session.open.values()):
        yield of_operation(app, operation)
    yield of_session(app, session)


def of_the_end(app: Application) -> Iterator[SparkSpan]:
    """The spans of what is still open when the log ends, marked incomplete, and the span of the application."""
    for stage in app.stages.values():
        if stage.info.completed is None:
            yield from of_ended(app, stage)
    for job in app.jobs.values():
        if job.completed is None:
            yield of_job(app, job)
    for query in app.queries.values():
        if query.ended is None:
            yield from _with_held(app, query)
    for batch in app.batches.values():
        if batch.ended is None:
            yield of_batch(app, batch)
    yield from chain.from_iterable(_of_session_and_rest(app, session) for session in app.connect.open_sessions)
    if app.began is not None:
        yield of_application(app)


def of_application(app: Application) -> SparkSpan:
    """The span of the application: the parent of whatever no step asked for."""
    known: dict[Attribute, Value | None] = {
        APPLICATION: app.name,
        names.APPLICATION_ID: app.id,
        names.APPLICATION_ATTEMPT: app.attempt,
        names.SPARK_VERSION: app.spark_version,
        names.EXIT_CODE: app.exit_code if app.process_exit_code is None else app.process_exit_code,
        names.IS_INCOMPLETE: app.started is None or None,
        **_driver_pod(app),
    }
    ending = ending_of(app)
    failure = (failure_of(ending.error) or Failure(None, ending.text)) if ending.outcome in BAD else None
    subject = app.name or "unknown"
    whole = TracedWork(span_ids.of_application(app), app.began or app.last, app.ended, failure, app.ended is None)
    return _span(app, names.APPLICATION_SPAN, subject, whole, known)


def _driver_pod(app: Application) -> dict[Attribute, Value | None]:
    return {
        names.KUBERNETES_NAMESPACE: kubernetes_pods.namespace(app.properties),
        names.KUBERNETES_POD: kubernetes_pods.driver(app.properties),
        names.KUBERNETES_NODE: kubernetes_pods.driver_node(app.properties),
    }


def of_session(app: Application, session: Session) -> SparkSpan:
    """The span of a session of a Spark Connect server: the root of a trace, with a link to the application.

    Where a program runs the server in its own driver, it is below the application.
    """
    known: dict[Attribute, Value | None] = {names.USER_ID: session.user, names.SESSION_ID: session.key.id}
    span = _span(app, names.SESSION_SPAN, session.user or "of an unknown user", work(app, session), known)
    return dataclasses.replace(span, links=tuple(span_ids.links_of_session(app, session.key)))


def of_operation(app: Application, operation: Operation) -> SparkSpan:
    """The span of an operation, named by its SQL without literals, or by its kind and the file of the client."""
    statement = operation.statement
    known: dict[Attribute, Value | None] = {
        names.USER_ID: operation.session.user,
        names.USER_NAME: operation.user_name,
        names.SESSION_ID: operation.session.id,
        names.OPERATION_ID: operation.id,
        names.OPERATION_STATUS: operation.status,
        names.OPERATION_KIND: statement.kind,
        names.OPERATION_ROWS: operation.rows,
        names.DESCRIPTION: work_names.of_operation(operation),
        names.CALL_SITE: work_names.of_client(operation),
        names.QUERY_TEXT: statement.sql,
        names.OPERATION_PREPARE_TIME: operation.prepare_ms,
        names.OPERATION_WAIT_TIME: operation.wait_ms,
    }
    return _span(app, names.OPERATION_SPAN, name_of_operation(operation), work(app, operation), known)


def of_query(app: Application, query: Query) -> SparkSpan:
    """The span of a query, named by the operator at its root: names must be few, and descriptions may be many."""
    try:
        plan = own_plan_of(query)
    except ValueError:  # what is no plan is no reason to tell nothing of the query
        plan = NO_PLAN
    text = plan.text
    known: dict[Attribute, Value | None] = {
        names.QUERY_ID: query.id,
        names.DESCRIPTION: work_names.of_query(app, query),
        names.CALL_SITE: work_names.call_site(app, query),
        names.DETAILS: query.details if query.operation is None else None,
        names.PLANS: query.plans,
        names.PLAN_IS_CUT: (plan.is_cut or len(text) > MAX_PLAN) or None,
    }
    span = _span(app, names.QUERY_SPAN, plan.first.name or "unknown", work(app, query), known)
    plan_attribute = {names.PLAN.name: shortened(text, MAX_PLAN)} if text else {}
    return dataclasses.replace(span, attributes={**span.attributes, **plan_attribute})


def of_batch(app: Application, batch: Batch) -> SparkSpan:
    """The span of a batch of a streaming query that has run jobs: the root of a trace.

    It links to the batch before it, to the step that has started its query, and to the spans that sent its records.
    """
    progress, links = batch.progress, batch_spans.links(batch.progress)
    known: dict[Attribute, Value | None] = {
        names.STREAM_ID: batch.key.query,
        names.STREAM_RUN_ID: batch.key.run,
        names.BATCH_ID: batch.key.number,
        names.STREAM: batch.name or (progress.name if progress else None),
        **_driver_pod(app),
        **batch_spans.attributes(progress, links),
    }
    span = _span(app, names.BATCH_SPAN, str(known[names.STREAM] or names.UNNAMED), work(app, batch), known)
    own = span_ids.links_of_batch(app, batch)
    return dataclasses.replace(span, links=(*own, *links.contexts), links_left_out=links.left_out)


def of_job(app: Application, job: Job) -> SparkSpan:
    """The span of a job, named by the work of its last stage."""
    ran = [app.stages[key] for key in job.ran if key in app.stages]
    known = {
        names.JOB_ID: job.id,
        names.DESCRIPTION: work_names.of_job(job) if job.operation else job.properties.description,
        names.GROUP: job.properties.group,
        names.POOL: job.properties.pool,
        names.JOB_STAGES: len(job.stages),
        names.JOB_SKIPPED: len(set(job.stages) - {stage for stage, _ in job.ran})
        if job.completed is not None
        else None,
    }
    subject = work_of(app, max(ran, key=lambda stage: stage.info.id)) if ran else "without stages"
    return _span(app, names.JOB_SPAN, subject, work(app, job), known)


def of_stage(app: Application, stage: StageAttempt) -> SparkSpan:
    """The span of a stage attempt, named by its work, with the sums over its tasks."""
    info = stage.info
    known: dict[Attribute, Value | None] = {
        names.STAGE_ID: info.id,
        names.STAGE_ATTEMPT: info.attempt,
        names.STAGE_GROUP: group_of(app, stage),
        names.CALL_SITE: work_names.placed(info.name) or None,
        names.TASKS: info.tasks,
        names.TASKS_ENDED: len(stage.durations_ms),
        names.TASKS_FAILED: stage.failed,
        names.TASKS_KILLED: stage.killed,
        names.TASKS_SPECULATIVE: stage.speculative,
        **(_numbers(stage.totals, stage) if stage.spilled_bytes else {}),  # one value for each task with metrics
    }
    return _span(app, names.STAGE_SPAN, work_of(app, stage), work(app, stage), known)


def of_task(app: Application, stage: StageAttempt, task: TaskEnd) -> SparkSpan:
    """The span of a task attempt."""
    info, reason = task.info, task.reason
    executor = app.executors.get(info.executor)
    known: dict[Attribute, Value | None] = {
        names.TASK_ID: info.id,
        names.TASK_INDEX: info.index,
        names.TASK_ATTEMPT: info.attempt,
        names.TASK_SPECULATIVE: info.is_speculative or None,
        names.EXECUTOR_ID: info.executor,
        names.HOST: info.host,
        names.KUBERNETES_NAMESPACE: kubernetes_pods.namespace(app.properties),
        names.KUBERNETES_POD: kubernetes_pods.executor(app.properties, info.executor),
        names.KUBERNETES_NODE: executor.node if executor else None,
        **(_numbers(totals_of([task]), stage) if task.metrics else {}),
    }
    failure = failure_of_task(reason) if info.has_failed or info.was_killed else None
    attempt = TracedWork(span_ids.of_task(app, stage, info), info.launched or app.last, info.finished, failure)
    return _span(app, names.TASK_SPAN, work_of(app, stage), attempt, known)


def _span(
    app: Application, kind: SpanName, subject: str, part: TracedWork, known: Mapping[Attribute, Value | None]
) -> SparkSpan:
    attributes = {
        name.name: shortened(value, MAX_TEXT) if isinstance(value, str) else value
        for name, value in known.items()
        if value not in (None, "")
    }
    if part.is_incomplete:
        attributes[names.IS_INCOMPLETE.name] = True
    # A log may go on after the end of the application.
    ended = part.ended if part.ended is not None else app.last if app.ended is None else app.ended
    name, last = kind.of(shortened(subject, MAX_TEXT)), max(part.started, ended)
    return SparkSpan(kind, name, part.ids, part.started, last, attributes, part.failure)


def end_of(app: Application, part: Part | None) -> int | None:
    """When something ended; where the log lacks its end, when the whole ended that it is a part of."""
    match part:
        case StageAttempt():
            return end_of(app, app.job_of(part)) if part.info.completed is None else part.info.completed
        case Job():
            above = app.query_of(part) or _batch(app, part) or part.operation
            return end_of(app, above) if part.completed is None else part.completed
        case Query():
            root = None if part.root is None else app.queries.get(part.root)
            return end_of(app, root or _batch(app, part) or part.operation) if part.ended is None else part.ended
        case Batch() | Session():
            return part.ended
        case Operation():
            if part.ended is None and part.finished is not None:
                return max(part.finished, part.latest)
            return end_of(app, app.connect.sessions.get(part.session)) if part.ended is None else part.ended
    return None


def _batch(app: Application, part: Job | Query) -> Batch | None:
    return None if part.batch is None else app.batches.get(part.batch)


def _numbers(totals: Totals, stage: StageAttempt) -> dict[Attribute, Value | None]:
    missed: dict[Attribute, Value | None] = {names.INPUT_BYTES: None} if stage.is_input_missed else {}
    return task_numbers.attributes(totals) | missed

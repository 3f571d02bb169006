"""What a timeline is made of: steps, queries, batches, jobs and attempts of stages, and what each is a part of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.eventlog import identity
from app.eventlog.groups import group_of, is_nowhere
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.streams import Batch
from app.report.scope import Scope
from app.telemetry.lines import Step

Kind = Literal["run", "application", "step", "batch", "query", "job", "stage"]


@dataclass(frozen=True, slots=True)
class Node:
    """Something that took time, and what it is a part of; times in milliseconds, no end where it has none."""

    kind: Kind
    id: int
    parent: int | None
    label: str
    started: float
    ended: float | None
    has_failed: bool = False
    anchor: str | None = None


def nodes_of(scope: Scope) -> Iterator[Node]:
    """All below the root, in no order."""
    yield from (_step(step) for step in (scope.run.steps if scope.run else []) if step.parent_id is not None)
    yield from (_batch(scope, batch) for batch in scope.batches)
    yield from (_query(scope, query) for query in scope.queries)
    yield from (_job(scope, job) for job in scope.jobs)
    yield from (_stage(scope, stage) for stage in scope.stages)


def root_of(scope: Scope) -> Node:
    """The run, or the application."""
    if scope.run is not None:
        span, record = scope.run.root, scope.run.record
        has_failed = record is not None and record.outcome not in ("succeeded", "running")
        identifier = span.span_id if span else 0
        return Node("run", identifier, None, scope.run.title, scope.period.start, scope.run.ended, has_failed)
    app = scope.app
    place, label = identity.of_application(app), app.name or "application"
    return Node("application", place.span_id, None, label, scope.period.start, app.ended, bool(app.exit_code))


def _step(step: Step) -> Node:
    label = step.name.removeprefix("step ")
    return Node("step", step.span_id, step.parent_id, label, step.started, step.ended, step.has_failed)


def _batch(scope: Scope, batch: Batch) -> Node:
    place = identity.of_batch(scope.app, batch.key)
    stream = (batch.progress.name if batch.progress else None) or "stream"
    return Node(
        "batch", place.span_id, place.parent_id, f"{stream}: batch {batch.key.number}", batch.started, batch.ended
    )


def _query(scope: Scope, query: Query) -> Node:
    place, label = identity.of_query(scope.app, query), f"{query.id}: {scope.named(query.description)}"
    has_failed, anchor = query.error is not None, f"query-{query.id}"
    return Node("query", place.span_id, place.parent_id, label, query.started, query.ended, has_failed, anchor)


def _job(scope: Scope, job: Job) -> Node:
    place = identity.of_job(scope.app, job)
    told = job.properties.description
    query = scope.app.query_of(job)
    if not told or (query is not None and query.description == told):
        told = _site(scope, job)
    label = f"{job.id}: {scope.named(told)}"
    return Node("job", place.span_id, place.parent_id, label, job.submitted, job.completed, job.has_failed)


def _site(scope: Scope, job: Job) -> str:
    """Where the code asked for a job; where Spark cannot say it, what its last stage reads and writes."""
    ran = [scope.app.stages[key] for key in job.ran if key in scope.app.stages]
    if not ran:
        return "all stages skipped"
    last = max(ran, key=lambda stage: stage.info.id)
    name = last.info.name
    return group_of(scope.app, last).rpartition("[")[2].rstrip("]") if is_nowhere(name) else name


def _stage(scope: Scope, stage: StageAttempt) -> Node:
    place, info = identity.of_stage(scope.app, stage), stage.info
    attempt = f" (attempt {info.attempt})" if info.attempt else ""
    tasks = f"{len(stage.durations_ms):,}/{info.tasks:,} tasks"
    label = f"{info.id}{attempt}: {scope.named(group_of(scope.app, stage))}, {tasks}"
    begun = info.submitted or min(stage.launched, default=None)
    started = scope.period.start if begun is None else begun
    anchor = f"stage-{info.id}-{info.attempt}"
    return Node(
        "stage", place.span_id, place.parent_id, label, started, info.completed, info.failure is not None, anchor
    )

"""What an application does by the last event of its log, while it runs: open work, and what it waits for.

Spark flushes its log when jobs and SQL executions start and end and when stages end (`EventLoggingListener`). A stage
and its tasks that began since then are not in the file yet, and nothing here guesses at them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Literal

from spark_app.eventlog import spans
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.streams import Streams
from spark_app.formatting import count, quantity
from spark_app.report import formatting
from spark_app.report.scope import Scope, stage_name

MAX_ROWS: Final = 30
"""Rows of open work, the oldest first."""
Kind = Literal["query", "job", "stage"]
Part = Query | Job | StageAttempt


@dataclass(frozen=True, slots=True)
class OpenWork:
    """A SQL execution, a job or a stage attempt without an end in the log.

    Attributes:
        kind, id: Which it is: `stage 3.1` is the second attempt of stage 3.
        name: What the program calls it; empty where the row above says it.
        since: When it started, in milliseconds since the epoch.
        done, total: Tasks of a stage, or stages of a job; a job may skip some of them.
        running: Tasks of a stage that run.
        depth: How many of the rows above it is a part of.
    """

    kind: Kind
    id: str
    name: str
    since: int | None
    done: int | None = None
    total: int | None = None
    running: int = 0
    depth: int = 0

    @property
    def progress(self) -> str:
        """How far it is, as the log says; empty for a query, whose number of jobs is not known."""
        if self.total is None or self.done is None:
            return ""
        if self.kind == "job":
            return f"{count(self.done)} of at most {quantity(self.total, 'stage')} done"
        return f"{count(self.done)} of {quantity(self.total, 'task')} done, {count(self.running)} running"


@dataclass(frozen=True, slots=True)
class Now:
    """The state of an application at the last event of its log; times in milliseconds since the epoch.

    Attributes:
        state: Whether it runs, by what is known of its process and its log.
        since: When it started, or ended.
        last: The time of the last event.
        waits: What it waits for: a sentence; empty after its end.
        waiting_since: Since when no task was seen to run; None while one is, and where none has run.
        work: What has no end, the parts of each below it.
        left_out: How many more there are.
    """

    state: Literal["running", "ended", "no end in its log"]
    since: int | None
    last: int | None
    waits: str
    waiting_since: int | None
    work: list[OpenWork]
    left_out: int


def now(scope: Scope) -> Now:
    """What an application does by its log, and what it waits for."""
    app = scope.app
    if app.ended is not None:
        return Now("ended", app.ended, app.last or None, "", None, [], 0)
    all_parts: chain[Part] = chain(app.queries.values(), app.jobs.values(), app.stages.values())
    parts = [part for part in all_parts if spans.end_of(app, part) is None]
    work = list(_work(scope, parts))
    waits, since = _waits(app, parts)
    state: Literal["running", "no end in its log"] = "running" if app.is_alive else "no end in its log"
    left_out = max(0, len(work) - MAX_ROWS)
    return Now(state, app.started, app.last or None, waits, since, work[:MAX_ROWS], left_out)


def _work(scope: Scope, parts: Sequence[Part]) -> Iterator[OpenWork]:
    """Open work as the tree of the trace."""
    rows = [(spans.work(scope.app, part).ids, _row(scope, part)) for part in parts]
    open_spans, below = {ids.span_id for ids, _ in rows}, defaultdict[int | None, list[tuple[int, OpenWork]]](list)
    for ids, row in rows:
        below[ids.parent_id if ids.parent_id in open_spans else None].append((ids.span_id, row))

    def tree(parent: int | None, depth: int) -> Iterator[OpenWork]:
        for span_id, row in below[parent]:
            yield replace(row, depth=depth, name="" if depth and row.kind == "job" else row.name)
            yield from tree(span_id, depth + 1)

    return tree(None, 0)


def _row(scope: Scope, part: Part) -> OpenWork:
    """An open part of the work."""
    match part:
        case Query():
            return OpenWork("query", str(part.id), scope.named(work_names.of_query(scope.app, part)), part.started)
        case Job():
            ran = (scope.app.stages.get(key) for key in part.ran)
            ended = {stage.info.id for stage in ran if stage is not None and stage.info.completed is not None}
            name = scope.named(work_names.of_job(part))
            return OpenWork("job", str(part.id), name, part.submitted, done=len(ended), total=len(part.stages))
    info, name = part.info, formatting.line(stage_name(scope, part))
    tasks = part.completed, info.tasks, _running(part)
    return OpenWork("stage", _number(info.id, info.attempt), name, info.submitted, *tasks)


def _number(stage: int, attempt: int) -> str:
    return f"{stage}.{attempt}" if attempt else str(stage)


def _running(stage: StageAttempt) -> int:
    return max(0, stage.started - len(stage.durations_ms))


def _waits(app: Application, parts: Sequence[Part]) -> tuple[str, int | None]:
    """What an application waits for, and since when no task was seen to run."""
    stages = [part for part in parts if isinstance(part, StageAttempt)]
    running = sum(map(_running, stages))
    if running:
        later = sum(max(0, stage.info.tasks - stage.started) for stage in stages)
        rest = f"; {quantity(later, 'more task')} of the same stages had not started" if later else ""
        return f"{quantity(running, 'task')} ran at the last event{rest}.", None
    return _without_tasks(app, stages, parts), _last_task(app)


def _without_tasks(app: Application, stages: Sequence[StageAttempt], parts: Sequence[Part]) -> str:
    jobs, queries = ([part.id for part in parts if isinstance(part, kind)] for kind in (Job, Query))
    has_executor = any(executor.removed is None for executor in app.executors.values())
    if (stages or jobs) and not has_executor:
        return "No task runs: tasks wait for executors, and none is registered."
    if unstarted := [stage.info.id for stage in stages if not stage.started]:
        return f"No start of a task of {_named('stage', unstarted)} is in the log yet."
    if stages:
        what = _named("stage", [stage.info.id for stage in stages])
        return f"No task was running at the last event; the end of {what} is not in the log yet."
    if jobs:
        whose = "it" if len(jobs) == 1 else "them"
        return f"{_named('Job', jobs)} began; no open stage of {whose} is in the log yet."
    if queries:
        return f"No job runs: the driver plans {_named('query', queries)}, or works on what its jobs returned."
    if (idle := _idle_streams(app.streams)) is not None:
        return idle
    if app.jobs or app.queries:
        return "No query and no job runs: the driver does work of its own, between jobs."
    return "No query and no job has begun."


def _named(kind: str, ids: list[int]) -> str:
    more = f" and {count(len(ids) - 1)} more" if len(ids) > 1 else ""
    return f"{kind} {ids[0]}{more}"


def _idle_streams(streams: Streams) -> str | None:
    """That streaming queries are between batches; None where none is."""
    active = [query for query in streams.queries.values() if query.ended is None]
    if not active:
        return None
    names = ", ".join(formatting.line(query.name or query.id[:8], 60) for query in active[:3])
    more = f" and {count(len(active) - 3)} more" if len(active) > 3 else ""
    subject = f"streaming quer{'y' if len(active) == 1 else 'ies'} {names}{more}"
    return f"No batch runs: {subject} {'is' if len(active) == 1 else 'are'} between batches."


def _last_task(app: Application) -> int | None:
    return max((stage.latest for stage in app.stages.values()), default=0) or None

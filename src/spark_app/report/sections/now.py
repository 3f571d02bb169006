"""What an application does by the last event of its log, while it runs: open work, and what it waits for.

Spark flushes its log when jobs and SQL executions start and end and when stages end (`EventLoggingListener`). A stage
and its tasks that began since then are not in the file yet: where the driver answers, it says which run; nothing here
guesses at them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.streams import Streams
from spark_app.formatting import count, quantity
from spark_app.report import formatting
from spark_app.report.scope import Scope, stage_name

MOST: Final = 30
"""Rows of open work, the oldest first."""
Kind = Literal["query", "job", "stage"]


@dataclass(frozen=True, slots=True)
class RunningStage:
    """A stage attempt that runs, as the driver says; `since` in milliseconds since the epoch."""

    id: int
    attempt: int
    name: str
    since: int | None
    done: int
    running: int
    total: int


@dataclass(frozen=True, slots=True)
class Work:
    """A SQL execution, a job or a stage attempt without an end in the log.

    Attributes:
        kind, id: Which it is: `stage 3.1` is the second attempt of stage 3.
        name: What the program calls it; empty where the row above says it.
        depth: How many of the rows above it is a part of.
        since: When it started, in milliseconds since the epoch.
        done, total: Tasks of a stage, or stages of a job; a job may skip some of them.
        running: Tasks of a stage that run.
    """

    kind: Kind
    id: str
    name: str
    depth: int
    since: int | None
    done: int | None = None
    total: int | None = None
    running: int = 0

    @property
    def progress(self) -> str:
        """How far it is, as the log says; empty for a query, whose number of jobs nobody knows."""
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
        is_answered: Whether the driver has said which stages run.
    """

    state: Literal["running", "ended", "no end in its log"]
    since: int | None
    last: int | None
    waits: str
    waiting_since: int | None
    work: list[Work]
    left_out: int
    is_answered: bool = False


def now(scope: Scope, running: Sequence[RunningStage] = ()) -> Now:
    """What an application does, and what it waits for.

    Args:
        scope: The application by its log.
        running: Stages that run, as its driver says; empty where that does not answer.
    """
    app = scope.app
    if app.ended is not None:
        return Now("ended", app.ended, app.last or None, "", None, [], 0)
    work = list(_work(scope, running))
    waits, since = _waits_for_tasks(app, running) if running else _waits(app)
    state: Literal["running", "no end in its log"] = "running" if app.is_alive else "no end in its log"
    left_out = max(0, len(work) - MOST)
    return Now(state, app.started, app.last or None, waits, since, work[:MOST], left_out, is_answered=bool(running))


def _open_stages(app: Application) -> list[StageAttempt]:
    """Stages without an end, but for those whose job has ended: Spark cancels them without a word."""
    jobs = ((stage, app.job_of(stage)) for stage in app.stages.values() if stage.info.completed is None)
    return [stage for stage, job in jobs if job is None or job.completed is None]


def _open_jobs(app: Application) -> list[Job]:
    return [job for job in app.jobs.values() if job.completed is None]


def _open_queries(app: Application) -> list[Query]:
    return [query for query in app.queries.values() if query.ended is None]


def _work(scope: Scope, running: Sequence[RunningStage]) -> Iterator[Work]:
    """Open work as a tree: queries with their parts, then the jobs and stages that are part of none."""
    queries, jobs, stages = _open_queries(scope.app), _open_jobs(scope.app), _stages(scope, running)
    ids = {query.id for query in queries}
    for query in queries:
        if query.root not in ids:
            family = [query, *(each for each in queries if each.root == query.id)]
            name = scope.named(work_names.of_query(scope.app, query))
            yield Work("query", str(query.id), name, 0, query.started)
            yield from _jobs(scope, [job for job in jobs if job.query in {each.id for each in family}], stages, 1)
    yield from _jobs(scope, [job for job in jobs if job.query not in ids], stages, 0)
    known = {job.id for job in jobs}
    yield from (work for job, work in stages if job not in known)


def _stages(scope: Scope, running: Sequence[RunningStage]) -> list[tuple[int | None, Work]]:
    """Open stages with the numbers of their jobs: those of the log, then those that only the driver knows."""
    known = {(stage.id, stage.attempt): stage for stage in running}
    logged = [
        (stage.job, _stage(scope, stage, known.pop((stage.info.id, stage.info.attempt), None)))
        for stage in _open_stages(scope.app)
    ]
    jobs = _open_jobs(scope.app)
    owners = ((next((job.id for job in jobs if stage.id in job.stages), None), stage) for stage in known.values())
    return [*logged, *((job, _running_stage(stage)) for job, stage in owners)]


def _jobs(scope: Scope, jobs: list[Job], stages: list[tuple[int | None, Work]], depth: int) -> Iterator[Work]:
    for job in jobs:
        ended = {key[0] for key in job.ran if (stage := scope.app.stages.get(key)) and stage.info.completed is not None}
        name = scope.named(work_names.of_job(job)) if depth == 0 else ""
        yield Work("job", str(job.id), name, depth, job.submitted, len(ended), len(job.stages))
        yield from (replace(work, depth=depth + 1) for owner, work in stages if owner == job.id)


def _stage(scope: Scope, stage: StageAttempt, answer: RunningStage | None) -> Work:
    """An open stage of the log, with the tasks that the driver says, if it does."""
    info, name = stage.info, formatting.line(stage_name(scope, stage))
    tasks = (stage.completed, info.tasks, _running(stage)) if answer is None else _tasks(answer)
    return Work("stage", _number(info.id, info.attempt), name, 0, info.submitted, *tasks)


def _running_stage(stage: RunningStage) -> Work:
    name = formatting.line(stage.name)
    return Work("stage", _number(stage.id, stage.attempt), name, 0, stage.since, *_tasks(stage))


def _tasks(stage: RunningStage) -> tuple[int, int, int]:
    return stage.done, stage.total, stage.running


def _number(stage: int, attempt: int) -> str:
    return f"{stage}.{attempt}" if attempt else str(stage)


def _running(stage: StageAttempt) -> int:
    return max(0, stage.started - len(stage.durations_ms))


def _waits_for_tasks(app: Application, running: Sequence[RunningStage]) -> tuple[str, int | None]:
    """What an application waits for by the stages that its driver names, and since when no task was seen to run."""
    tasks = sum(stage.running for stage in running)
    later = sum(max(0, stage.total - stage.done - stage.running) for stage in running)
    rest = f"; {quantity(later, 'more task')} of the same stages have not started" if later else ""
    if tasks:
        return f"{quantity(tasks, 'task')} {'runs' if tasks == 1 else 'run'}{rest}.", None
    what = _named("stage", [each.id for each in running])
    return f"No task runs: {quantity(later, 'task')} of {what} wait.", _last_task(app)


def _waits(app: Application) -> tuple[str, int | None]:
    """What an application waits for, and since when no task was seen to run."""
    stages, jobs, queries = _open_stages(app), _open_jobs(app), _open_queries(app)
    running = sum(map(_running, stages))
    if running:
        later = sum(max(0, stage.info.tasks - stage.started) for stage in stages)
        rest = f"; {quantity(later, 'more task')} of the same stages had not started" if later else ""
        return f"{quantity(running, 'task')} ran at the last event{rest}.", None
    return _without_tasks(app, stages, jobs, queries), _last_task(app)


def _without_tasks(app: Application, stages: list[StageAttempt], jobs: list[Job], queries: list[Query]) -> str:
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
        return f"{_named('Job', [job.id for job in jobs])} began; no open stage of {whose} is in the log yet."
    if queries:
        what = _named("query", [query.id for query in queries])
        return f"No job runs: the driver plans {what}, or works on what its jobs returned."
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

"""The part of an application that a report covers: all of it, or what belongs to one spark-app run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from spark_app.eventlog import span_ids
from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Place
from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.occupancy import Occupancy
from spark_app.eventlog.model.stage_groups import flow_of
from spark_app.eventlog.model.streams import Batch, BatchKey
from spark_app.eventlog.replay import what_if
from spark_app.eventlog.replay.what_if import Forecast
from spark_app.eventlog.replay.work import Work, work
from spark_app.report import intervals
from spark_app.report.intervals import Interval
from spark_app.report.run_info import RunInfo

Status = Literal["done", "failed", "not finished"]
"""How a stage or a query stands."""


@dataclass(frozen=True)
class Scope:
    """What a report covers; `period` in milliseconds since the epoch; `run` is None for a whole application."""

    app: Application
    run: RunInfo | None
    period: Interval
    queries: list[Query]
    jobs: list[Job]
    stages: list[StageAttempt]
    batches: list[Batch]

    @cached_property
    def occupancy(self) -> Occupancy:
        """Cores and running tasks over its time."""
        return self.app.occupancy(self.stages, self.period)

    @cached_property
    def work(self) -> Work | None:
        """Its schedule for replays; None where there is nothing to replay."""
        return work(self.app, self.stages, self.occupancy)

    @cached_property
    def forecasts(self) -> list[Forecast]:
        """How long it would have taken on other cores; empty where there is nothing to replay."""
        return [] if self.work is None else what_if.forecasts(self.work, what_if.usual_changes(self.work))

    @property
    def title(self) -> str:
        """The name of the run or of the application."""
        return self.run.title if self.run else self.app.name or self.app.id or "application"

    def named(self, text: str) -> str:
        """A description without its prefix, the name of the run, which is the same throughout the report."""
        record = self.run.record if self.run else None
        if record is None:
            return text
        title = f"{record.pipeline} {record.slice}".rstrip()
        return text.replace(f"{title}: ", "", 1).replace(f"{record.pipeline} #: ", "", 1)

    def covers(self) -> Callable[[Place], bool]:
        """Says of a place whether it is in scope; one that names no part is the whole application, which always is."""
        stages = {StageKey(stage.info.id, stage.info.attempt) for stage in self.stages}
        streams = {name for batch in self.batches for name in (batch.name, batch.key.query)}
        queries = {query.id for query in self.queries}

        def is_covered(place: Place) -> bool:
            if place.stage is not None:
                return place.stage in stages
            if place.stream is not None:
                return place.stream in streams
            return place.query is None or place.query in queries

        return is_covered


def scope(app: Application, run: RunInfo | None) -> Scope:
    """All of an application, or the part of it that belongs to a run.

    The trace of the run decides; where it was not traced, its time does. Each micro-batch has a trace of its own,
    so it is found by the trace that its jobs carry.
    """
    queries, jobs = list(app.queries.values()), list(app.jobs.values())
    stages, batches = list(app.stages.values()), list(app.batches.values())
    if run is None:
        return Scope(app, None, _period(app, None, stages), queries, jobs, stages, batches)
    if run.trace_id is not None:
        trace, keys = int(run.trace_id, 16), _batch_keys(app, run.trace_id)
        batches = [batch for batch in batches if batch.key in keys]
        queries = [
            query
            for query in queries
            if span_ids.of_query(app, query).trace_id == trace or _batch_of_query(app, query) in keys
        ]
        jobs = [job for job in jobs if span_ids.of_job(app, job).trace_id == trace or _batch_of_job(app, job) in keys]
        ids = {job.id for job in jobs}
        stages = [stage for stage in stages if stage.job in ids]
    elif run.started is not None:
        start, end = run.started, run.ended or app.last
        queries = [query for query in queries if start <= query.started <= end]
        jobs = [job for job in jobs if start <= job.submitted <= end]
        stages = [stage for stage in stages if stage.info.submitted and start <= stage.info.submitted <= end]
        batches = [batch for batch in batches if start <= batch.started <= end]
    return Scope(app, run, _period(app, run, stages), queries, jobs, stages, batches)


def _batch_keys(app: Application, trace_id: str) -> set[BatchKey]:
    """The batches of the streaming queries that a run started: their jobs carry the `traceparent` of a step of it."""
    return {batch.key for batch in app.batches.values() if f"-{trace_id}-" in (batch.traceparent or "")}


def _batch_of_query(app: Application, query: Query) -> BatchKey | None:
    root = query if query.root is None else app.queries.get(query.root, query)
    return root.batch


def _batch_of_job(app: Application, job: Job) -> BatchKey | None:
    query = app.query_of(job)
    return job.batch if query is None else _batch_of_query(app, query)


def _period(app: Application, run: RunInfo | None, stages: list[StageAttempt]) -> Interval:
    if run is not None and run.started is not None:
        ends = [stage.info.completed for stage in stages]
        return intervals.bounds([run.started, run.ended], ends if run.ended is None else []) or Interval(0, 0)
    submitted: list[float | None] = [job.submitted for job in app.jobs.values()]
    begun = submitted if app.started is None else [app.started]
    return intervals.bounds(begun, [app.ended or app.last or None]) or Interval(0, 0)


def scheduling(jobs: Iterable[Job]) -> tuple[str | None, str | None]:
    """The job group and the scheduler pool of the first of some jobs; None where the program sets none.

    The group of a streaming query is the id of its run, which says nothing more.
    """
    for job in jobs:
        properties = job.properties
        return None if properties.query is not None else properties.group, properties.pool
    return None, None


def stage_name(scope: Scope, stage: StageAttempt) -> str:
    """What a stage does, and where its rows come from and go: `parquet at jobs/flights.py:24 [csv > shuffle]`."""
    name = scope.named(work_names.of_stage(scope.app, stage.info, stage.properties))
    return f"{name} [{flow_of(scope.app, stage)}]"

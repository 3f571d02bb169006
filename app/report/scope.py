"""Which part of an application a report is about: all of it, or what one run of ours asked for."""

from dataclasses import dataclass

from app.eventlog import identity
from app.eventlog.application import Application
from app.eventlog.findings import Finding
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.streams import Batch
from app.report import intervals
from app.report.intervals import Interval
from app.report.runs import RunInfo


@dataclass(frozen=True, slots=True)
class Scope:
    """What a report is about; `period` in milliseconds since the epoch, `run` if it is one of ours."""

    app: Application
    run: RunInfo | None
    period: Interval
    queries: list[Query]
    jobs: list[Job]
    stages: list[StageAttempt]
    batches: list[Batch]

    def named(self, text: str) -> str:
        """A description without the name of the run, which all in it have."""
        record = self.run.record if self.run else None
        if record is None:
            return text
        return text.replace(f"{record.pipeline} {record.date}: ", "", 1).replace(f"{record.pipeline} #: ", "", 1)

    def has(self, finding: Finding) -> bool:
        """Whether a finding is about something in here; one about the whole application is."""
        if finding.stage is not None:
            return any((stage.info.id, stage.info.attempt) == finding.stage for stage in self.stages)
        return finding.query is None or any(query.id == finding.query for query in self.queries)


def scope(app: Application, run: RunInfo | None) -> Scope:
    """All of an application, or the part of it that is in the trace of a run (without a trace: in its time)."""
    queries, jobs = list(app.queries.values()), list(app.jobs.values())
    stages, batches = list(app.stages.values()), list(app.batches.values())
    if run is None:
        return Scope(app, None, _period(app, None, stages), queries, jobs, stages, batches)
    if run.trace_id is not None:
        trace = int(run.trace_id, 16)
        queries = [query for query in queries if identity.of_query(app, query).trace_id == trace]
        jobs = [job for job in jobs if identity.of_job(app, job).trace_id == trace]
        stages = [stage for stage in stages if identity.of_stage(app, stage).trace_id == trace]
    elif run.started is not None:
        start, end = run.started, run.ended or app.last
        queries = [query for query in queries if start <= query.started <= end]
        jobs = [job for job in jobs if start <= job.submitted <= end]
        stages = [stage for stage in stages if stage.info.submitted and start <= stage.info.submitted <= end]
    return Scope(app, run, _period(app, run, stages), queries, jobs, stages, [])


def _period(app: Application, run: RunInfo | None, stages: list[StageAttempt]) -> Interval:
    if run is not None and run.started is not None:
        ends = [stage.info.completed for stage in stages]
        return intervals.bounds([run.started, run.ended], ends if run.ended is None else []) or Interval(0, 0)
    submitted: list[float | None] = [job.submitted for job in app.jobs.values()]
    begun = submitted if app.started is None else [app.started]
    return intervals.bounds(begun, [app.ended or app.last or None]) or Interval(0, 0)

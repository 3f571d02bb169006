"""The events of one application, taken one by one, as what is known of it so far."""

from collections.abc import Callable
from typing import Any, Final

from app.eventlog import events
from app.eventlog.events import Event
from app.eventlog.executor import Executor, Executors
from app.eventlog.model import Job, LateTask, Query, StageAttempt
from app.eventlog.parts import JobProperties, StageInfo, counted
from app.eventlog.queries import Queries
from app.eventlog.reuse import Reuse
from app.eventlog.streams import Batch, Streams
from app.eventlog.usage import Usage

Ended = Job | Query | StageAttempt | Executor | Batch | LateTask
NO_PROPERTIES: Final = JobProperties()


class Application:
    """What the events so far say about an application.

    Attributes:
        jobs, queries, executors, stages: By their ids; a stage has one for each attempt.
        streams, batches: Streaming queries, and those of their batches that have run jobs.
        numbers: What operators of queries have counted, by the id of the accumulable.
        running: How many tasks are at work now.
        first, last: The earliest and the latest time in any event.
        usage: What cores and driver did so far.
        reuse: What was read again, and what was cached.
    """

    def __init__(self, app_id: str) -> None:
        """Nothing is known yet but an id, until a line tells another."""
        self.id = app_id
        self.name: str | None = None
        self.user: str | None = None
        self.attempt: str | None = None
        self.spark_version: str | None = None
        self.properties: dict[str, str] = {}
        self.started: int | None = None
        self.ended: int | None = None
        self.exit_code: int | None = None
        self.jobs: dict[int, Job] = {}
        self.stages: dict[tuple[int, int], StageAttempt] = {}
        self._executors = Executors()
        self.executors = self._executors.known
        self.streams = Streams()
        self.batches = self.streams.batches
        self._sql = Queries(self.streams)
        self.queries = self._sql.known
        self.numbers = self._sql.numbers
        self.first: int | None = None
        self.last = self.running = 0
        self.usage = Usage()
        self.reuse = Reuse()
        self._open: dict[int, Job] = {}
        self._jobs_seen = self._lost_starts = 0
        self._last_job = -1
        self._take = self._takes()

    def _takes(self) -> dict[type, Callable[[Any], Ended | None]]:
        return {
            events.TaskStart: self._task_start,
            events.TaskEnd: self._task_end,
            events.StagePeaks: self._executors.reported,
            events.LogStart: self._log_start,
            events.ApplicationStart: self._application_start,
            events.ApplicationEnd: self._application_end,
            events.EnvironmentUpdate: self._environment,
            events.ExecutorAdded: self._executor_added,
            events.ExecutorRemoved: self._executor_removed,
            events.JobStart: self._job_start,
            events.JobEnd: self._job_end,
            events.StageSubmitted: self._stage_submitted,
            events.StageCompleted: self._stage_completed,
            events.SqlStart: self._query_start,
            events.SqlPlanChanged: self._sql.plan_changed,
            events.SqlEnd: self._query_end,
            events.DriverNumbers: self._sql.driver_counted,
            events.QueryStarted: self.streams.query_started,
            events.QueryProgress: self._progress,
            events.QueryTerminated: self.streams.query_terminated,
        }

    def take(self, event: Event) -> Ended | None:
        """Takes one event; gives what ends with it, if anything does."""
        take = self._take.get(type(event))
        return take(event) if take else None

    @property
    def is_whole(self) -> bool:
        """Whether the log has every job and the start of every task; not so if it is compacted or filtered."""
        return self._jobs_seen > self._last_job and not self._lost_starts

    @property
    def began(self) -> int | None:
        """When it started; where the log has lost its beginning, the time of the first event."""
        return self.first if self.started is None else self.started

    @property
    def task_cpus(self) -> int:
        """How many cores a task takes: `spark.task.cpus`. Spark counts the run time of a task once for each of them."""
        text = self.properties.get("spark.task.cpus", "1")
        return max(1, int(text)) if text.isdecimal() else 1

    @property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average over its time; None where the log tells of no executor."""
        return self.usage.slots(self.task_cpus)

    def job_of(self, stage: StageAttempt) -> Job | None:
        """The job that a stage attempt ran for first; None where it is not known, or not any more."""
        return None if stage.job is None else self.jobs.get(stage.job)

    def query_of(self, job: Job | None) -> Query | None:
        """The query that a job runs for; None where it runs for none, or for one that is not known."""
        return None if job is None or job.query is None else self.queries.get(job.query)

    def stages_of(self, query: Query) -> list[StageAttempt]:
        """The attempts of stages that ran for its jobs, as far as they are still known."""
        jobs = [self.jobs[number] for number in query.jobs if number in self.jobs]
        ran = dict.fromkeys(key for job in jobs for key in job.ran)
        return [self.stages[key] for key in ran if key in self.stages]

    def _saw(self, time: int | None) -> None:
        if not time:
            return
        if self.first is None:
            self.first = self.last = time
        if time < self.first:  # executors of one machine are told before their application
            self.usage.spend(self.first - time, cores=0, tasks=0, is_at_work=False)
            self.first = time
        if time > self.last:
            is_busy = bool(self._open or self._sql.open)
            self.usage.spend(time - self.last, cores=self._executors.cores, tasks=self.running, is_at_work=is_busy)
            self.last = time

    def _log_start(self, event: events.LogStart) -> None:
        self.spark_version = event.spark_version

    def _application_start(self, event: events.ApplicationStart) -> None:
        self.id, self.name = event.id or self.id, event.name
        self.user, self.attempt = event.user, event.attempt
        self.started = event.time
        self._saw(event.time)

    def _application_end(self, event: events.ApplicationEnd) -> None:
        self.ended, self.exit_code = event.time, event.exit_code
        self._saw(event.time)

    def _environment(self, event: events.EnvironmentUpdate) -> None:
        self.properties = dict(event.spark_properties)
        self.name = self.name or self.properties.get("spark.app.name")

    def _executor_added(self, event: events.ExecutorAdded) -> None:
        self._saw(event.time)
        self._executors.added(event)

    def _executor_removed(self, event: events.ExecutorRemoved) -> Executor | None:
        self._saw(event.time)
        return self._executors.removed(event)

    def _job_start(self, event: events.JobStart) -> None:
        self._saw(event.time)
        self._jobs_seen += 1
        self._last_job = max(self._last_job, event.id)
        properties = event.properties or NO_PROPERTIES
        query = int(properties.execution) if properties.execution and properties.execution.isdigit() else None
        job = Job(event.id, event.time, event.stages, properties, query, self.streams.batch_of(event.time, properties))
        job.ran = [(stage, 0) for stage in event.stages if (stage, 0) in self.stages]
        self.jobs[event.id] = self._open[event.id] = job
        self._sql.job_started(job)

    def _job_end(self, event: events.JobEnd) -> Job | None:
        self._saw(event.time)
        self._last_job = max(self._last_job, event.id)
        job = self._open.pop(event.id, None)
        if job is not None:
            job.completed = event.time
            job.has_failed = event.result.result != "JobSucceeded"
            job.failure = event.result.exception.message if event.result.exception else None
            self.streams.saw(job.batch, event.time)
        return job

    def _stage_submitted(self, event: events.StageSubmitted) -> None:
        self._saw(event.info.submitted)
        self._stage(event.info, event.properties).before = self.usage.copy()

    def _stage_completed(self, event: events.StageCompleted) -> StageAttempt:
        self._saw(event.info.completed)
        stage = self._stage(event.info, None)
        stage.info = event.info
        stage.usage = None if stage.before is None else self.usage.since(stage.before)
        job, numbers = self.job_of(stage), counted(event.info.accumulables)
        self._sql.counted(job.query if job else None, numbers)
        self.reuse.stage_ended(stage, job)
        return stage

    def _stage(self, info: StageInfo, properties: JobProperties | None) -> StageAttempt:
        key = (info.id, info.attempt)
        if key not in self.stages:
            jobs = [job for job in self._open.values() if info.id in job.stages]
            self.stages[key] = StageAttempt(info, properties, jobs[0].id if jobs else None)
            for job in jobs:
                job.ran.append(key)
        return self.stages[key]

    def _task_start(self, event: events.TaskStart) -> None:
        self._saw(event.info.launched)
        stage = self.stages.get((event.stage, event.stage_attempt))
        if stage is not None:
            stage.started += 1
            if not self.running:
                self.usage.gap_over(event.info.launched, stage.info, stage.properties)
        self.running += 1

    def _task_end(self, event: events.TaskEnd) -> LateTask | None:
        self._saw(event.info.finished)
        self.usage.last_task = event.info.finished
        if self.running:
            self.running -= 1
        else:
            self._lost_starts += 1
        executor = self.executors.get(event.info.executor)
        if executor is not None:
            executor.took(event)
        stage = self.stages.get((event.stage, event.stage_attempt))
        if stage is None:
            return None
        stage.add(event)
        return LateTask(stage, event) if stage.info.completed is not None else None

    def _query_start(self, event: events.SqlStart) -> None:
        self._saw(event.time)
        self._sql.started(event)

    def _query_end(self, event: events.SqlEnd) -> Query | None:
        self._saw(event.time)
        query = self._sql.ended(event)
        if query is not None:
            self.reuse.query_ended(query, self.stages_of(query), self.numbers)
        return query

    def _progress(self, event: events.QueryProgress) -> Batch | None:
        batch = self.streams.progressed(event)
        if batch is not None:
            self._saw(batch.started)
            self._saw(batch.ended)
        return batch

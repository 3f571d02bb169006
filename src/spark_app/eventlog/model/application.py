"""The events of one application, taken one by one, as what is known of it so far."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote

from spark_app.eventlog.model import stream_history
from spark_app.eventlog.model.clock import Clock
from spark_app.eventlog.model.connect import Connect, Operation, Session
from spark_app.eventlog.model.entities import Job, LateTask, Query, StageAttempt
from spark_app.eventlog.model.exclusions import Exclusions
from spark_app.eventlog.model.executors import Executor, Executors
from spark_app.eventlog.model.failed_parts import FailedParts
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.eventlog.model.input_bytes import is_missed
from spark_app.eventlog.model.memory import MemorySample
from spark_app.eventlog.model.occupancy import Occupancy, Span, TaskFreeTime, Utilization
from spark_app.eventlog.model.queries import Queries
from spark_app.eventlog.model.repeated_reads import RepeatedReads
from spark_app.eventlog.model.repeated_work import RepeatedWork
from spark_app.eventlog.model.stream_skew import skew_of
from spark_app.eventlog.model.streams import Batch, Streams
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event, JobProperties, StageInfo, TaskInfo, counted, whole_number

Ended = Job | Query | StageAttempt | Executor | Batch | LateTask | Operation | Session
NO_PROPERTIES: Final = JobProperties()
NAME: Final = "spark.observed.name"
"""The Spark property with the name that `spark-app observe --name` gives an application, percent-encoded."""
UNNAMED: Final = "pyspark-shell"
"""What PySpark calls an application that gives itself no name."""
MAX_LOG_RECORDS: Final = 1000
MAX_SIGNALS: Final = 128
"""From here on, an exit code is the number of a signal that has ended the process, as shells have it."""


class Application:
    """What the events so far say about an application.

    Attributes:
        jobs, queries, executors, stages: By their ids; a stage has one for each attempt.
        exclusions: Executors and hosts that got no tasks for some time, because tasks failed there.
        streams, batches: Streaming queries with their histories, and those of their batches that have run jobs.
        connect: Sessions and operations of the clients of Spark Connect.
        numbers: What operators of queries have counted, by the id of the accumulable.
        exit_code: What the driver passed to `SparkContext.stop`, from Spark 4.0 on.
        process_exit_code: Of its process, where the command that started it knows.
        is_alive: Whether its process still runs, where the command that started it knows.
        program: Its name for the command that started it, if PySpark has none: a file, a module or a pipeline.
        can_type: Whether a user may type into that program; None where the log does not say.
        running: The number of running tasks.
        first, last: The earliest and the latest time in any event.
        usage: What cores and driver did so far.
        deserialize_ms, deserialize_cpu_ns, run_ms, cpu_ns: Sums over the tasks of all stages so far.
        task_free: The time without a running task so far.
        host_load: The load of the driver's host, where something measured it; Spark does not.
        log_records: What its Python program has logged, where something collected it: the newest.
        repeated_reads: Repeated reads and caches.
        repeated_work: What several queries computed.
        left_out: SQL executions that ended before the log was compacted.
        clock: What was corrected because the clock of the driver was set back.
        failed_parts: Rules, sections and exporters that raised about it.
        lost_stage_starts: Attempts of stages that began with a task, since the log lacks their own start.
    """

    def __init__(self, app_id: str) -> None:
        """Nothing is known yet but an id, until a line has another."""
        self.id = app_id
        self.name: str | None = None
        self.user: str | None = None
        self.attempt: str | None = None
        self.spark_version: str | None = None
        self.properties: dict[str, str] = {}
        self.started: int | None = None
        self.ended: int | None = None
        self.exit_code: int | None = None
        self.process_exit_code: int | None = None
        self.is_alive: bool | None = None
        self.program = ""
        self.can_type: bool | None = None
        self.jobs: dict[int, Job] = {}
        self.stages: dict[tuple[int, int], StageAttempt] = {}
        self._executors = Executors()
        self.executors = self._executors.known
        self._exclusions = Exclusions()
        self.exclusions = self._exclusions.known
        self.streams = Streams()
        self.batches = self.streams.batches
        self.clock, self.failed_parts = Clock(), FailedParts()
        self.connect = Connect(self.clock)
        self.left_out = 0
        self._sql = Queries(self.streams, self.connect, self.clock)
        self.queries = self._sql.known
        self.numbers = self._sql.numbers
        self.first: int | None = None
        self.last = self.running = 0
        self.usage = Utilization()
        self.deserialize_ms = self.deserialize_cpu_ns = self.run_ms = self.cpu_ns = 0
        self.task_free = TaskFreeTime()
        self.host_load: HostLoad | None = None
        self.log_records: deque[events.LogRecord] = deque(maxlen=MAX_LOG_RECORDS)
        self.repeated_reads = RepeatedReads()
        self.repeated_work = RepeatedWork()
        self._open: dict[int, Job] = {}
        self._jobs_seen, self._last_job, self._lost_starts, self.lost_stage_starts = 0, -1, 0, 0
        self._handlers = self._handler_by_type()

    def _handler_by_type(self) -> dict[type, Callable[[Any], Ended | None]]:
        return {
            events.TaskStart: self._task_start,
            events.TaskEnd: self._task_end,
            events.StagePeaks: self._stage_peaks,
            events.LogStart: self._log_start,
            events.ApplicationStart: self._application_start,
            events.ApplicationEnd: self._application_end,
            events.EnvironmentUpdate: self._environment,
            events.ExecutorAdded: self._executor_added,
            events.ExecutorRemoved: self._executor_removed,
            events.Excluded: self._exclusions.excluded,
            events.Unexcluded: self._exclusions.unexcluded,
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
            events.QueryIdle: self.streams.idle,
            events.QueryTerminated: self._stream_ended,
            events.ConnectSessionStarted: self._at(self.connect.session_started),
            events.ConnectSessionClosed: self._at(self.connect.session_closed),
            events.ConnectOperationStarted: self._at(self.connect.started),
            events.ConnectOperationReady: self._at(self.connect.ready),
            events.ConnectOperationFinished: self._at(self.connect.finished),
            events.ConnectOperationFailed: self._at(self.connect.failed),
            events.ConnectOperationCanceled: self._at(self.connect.canceled),
            events.ConnectOperationClosed: self._at(self.connect.closed),
            events.LogRecord: self.log_records.append,
            events.Observed: self._observed,
            events.Compacted: self._compacted,
        }

    def apply(self, event: Event) -> Ended | None:
        """Applies one event; returns what ends with it, if anything does."""
        handler = self._handlers.get(type(event))
        return handler(event) if handler else None

    @property
    def is_batch(self) -> bool:
        """Whether it is known to be of a program that no user types into, and that ended by itself.

        A service, which waits for requests, is ended by a signal; the exit code is then 128 and more.
        """
        code = self.process_exit_code
        return bool(self.program) and not self.can_type and code is not None and 0 <= code < MAX_SIGNALS

    @property
    def has_begun(self) -> bool:
        """Whether it has done any work, or has ended: a start that follows is of another log in the same file."""
        return bool(self._jobs_seen or self.queries or self.ended is not None)

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
        return max(1, whole_number(self.properties.get("spark.task.cpus")) or 1)

    @property
    def slots(self) -> float | None:
        """How many tasks could run at once, on average over its time; None where the log has no executor."""
        return self.usage.slots

    def occupancy(
        self, stages: Iterable[StageAttempt], period: tuple[float, float], *, others: Sequence[Iterable[Span]] = ()
    ) -> Occupancy:
        """Its executors and the tasks of some stages over a period, and what else to add up; see `Occupancy`."""
        tasks = chain.from_iterable(stage.task_spans for stage in stages)
        return Occupancy(self.executors.values(), tasks, period, task_cpus=self.task_cpus, others=others)

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
        if (self.started or 0) <= time < self.first:  # in local mode the log has the executors before the application
            self.usage.spend(self.first - time, cores=0, slots=0, tasks=0)
            self.task_free.spend(time, self.first, cores=0, tasks=0, is_at_work=False)
            self.first = time
        if time > self.last:
            is_busy = bool(self._open or self._sql.open)
            cores, tasks = self._executors.cores, self.running
            self.usage.spend(time - self.last, cores=cores, slots=self._executors.slots, tasks=tasks)
            self.task_free.spend(self.last, time, cores=cores, tasks=tasks, is_at_work=is_busy)
            self.last = time

    def _at(self, handler: Callable[[Any], Ended | None]) -> Callable[[Any], Ended | None]:
        """A handler of events that have a time; core time up to it is counted first."""

        def handle(event: Any) -> Ended | None:
            self._saw(event.time)
            return handler(event)

        return handle

    def _log_start(self, event: events.LogStart) -> None:
        self.spark_version = event.spark_version

    def _application_start(self, event: events.ApplicationStart) -> None:
        self.id, self.name = event.id or self.id, self._given_name or self._named(event.name)
        self.user, self.attempt = event.user, event.attempt
        self.started = event.time
        self._saw(event.time)

    def _application_end(self, event: events.ApplicationEnd) -> None:
        self.ended, self.exit_code = self.clock.end(event.time, self.started, self.last), event.exit_code
        self._saw(self.ended)

    def _environment(self, event: events.EnvironmentUpdate) -> None:
        self.properties = dict(event.spark_properties)
        self._executors.configured(self.task_cpus)
        self.name = self._given_name or self.name or self._named(self.properties.get("spark.app.name"))

    def _named(self, name: str | None) -> str | None:
        return self.program if self.program and name == UNNAMED else name

    @property
    def _given_name(self) -> str:
        return unquote(self.properties.get(NAME, ""))

    def _executor_added(self, event: events.ExecutorAdded) -> None:
        self._saw(event.time)
        self._executors.added(event)

    def _executor_removed(self, event: events.ExecutorRemoved) -> Executor | None:
        self._saw(event.time)
        return self._executors.removed(event)

    def _job_start(self, event: events.JobStart) -> None:
        self._jobs_seen += 1
        self._last_job = max(self._last_job, event.id)
        properties = event.properties or NO_PROPERTIES
        query = self.queries.get(number) if (number := whole_number(properties.execution)) is not None else None
        time = self.clock.start(event.time or self.last, query.started if query else self.started)
        self._saw(time)
        operation = self.connect.of_tags((properties.tags or "").split(","))
        batch = self.streams.batch_of(time, properties)
        job = Job(event.id, time, event.stages, properties, number, batch, None if batch else operation)
        job.ran = [(stage, 0) for stage in event.stages if (stage, 0) in self.stages]
        self.jobs[event.id] = self._open[event.id] = job
        self._sql.job_started(job)

    def _job_end(self, event: events.JobEnd) -> Job | None:
        self._last_job = max(self._last_job, event.id)
        job = self._open.get(event.id)
        if job is not None:
            job.completed = self.clock.end(event.time or self.last, job.submitted, job.latest)
            self._saw(job.completed)
            del self._open[event.id]
            job.has_failed = event.result.has_failed
            job.failure = event.result.exception.message if event.result.exception else None
            self._sql.part_ended(job.query, job.completed)
            if job.operation is not None:
                job.operation.part_ended(job.completed)
            self.streams.saw(job.batch, job.completed)
        return job

    def _stage_submitted(self, event: events.StageSubmitted) -> None:
        event.info.completed = event.info.failure = None  # Spark may log a short stage as submitted after its end
        stage = self._stage(event.info, event.properties)
        stage.before = self.usage.copy()
        query = self.query_of(self.job_of(stage))
        stage.is_input_missed = is_missed(event.info, query, self.spark_version, self.properties)

    def _stage_completed(self, event: events.StageCompleted) -> StageAttempt | None:
        stage = self._stage(event.info, None)
        if stage.info is not event.info and stage.info.completed is not None:
            return None  # in a damaged log it may have ended before
        job, info = self.job_of(stage), event.info
        info.submitted = info.submitted if stage.info.submitted is None else stage.info.submitted
        info.completed = self.clock.end(info.completed or self.last, info.submitted, stage.latest)
        self._saw(info.completed)
        if job is not None and job.completed is None:
            job.latest = max(job.latest, info.completed)
            self._sql.part_ended(job.query, info.completed)  # a query that fails ends before its jobs
            self.streams.saw(job.batch, info.completed)
        if job is not None and job.operation is not None:
            job.operation.launched(stage.first_launch)
        stage.info = info
        stage.usage = None if stage.before is None else self.usage.since(stage.before)
        numbers = counted(info.accumulables)
        self._sql.counted(job.query if job else None, numbers)
        self.repeated_reads.stage_ended(stage, job)
        self.repeated_work.stage_ended(stage, job)
        if job is not None and job.batch is not None:
            self.streams.stage_ended(job.batch, skew_of(stage))
        return stage

    def _stage(self, info: StageInfo, properties: JobProperties | None) -> StageAttempt:
        key = (info.id, info.attempt)
        if key not in self.stages:
            jobs = [job for job in self._open.values() if info.id in job.stages]
            if info.submitted is not None:
                info.submitted = self.clock.start(info.submitted, jobs[0].submitted if jobs else self.started)
                self._saw(info.submitted)
                self.streams.saw(jobs[0].batch if jobs else None, info.submitted)
            self.stages[key] = StageAttempt(info, properties, jobs[0].id if jobs else None)
            for job in jobs:
                job.ran.append(key)
        return self.stages[key]

    def _task_start(self, event: events.TaskStart) -> None:
        stage, launched = self.stages.get((event.stage, event.stage_attempt)), event.info.launched
        if stage is None:
            stage = self._begun_by(event)
        self._saw(launched)
        if stage is not None:
            stage.started += 1
            stage.first_launch = launched if stage.first_launch is None else min(stage.first_launch, launched)
        self.running += 1

    def _task_end(self, event: events.TaskEnd) -> LateTask | None:
        stage, info = self.stages.get((event.stage, event.stage_attempt)), event.info
        if stage is None:
            stage = self._begun_by(event)
        if info.finished < info.launched or (stage is not None and info.launched < (stage.info.submitted or 0)):
            self._put_in_order(info, stage)
        if event.is_resubmitted:
            self._lose_output(event, stage)
            return None
        if event.metrics is None and event.reason.reason == events.RESULT_LOST:
            info.has_failed = True
        self._saw(info.finished)
        if self.running:
            self.running -= 1
        else:
            self._lost_starts += 1
        executor = self.executors.get(info.executor)
        if executor is not None:
            executor.task_ended(event)
        if stage is None:
            return None
        if stage.is_input_missed and event.metrics is not None:
            event.metrics.input.bytes = 0  # here, so that no rule uses it
        if event.metrics is not None:
            self.deserialize_ms += event.metrics.deserialize_ms
            self.deserialize_cpu_ns += event.metrics.deserialize_cpu_ns
            self.run_ms += event.metrics.run_ms
            self.cpu_ns += event.metrics.cpu_ns or 0
        stage.add(event)
        return LateTask(stage, event) if stage.info.completed is not None else None

    def _begun_by(self, task: events.TaskStart | events.TaskEnd) -> StageAttempt | None:
        """The attempt of a stage whose start the log lacks: it begins with its first task. None without an open job."""
        if not any(task.stage in job.stages for job in self._open.values()):
            return None
        self.lost_stage_starts += 1
        info = StageInfo(task.stage, task.stage_attempt, f"stage {task.stage}", 0, submitted=task.info.launched)
        return self._stage(info, None)

    def _put_in_order(self, info: TaskInfo, stage: StageAttempt | None) -> None:
        info.launched = self.clock.start(info.launched, stage.info.submitted if stage else None)
        info.finished = self.clock.end(info.finished, info.launched)

    def _lose_output(self, event: events.TaskEnd, stage: StageAttempt | None) -> None:
        """Takes the second end of a task: nothing ends, and its times are those of the first end."""
        executor = self.executors.get(event.info.executor)
        if executor is not None:
            executor.lose_output(event)
        if stage is not None:
            stage.lose_output(event)

    def _stage_peaks(self, event: events.StagePeaks) -> None:
        """Takes what an executor used at most during a stage, which ends now."""
        executor, key = self.executors.get(event.executor), (event.stage, event.stage_attempt)
        if executor is None or event.peaks.heap <= 0:
            return
        stage = self.stages.get(key)
        began = self.last if stage is None or stage.first_launch is None else stage.first_launch
        began, ended = max(began, executor.added), self.last if executor.removed is None else executor.removed
        executor.used(MemorySample(began, max(began, ended), key, event.peaks))

    def _query_start(self, event: events.SqlStart) -> None:
        time = self._sql.start_of(event, self.started)
        self._saw(time)
        self._sql.started(event, time)

    def _query_end(self, event: events.SqlEnd) -> Query | None:
        time = self._sql.end_of(event)
        self._saw(time)
        query = self._sql.ended(event, time)
        if query is not None:
            if query.operation is not None:
                query.operation.part_ended(time)
            stages = self.stages_of(query)
            self.repeated_reads.query_ended(query, stages, self.numbers)
            self.repeated_work.query_ended(query, stages, self.numbers)
        return query

    def _observed(self, event: events.Observed) -> None:
        self.process_exit_code, self.is_alive = event.exit_code, False
        self.program = self.program or event.program
        self.can_type = event.can_type if self.can_type is None else self.can_type
        self.name = self._given_name or self._named(self.name)
        if event.processors and event.samples:
            known = event.python_ms if len(event.python_ms) == len(event.samples) else [None] * len(event.samples)
            samples = tuple(LoadSample(*sample, python) for sample, python in zip(event.samples, known, strict=True))  # type: ignore[arg-type]
            self.host_load = HostLoad(event.processors, samples)

    def _stream_ended(self, event: events.QueryTerminated) -> Batch | None:
        return self.streams.query_terminated(event, self.last)

    def _compacted(self, event: events.Compacted) -> None:
        """Takes what a compact file has left out; nothing is known of what cores did in that time."""
        self.left_out += event.executions
        self.streams.restore(stream_history.decoded(event.streams))
        self.last = max(self.last, event.until)

    def _progress(self, event: events.QueryProgress) -> Batch | None:
        batch = self.streams.progressed(event)
        if batch is not None:
            self._saw(batch.started)
            self._saw(batch.ended)
        return batch

"""Lines of a Spark event log as typed events; only the fields that this program reads are decoded, the rest is skipped.

Names of events and fields are those of Spark's `JsonProtocol` and of the SQL listener events, 3.5 to 4.3. Times are
milliseconds since the epoch, durations milliseconds, CPU times nanoseconds, sizes bytes. A field that an older Spark
does not write has a default, so that an unknown value stays None.
"""

import datetime
import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw, Struct, field

from spark_app.vocabulary.spark_names import JOB_DESCRIPTION, JOB_GROUP, STREAM_QUERY_ID, STREAM_TRIGGER
from spark_app.vocabulary.spark_progress import Progress

Time = Annotated[int, Meta(ge=0, le=2**44)]
"""Milliseconds since the epoch; what is after the year 2500 was written by no Spark."""
Count = Annotated[int, Meta(ge=0, le=2**60)]
"""How much of something one task did; see `without_negative_metrics`."""
Peak = Annotated[int, Meta(ge=-1, le=2**60)]
_SQL: Final = "org.apache.spark.sql.execution.ui."
_STREAMING: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_CONNECT: Final = "org.apache.spark.sql.connect.service.SparkListenerConnect"
_SCHEDULER: Final = "org.apache.spark.scheduler.SparkListener"
LOG_START: Final = "SparkListenerLogStart"
APPLICATION_START: Final = "SparkListenerApplicationStart"
ENVIRONMENT_UPDATE: Final = "SparkListenerEnvironmentUpdate"
EXECUTOR_ADDED: Final = "SparkListenerExecutorAdded"
_SUCCEEDED: Final = "JobSucceeded"
PROPERTIES_OF_RUN: Final = (
    r"spark\.(?:app\.(?:id|startTime|submitTime|initial\..*)|driver\.(?:host|port)|executor\.id"
    r"|kubernetes\.(?:driverEnv\.SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME|driver\.pod\.name|executor\.podNamePrefix)"
    r"|executorEnv\.SPARK_(?:TRACE_ID|DRIVER_POD_IP)"
    r"|databricks\.delta\.(?:lastCommitVersionInSession|commitInfo\..*)|sql\.execution\..*root\.id)"
)
"""A pattern of the properties that Spark and Delta set anew in each run, or for each query."""
EXECUTOR_LOST: Final = "ExecutorLostFailure"
"""The reason of a task whose executor went away."""
RESUBMITTED: Final = "Resubmitted"
"""The reason of a second end of a task that had succeeded: its shuffle output was lost with its executor."""
RESULT_LOST: Final = "TaskResultLost"
"""The reason of a task whose result the driver could not get: Spark logs it as not failed, and counts it as failed."""
NOT_THE_TASK: Final = frozenset({EXECUTOR_LOST, RESUBMITTED, "FetchFailed", "TaskCommitDenied"})
"""Reasons of failures that a task does not cause itself."""
_PREFIX: Final = b'{"Event":"'
_TAG: Final = len(_PREFIX)
_NUMBER: Final = re.compile(rb'"?(-?[0-9]{1,19})"?')
_METRICS: Final = b'"Task Metrics":'
_NEGATIVE: Final = re.compile(rb'(?<=":)-[0-9]+')
_BREAK: Final = re.compile(r"<br ?/?>")
MAX_DIGITS: Final = 18
"""Digits of a number in a property; Python refuses to convert thousands of them."""


class EventField(Struct, gc=False):
    """A part of an event."""


def without_markup(description: str) -> str:
    """A description with line breaks in place of the `<br/>` that Spark writes for its own web UI.

    Sources: `HadoopFSUtils.parallelListLeafFiles` ("Listing leaf files and directories for 64 paths:<br/>..."), and
    `StreamExecution.getBatchDescriptionString` of older versions.
    """
    return _BREAK.sub("\n", description) if "<br" in description else description


class ExecutorAttributes(EventField):
    """What the environment of an executor says of it: `SPARK_EXECUTOR_ATTRIBUTE_KUBERNETES_NODE_NAME`."""

    node: str | None = field(name="KUBERNETES_NODE_NAME", default=None)


class ExecutorInfo(EventField):
    """Where an executor is, and how many tasks it runs at once."""

    host: str = field(name="Host")
    cores: Count = field(name="Total Cores")
    attributes: ExecutorAttributes = field(name="Attributes", default_factory=ExecutorAttributes)


class JobProperties(EventField):
    """Local properties of the thread that submitted a job or a stage, as far as they say what it is for."""

    traceparent: str | None = None
    description: str | None = field(name=JOB_DESCRIPTION, default=None)
    group: str | None = field(name=JOB_GROUP, default=None)
    execution: str | None = field(name="spark.sql.execution.id", default=None)
    call_site: str | None = field(name="callSite.short", default=None)
    stream_call_site: str | None = field(name="spark.observed.callSite", default=None)
    pool: str | None = field(name="spark.scheduler.pool", default=None)
    query: str | None = field(name=STREAM_QUERY_ID, default=None)
    batch: str | None = field(name="streaming.sql.batchId", default=None)
    trigger: str | None = field(name=STREAM_TRIGGER, default=None)
    tags: str | None = field(name="spark.job.tags", default=None)

    def __post_init__(self) -> None:
        """Takes the markup out of the description."""
        if self.description:
            self.description = without_markup(self.description)


class JobException(EventField):
    """Why a job failed."""

    message: str = field(name="Message", default="")


class JobResult(EventField):
    """How a job ended: JobSucceeded or JobFailed."""

    result: str = field(name="Result")
    exception: JobException | None = field(name="Exception", default=None)

    @property
    def has_failed(self) -> bool:
        """Whether the job has failed."""
        return self.result != _SUCCEEDED


class Accumulable(EventField):
    """A sum over the tasks of a stage; those of SQL are the numbers of an operator."""

    id: int = field(name="ID")
    name: str | None = field(name="Name", default=None)
    value: Raw = field(name="Value", default=Raw(b"null"))


def counted(accumulables: list[Accumulable]) -> dict[int, int]:
    """Accumulables that count something: totals of operators, as the driver knows them when a stage has ended."""
    return {
        accumulable.id: number
        for accumulable in accumulables
        if not (accumulable.name or "").startswith("internal.") and (number := number_of(accumulable)) is not None
    }


def number_of(accumulable: Accumulable) -> int | None:
    """What an accumulable has counted; None if it counts nothing."""
    number = _NUMBER.fullmatch(bytes(accumulable.value))
    return int(number[1]) if number else None


class StorageLevel(EventField):
    """The storage of an RDD; none unless it is cached."""

    use_disk: bool = field(name="Use Disk", default=False)
    use_memory: bool = field(name="Use Memory", default=False)


class RddInfo(EventField):
    """An RDD that a stage computes or reads; its scope is JSON that names the operator or the call that made it."""

    id: int = field(name="RDD ID")
    name: str = field(name="Name")
    level: StorageLevel = field(name="Storage Level", default_factory=StorageLevel)
    partitions: int = field(name="Number of Partitions", default=0)
    scope: str | None = field(name="Scope", default=None)
    parents: list[int] = field(name="Parent IDs", default_factory=list)


class StageInfo(EventField):
    """One attempt of a stage; its name is the call site."""

    id: int = field(name="Stage ID")
    attempt: int = field(name="Stage Attempt ID")
    name: str = field(name="Stage Name")
    tasks: int = field(name="Number of Tasks")
    details: str = field(name="Details", default="")
    parents: list[int] = field(name="Parent IDs", default_factory=list)
    rdds: list[RddInfo] = field(name="RDD Info", default_factory=list)
    submitted: Time | None = field(name="Submission Time", default=None)
    completed: Time | None = field(name="Completion Time", default=None)
    failure: str | None = field(name="Failure Reason", default=None)
    accumulables: list[Accumulable] = field(name="Accumulables", default_factory=list)


class TaskInfo(EventField):
    """One attempt of a task, as the scheduler saw it."""

    id: int = field(name="Task ID")
    index: int = field(name="Index")
    attempt: int = field(name="Attempt")
    launched: Time = field(name="Launch Time")
    executor: str = field(name="Executor ID")
    host: str = field(name="Host")
    is_speculative: bool = field(name="Speculative", default=False)
    getting_result: Time = field(name="Getting Result Time", default=0)
    finished: Time = field(name="Finish Time", default=0)
    has_failed: bool = field(name="Failed", default=False)
    was_killed: bool = field(name="Killed", default=False)

    @property
    def duration_ms(self) -> int:
        """How long it took, from its launch to its end."""
        return self.finished - self.launched


class ShuffleRead(EventField):
    """What a task read of other stages."""

    remote_bytes: Count = field(name="Remote Bytes Read", default=0)
    local_bytes: Count = field(name="Local Bytes Read", default=0)
    records: Count = field(name="Total Records Read", default=0)
    wait_ms: Count = field(name="Fetch Wait Time", default=0)

    @property
    def bytes(self) -> int:
        """What it read of executors elsewhere and of its own."""
        return self.remote_bytes + self.local_bytes


class ShuffleWrite(EventField):
    """What a task left for other stages, and how long it waited for the disk meanwhile, in nanoseconds."""

    bytes: Count = field(name="Shuffle Bytes Written", default=0)
    write_ns: Count = field(name="Shuffle Write Time", default=0)
    records: Count = field(name="Shuffle Records Written", default=0)


class Input(EventField):
    """What a task read of files and tables."""

    bytes: Count = field(name="Bytes Read", default=0)
    records: Count = field(name="Records Read", default=0)


class Output(EventField):
    """What a task wrote to files and tables."""

    bytes: Count = field(name="Bytes Written", default=0)
    records: Count = field(name="Records Written", default=0)


class TaskMetrics(EventField):
    """What a task did with its time and memory; Spark logs the CPU time from 2.1 on."""

    run_ms: Count = field(name="Executor Run Time", default=0)
    cpu_ns: Count | None = field(name="Executor CPU Time", default=None)
    deserialize_ms: Count = field(name="Executor Deserialize Time", default=0)
    deserialize_cpu_ns: Count = field(name="Executor Deserialize CPU Time", default=0)
    serialize_ms: Count = field(name="Result Serialization Time", default=0)
    result_bytes: Count = field(name="Result Size", default=0)
    gc_ms: Count = field(name="JVM GC Time", default=0)
    memory_spilled: Count = field(name="Memory Bytes Spilled", default=0)
    disk_spilled: Count = field(name="Disk Bytes Spilled", default=0)
    shuffle_read: ShuffleRead = field(name="Shuffle Read Metrics", default_factory=ShuffleRead)
    shuffle_write: ShuffleWrite = field(name="Shuffle Write Metrics", default_factory=ShuffleWrite)
    input: Input = field(name="Input Metrics", default_factory=Input)
    output: Output = field(name="Output Metrics", default_factory=Output)


class Peaks(EventField):
    """The most memory that an executor was seen to use; 0 where no heartbeat has looked, -1 where there was none."""

    heap: Peak = field(name="JVMHeapMemory", default=0)
    execution: Peak = field(name="OnHeapExecutionMemory", default=0)
    storage: Peak = field(name="OnHeapStorageMemory", default=0)
    off_heap_execution: Peak = field(name="OffHeapExecutionMemory", default=0)
    off_heap_storage: Peak = field(name="OffHeapStorageMemory", default=0)
    python: Peak = field(name="ProcessTreePythonRSSMemory", default=0)

    def highest(self, other: "Peaks") -> "Peaks":
        """The larger one of each."""
        return Peaks(
            max(self.heap, other.heap),
            max(self.execution, other.execution),
            max(self.storage, other.storage),
            max(self.off_heap_execution, other.off_heap_execution),
            max(self.off_heap_storage, other.off_heap_storage),
            max(self.python, other.python),
        )


class TaskEndReason(EventField):
    """Success, or what else: an exception has class and text, a lost executor its loss, a failed fetch a message."""

    reason: str = field(name="Reason")
    error_type: str | None = field(name="Class Name", default=None)
    description: str | None = field(name="Description", default=None)
    kill: str | None = field(name="Kill Reason", default=None)
    loss: str | None = field(name="Loss Reason", default=None)
    message: str | None = field(name="Message", default=None)


class SqlMetric(EventField):
    """A number of an operator: the accumulable that holds it, and how to read it (sum, size, timing, average)."""

    name: str
    id: int = field(name="accumulatorId")
    type: str = field(name="metricType", default="sum")


class SqlPlan(EventField):
    """An operator of a physical plan, with what it reads from."""

    name: str = field(name="nodeName")
    text: str = field(name="simpleString", default="")
    children: "list[SqlPlan]" = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    metrics: list[SqlMetric] = field(default_factory=list)


class _Event(Struct, gc=False, tag_field="Event"):
    """One line."""


class LogStart(_Event, tag=LOG_START):
    """The first line of each file."""

    spark_version: str = field(name="Spark Version")


class ApplicationStart(_Event, tag=APPLICATION_START):
    """The driver is up."""

    name: str = field(name="App Name")
    time: Time = field(name="Timestamp")
    user: str = field(name="User", default="")
    id: str | None = field(name="App ID", default=None)
    attempt: str | None = field(name="App Attempt ID", default=None)


class ApplicationEnd(_Event, tag="SparkListenerApplicationEnd"):
    """The driver ended in order; the exit code is there from 4.0 on."""

    time: Time = field(name="Timestamp")
    exit_code: int | None = field(name="ExitCode", default=None)


class EnvironmentUpdate(_Event, tag=ENVIRONMENT_UPDATE):
    """What the application was started with."""

    spark_properties: dict[str, str] | list[tuple[str, str]] = field(name="Spark Properties", default_factory=dict)


class ExecutorAdded(_Event, tag=EXECUTOR_ADDED):
    """An executor has registered."""

    time: Time = field(name="Timestamp")
    id: str = field(name="Executor ID")
    info: ExecutorInfo = field(name="Executor Info")


class ExecutorRemoved(_Event, tag="SparkListenerExecutorRemoved"):
    """An executor is gone, and why."""

    time: Time = field(name="Timestamp")
    id: str = field(name="Executor ID")
    reason: str = field(name="Removed Reason", default="")


class JobStart(_Event, tag="SparkListenerJobStart"):
    """A job was submitted, with all stages that it may need; what is reused of them is skipped."""

    id: int = field(name="Job ID")
    time: Time | None = field(name="Submission Time", default=None)
    stages: list[int] = field(name="Stage IDs", default_factory=list)
    properties: JobProperties | None = field(name="Properties", default=None)


class JobEnd(_Event, tag="SparkListenerJobEnd"):
    """A job has ended."""

    id: int = field(name="Job ID")
    time: Time | None = field(name="Completion Time", default=None)
    result: JobResult = field(name="Job Result", default_factory=lambda: JobResult(_SUCCEEDED))


class StageSubmitted(_Event, tag="SparkListenerStageSubmitted"):
    """An attempt of a stage has begun."""

    info: StageInfo = field(name="Stage Info")
    properties: JobProperties | None = field(name="Properties", default=None)


class StageCompleted(_Event, tag="SparkListenerStageCompleted"):
    """An attempt of a stage has ended, well or with a reason."""

    info: StageInfo = field(name="Stage Info")


class TaskStart(_Event, tag="SparkListenerTaskStart"):
    """A task was sent to an executor."""

    stage: int = field(name="Stage ID")
    stage_attempt: int = field(name="Stage Attempt ID")
    info: TaskInfo = field(name="Task Info")


class TaskEnd(_Event, tag="SparkListenerTaskEnd"):
    """An attempt of a task has ended; one that was lost with its executor has no metrics.

    An attempt that succeeded ends a second time, with the same id and without metrics, where its shuffle output is lost
    with its executor and no external shuffle service holds it: its reason is `RESUBMITTED`, and Spark runs the task
    again. Sources: Spark's `TaskSetManager.executorLost`, and `AppStatusListener.onTaskEnd`, which counts it as failed.
    """

    stage: int = field(name="Stage ID")
    stage_attempt: int = field(name="Stage Attempt ID")
    reason: TaskEndReason = field(name="Task End Reason")
    info: TaskInfo = field(name="Task Info")
    metrics: TaskMetrics | None = field(name="Task Metrics", default=None)
    peaks: Peaks | None = field(name="Task Executor Metrics", default=None)

    @property
    def is_resubmitted(self) -> bool:
        """Whether the attempt has succeeded before, and now lost its output."""
        return self.reason.reason == RESUBMITTED


class StagePeaks(_Event, tag="SparkListenerStageExecutorMetrics"):
    """What an executor used at most during a stage; with spark.eventLog.logStageExecutorMetrics, for each of them."""

    stage: int = field(name="Stage ID")
    stage_attempt: int = field(name="Stage Attempt ID")
    executor: str = field(name="Executor ID")
    peaks: Peaks = field(name="Executor Metrics")


class SqlStart(_Event, tag=f"{_SQL}SparkListenerSQLExecutionStart"):
    """A query began; `plan` decodes its plan when it is asked for."""

    id: int = field(name="executionId")
    time: Time
    plan: Raw = field(name="sparkPlanInfo")
    plan_description: Raw = field(name="physicalPlanDescription", default=Raw(b""))
    description: str = ""
    details: str = ""
    root: int | None = field(name="rootExecutionId", default=None)
    group: str | None = field(name="jobGroupId", default=None)
    tags: list[str] = field(name="jobTags", default_factory=list)
    settings: dict[str, str] = field(name="modifiedConfigs", default_factory=dict)

    def __post_init__(self) -> None:
        """Takes the markup out of the description."""
        self.description = without_markup(self.description)


class SqlPlanChanged(_Event, tag=f"{_SQL}SparkListenerSQLAdaptiveExecutionUpdate"):
    """Adaptive execution has another plan; the last one is what ran."""

    id: int = field(name="executionId")
    plan: Raw = field(name="sparkPlanInfo")


class SqlEnd(_Event, tag=f"{_SQL}SparkListenerSQLExecutionEnd"):
    """A query has ended; the message is empty when it went well, and absent before 3.4."""

    id: int = field(name="executionId")
    time: Time
    error: str | None = field(name="errorMessage", default=None)


class DriverNumbers(_Event, tag=f"{_SQL}SparkListenerDriverAccumUpdates"):
    """Numbers of operators that the driver has counted: pairs of accumulable and value."""

    id: int = field(name="executionId")
    updates: list[tuple[int, int]] = field(name="accumUpdates", default_factory=list)


class QueryStarted(_Event, tag=f"{_STREAMING}QueryStartedEvent"):
    """A run of a streaming query begins."""

    query: str = field(name="id")
    run: str = field(name="runId")
    name: str | None = None
    started_at: datetime.datetime | None = field(name="timestamp", default=None)


class QueryTerminated(_Event, tag=f"{_STREAMING}QueryTerminatedEvent"):
    """A run of a streaming query has ended, with an error or because it was stopped."""

    query: str = field(name="id")
    run: str = field(name="runId")
    error: str | None = field(name="exception", default=None)


class QueryProgress(_Event, tag=f"{_STREAMING}QueryProgressEvent"):
    """A trigger of a streaming query is done, mostly with a batch."""

    progress: Progress


class QueryIdle(_Event, tag=f"{_STREAMING}QueryIdleEvent"):
    """A trigger of a streaming query found nothing to do; Spark before 3.5 reports a progress without a batch."""

    query: str = field(name="id")
    run: str = field(name="runId")
    triggered_at: datetime.datetime = field(name="timestamp")


class ConnectSessionStarted(_Event, tag=f"{_CONNECT}SessionStarted"):
    """A client has opened a session of Spark Connect; its user is what the client says, and may be empty."""

    id: str = field(name="sessionId")
    time: Time = field(name="eventTime")
    user: str = field(name="userId", default="")


class ConnectSessionClosed(_Event, tag=f"{_CONNECT}SessionClosed"):
    """A client, or a limit of the server, has closed a session."""

    id: str = field(name="sessionId")
    time: Time = field(name="eventTime")
    user: str = field(name="userId", default="")


class _OfOperation(_Event):
    """Something has happened to an operation of Spark Connect."""

    id: str = field(name="operationId")
    time: Time = field(name="eventTime")


class ConnectOperationStarted(_OfOperation, tag=f"{_CONNECT}OperationStarted"):
    """A request to run something has come; the statement is its plan as a text, of up to 64 Ki characters a string."""

    job_tag: str = field(name="jobTag")
    session: str = field(name="sessionId")
    user: str = field(name="userId", default="")
    user_name: str = field(name="userName", default="")
    statement: str = field(name="statementText", default="")


class ConnectOperationReady(_OfOperation, tag=f"{_CONNECT}OperationReadyForExecution"):
    """The plan of an operation is ready to run; not so where it only changes the session."""


class ConnectOperationFinished(_OfOperation, tag=f"{_CONNECT}OperationFinished"):
    """An operation has run; its client may still fetch the result."""

    rows: Count | None = field(name="producedRowCount", default=None)


class ConnectOperationFailed(_OfOperation, tag=f"{_CONNECT}OperationFailed"):
    """An operation has failed."""

    error: str = field(name="errorMessage", default="")


class ConnectOperationCanceled(_OfOperation, tag=f"{_CONNECT}OperationCanceled"):
    """An operation was interrupted by its client, or by the end of its session."""


class ConnectOperationClosed(_OfOperation, tag=f"{_CONNECT}OperationClosed"):
    """An operation is over: its client has what it asked for."""


class Compacted(_Event, tag="spark_app.Compacted"):
    """What `spark_app.eventlog.bridge.compaction` has left out; an event of this program, which Spark's readers skip.

    `until`: the time of the last of the events. `executions`: how many SQL executions they had. `numbers`: the totals
    that a bridge exports. `streams`: the histories of the streaming queries.
    """

    until: Time
    executions: int
    numbers: bytes
    streams: bytes


class LogRecord(_Event, tag="spark-app.LogRecord"):
    """What the Python program of the driver has logged; `spark-app observe` adds it to the end of the log.

    The place is the line of the program that logged it. Spark skips events of a class that it does not have.
    """

    time: Time
    severity: str
    logger: str
    message: str
    file: str = ""
    line: int = 0
    exception: str = ""


class Observed(_Event, tag="spark-app.Observed"):
    """What `spark-app observe` knows of an application and its log does not; it adds this to the end of the log.

    `samples` are times in milliseconds since the epoch, runnable threads, and microseconds of waiting by resource;
    `python_ms` is what Python workers had used of processors, or waited for them, at the time of each.
    `program` names an application that PySpark has no name for, by the file or the module that the command names;
    `can_type` is whether a user may type into that, as into a shell or a notebook. Older logs lack it.
    """

    exit_code: int | None = None
    processors: int = 0
    samples: list[tuple[Time, int, dict[str, int]]] = field(default_factory=list)
    python_ms: list[int] = field(default_factory=list)
    program: str = ""
    can_type: bool | None = None


class Excluded(EventField):
    """An executor or a host gets no more tasks, of a stage attempt or of the application, since tasks failed there."""

    time: Time
    executor: str | None = field(name="executorId", default=None)
    host: str | None = field(name="hostId", default=None)
    stage: int | None = field(name="stageId", default=None)
    stage_attempt: int | None = field(name="stageAttemptId", default=None)
    task_failures: Count | None = field(name="taskFailures", default=None)
    executor_failures: Count | None = field(name="executorFailures", default=None)

    @property
    def failures(self) -> int | None:
        """The failed tasks of an executor, or the excluded executors of a host."""
        return self.task_failures if self.host is None else self.executor_failures


class Unexcluded(EventField):
    """An executor or a host gets tasks again."""

    time: Time
    executor: str | None = field(name="executorId", default=None)
    host: str | None = field(name="hostId", default=None)


TaggedEvent = (
    LogRecord | Observed |
    LogStart | ApplicationStart | ApplicationEnd | EnvironmentUpdate | ExecutorAdded | ExecutorRemoved
    | JobStart | JobEnd | StageSubmitted | StageCompleted | TaskStart | TaskEnd | StagePeaks
    | SqlStart | SqlPlanChanged | SqlEnd | DriverNumbers | QueryProgress | QueryStarted | QueryTerminated
    | QueryIdle | Compacted
    | ConnectSessionStarted | ConnectSessionClosed | ConnectOperationStarted
    | ConnectOperationReady | ConnectOperationFinished | ConnectOperationFailed | ConnectOperationCanceled
    | ConnectOperationClosed
)  # fmt: skip
Event = TaggedEvent | Excluded | Unexcluded
_EXCLUSIONS: Final = {
    "Excluded": Excluded, "ExcludedForStage": Excluded, "Unexcluded": Unexcluded,
    "Blacklisted": Excluded, "BlacklistedForStage": Excluded, "Unblacklisted": Unexcluded,
}  # fmt: skip
"""The ends of their names since Spark 3.1, and the older ones, which newer versions log as well."""
_DECODERS: Final[dict[bytes, Any]] = {
    **{kind.__struct_config__.tag.encode(): msgspec.json.Decoder(kind) for kind in TaggedEvent.__args__},
    **{
        f"{_SCHEDULER}{what}{name}".encode(): msgspec.json.Decoder(kind)
        for what in ("Executor", "Node")
        for name, kind in _EXCLUSIONS.items()
    },
}
_PLAN: Final = msgspec.json.Decoder(SqlPlan)


def event(line: bytes) -> Event | None:
    """The event of a line; None for a kind of event that this program does not use.

    Raises:
        ValueError: The line is not an event, or lacks a required field.
    """
    if not line.startswith(_PREFIX):
        line = _as_spark_writes_it(line)
    decoder = _DECODERS.get(line[_TAG : line.find(b'"', _TAG)])
    try:
        decoded: Event | None = decoder.decode(line) if decoder else None
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return decoded


def _as_spark_writes_it(line: bytes) -> bytes:
    """A line of JSON that another program has written, without blanks and with the name of the event first.

    Raises:
        ValueError: It is no event.
    """
    try:
        content = msgspec.json.decode(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(content, dict) or not isinstance(content.get("Event"), str):
        raise ValueError("not an event")
    return msgspec.json.encode({"Event": content.pop("Event")} | content)


def name_of(line: bytes) -> str:
    """The name of the event of a line, without its package: `SparkListenerTaskEnd`; empty for a line without one."""
    name = line[_TAG : line.find(b'"', _TAG)] if line.startswith(_PREFIX) else b""
    return name.decode(errors="replace").rpartition(".")[2]


def without_negative_metrics(line: bytes) -> bytes:
    """A line whose metrics are not negative: 0 stands for a time of a task in which a clock was set back."""
    position = line.find(_METRICS)
    return line if position < 0 else line[:position] + _NEGATIVE.sub(b"0", line[position:])


def whole_number(text: str | None) -> int | None:
    """The number that a property holds; None where it is absent, or is no whole number."""
    return int(text) if text and text.isdecimal() and len(text) <= MAX_DIGITS else None


def plan(raw: Raw) -> SqlPlan:
    """A physical plan as a tree.

    Raises:
        ValueError: It is not a plan, or is nested too deeply.
    """
    try:
        return _PLAN.decode(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error

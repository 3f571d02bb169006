"""Lines of a Spark event log as typed events: only the fields that somebody here needs; the rest is skipped unread.

Names of events and fields are those of Spark's `JsonProtocol` and of the SQL listener events, 3.5 to 4.3. Times are
milliseconds since the epoch, durations milliseconds, CPU times nanoseconds, sizes bytes. A field that an older Spark
does not write has a default, so that what is unknown stays None.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field

from app.eventlog.parts import (
    ExecutorInfo,
    JobProperties,
    JobResult,
    Peaks,
    Progress,
    SqlPlan,
    StageInfo,
    TaskEndReason,
    TaskInfo,
    TaskMetrics,
    Time,
)

_SQL: Final = "org.apache.spark.sql.execution.ui."
_STREAMING: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$"
EXECUTOR_LOST: Final = "ExecutorLostFailure"
"""The reason of a task whose executor went away."""
_PREFIX: Final = b'{"Event":"'
_TAG: Final = len(_PREFIX)


class _Event(Struct, gc=False, tag_field="Event"):
    """One line."""


class LogStart(_Event, tag="SparkListenerLogStart"):
    """The first line of each file."""

    spark_version: str = field(name="Spark Version")


class ApplicationStart(_Event, tag="SparkListenerApplicationStart"):
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


class EnvironmentUpdate(_Event, tag="SparkListenerEnvironmentUpdate"):
    """What the application was started with."""

    spark_properties: dict[str, str] | list[tuple[str, str]] = field(name="Spark Properties", default_factory=dict)


class ExecutorAdded(_Event, tag="SparkListenerExecutorAdded"):
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
    time: Time = field(name="Submission Time", default=0)
    stages: list[int] = field(name="Stage IDs", default_factory=list)
    properties: JobProperties | None = field(name="Properties", default=None)


class JobEnd(_Event, tag="SparkListenerJobEnd"):
    """A job has ended."""

    id: int = field(name="Job ID")
    time: Time = field(name="Completion Time", default=0)
    result: JobResult = field(name="Job Result", default_factory=lambda: JobResult("JobSucceeded"))


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
    """An attempt of a task has ended; one that was lost with its executor has no metrics."""

    stage: int = field(name="Stage ID")
    stage_attempt: int = field(name="Stage Attempt ID")
    reason: TaskEndReason = field(name="Task End Reason")
    info: TaskInfo = field(name="Task Info")
    metrics: TaskMetrics | None = field(name="Task Metrics", default=None)
    peaks: Peaks | None = field(name="Task Executor Metrics", default=None)


class StagePeaks(_Event, tag="SparkListenerStageExecutorMetrics"):
    """What an executor used at most during a stage; with spark.eventLog.logStageExecutorMetrics, for each of them."""

    executor: str = field(name="Executor ID")
    peaks: Peaks = field(name="Executor Metrics")


class SqlStart(_Event, tag=f"{_SQL}SparkListenerSQLExecutionStart"):
    """A query began; its plan is decoded by `plan` when somebody wants it."""

    id: int = field(name="executionId")
    time: Time
    plan: Raw = field(name="sparkPlanInfo")
    description: str = ""
    details: str = ""
    root: int | None = field(name="rootExecutionId", default=None)
    group: str | None = field(name="jobGroupId", default=None)
    tags: list[str] = field(name="jobTags", default_factory=list)
    settings: dict[str, str] = field(name="modifiedConfigs", default_factory=dict)


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


class QueryTerminated(_Event, tag=f"{_STREAMING}QueryTerminatedEvent"):
    """A run of a streaming query has ended, with an error or because it was stopped."""

    query: str = field(name="id")
    run: str = field(name="runId")
    error: str | None = field(name="exception", default=None)


class QueryProgress(_Event, tag=f"{_STREAMING}QueryProgressEvent"):
    """A batch of a streaming query is done."""

    progress: Progress


Event = (
    LogStart | ApplicationStart | ApplicationEnd | EnvironmentUpdate | ExecutorAdded | ExecutorRemoved
    | JobStart | JobEnd | StageSubmitted | StageCompleted | TaskStart | TaskEnd | StagePeaks
    | SqlStart | SqlPlanChanged | SqlEnd | DriverNumbers | QueryProgress | QueryStarted | QueryTerminated
)  # fmt: skip

_DECODERS: Final = {kind.__struct_config__.tag.encode(): msgspec.json.Decoder(kind) for kind in Event.__args__}
_PLAN: Final = msgspec.json.Decoder(SqlPlan)


def event(line: bytes) -> Event | None:
    """The event of a line; None for a kind that nobody here needs.

    Raises:
        ValueError: The line is no event, or lacks what each of its kind has.
    """
    if not line.startswith(_PREFIX):
        raise ValueError("no event")
    decoder: Any = _DECODERS.get(line[_TAG : line.find(b'"', _TAG)])
    try:
        found: Event | None = decoder.decode(line) if decoder else None
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return found


def plan(raw: Raw) -> SqlPlan:
    """A physical plan as a tree.

    Raises:
        ValueError: It is none, or is deeper than Python can follow.
    """
    try:
        return _PLAN.decode(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error

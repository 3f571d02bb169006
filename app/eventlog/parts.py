"""Parts of the events of a Spark event log that several events share, or that are worth a name; see `events`."""

import datetime
import re
from typing import Annotated, Final

from msgspec import Meta, Raw, Struct, field

Time = Annotated[int, Meta(ge=0, le=2**44)]
"""Milliseconds since the epoch; what is after the year 2500 was written by no Spark."""
Count = Annotated[int, Meta(ge=-(2**60), le=2**60)]
"""How much of something one task did; a time of it may be negative, as clocks are set back."""
_NUMBER: Final = re.compile(rb'"?(-?[0-9]{1,19})"?')


class Part(Struct, gc=False):
    """A part of an event."""


class ExecutorInfo(Part):
    """Where an executor is, and how many tasks it runs at once."""

    host: str = field(name="Host")
    cores: Count = field(name="Total Cores")


class JobProperties(Part):
    """Local properties of the thread that submitted a job or a stage, as far as they say what it is for."""

    traceparent: str | None = None
    description: str | None = field(name="spark.job.description", default=None)
    group: str | None = field(name="spark.jobGroup.id", default=None)
    execution: str | None = field(name="spark.sql.execution.id", default=None)
    call_site: str | None = field(name="callSite.short", default=None)
    query: str | None = field(name="sql.streaming.queryId", default=None)
    batch: str | None = field(name="streaming.sql.batchId", default=None)


class JobException(Part):
    """Why a job failed."""

    message: str = field(name="Message", default="")


class JobResult(Part):
    """How a job ended: JobSucceeded or JobFailed."""

    result: str = field(name="Result")
    exception: JobException | None = field(name="Exception", default=None)


class Accumulable(Part):
    """A sum over the tasks of a stage; those of SQL are the numbers of an operator."""

    id: int = field(name="ID")
    name: str | None = field(name="Name", default=None)
    value: Raw = field(name="Value", default=Raw(b"null"))


def counted(accumulables: list[Accumulable]) -> dict[int, int]:
    """Accumulables that count something: totals of operators, as the driver knows them when a stage has ended."""
    return {
        accumulable.id: int(number[1])
        for accumulable in accumulables
        if not (accumulable.name or "").startswith("internal.")
        and (number := _NUMBER.fullmatch(bytes(accumulable.value)))
    }


class StorageLevel(Part):
    """Where an RDD is kept; nowhere unless it is cached."""

    use_disk: bool = field(name="Use Disk", default=False)
    use_memory: bool = field(name="Use Memory", default=False)


class RddInfo(Part):
    """An RDD that a stage computes or reads; its scope is JSON that names the operator or the call that made it."""

    id: int = field(name="RDD ID")
    name: str = field(name="Name")
    level: StorageLevel = field(name="Storage Level", default_factory=StorageLevel)
    partitions: int = field(name="Number of Partitions", default=0)
    scope: str | None = field(name="Scope", default=None)


class StageInfo(Part):
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


class TaskInfo(Part):
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


class ShuffleRead(Part):
    """What a task read of other stages."""

    remote_bytes: Count = field(name="Remote Bytes Read", default=0)
    local_bytes: Count = field(name="Local Bytes Read", default=0)
    records: Count = field(name="Total Records Read", default=0)
    wait_ms: Count = field(name="Fetch Wait Time", default=0)

    @property
    def bytes(self) -> int:
        """What it read of executors elsewhere and of its own."""
        return self.remote_bytes + self.local_bytes


class ShuffleWrite(Part):
    """What a task left for other stages."""

    bytes: Count = field(name="Shuffle Bytes Written", default=0)
    records: Count = field(name="Shuffle Records Written", default=0)


class Input(Part):
    """What a task read of files and tables."""

    bytes: Count = field(name="Bytes Read", default=0)
    records: Count = field(name="Records Read", default=0)


class Output(Part):
    """What a task wrote to files and tables."""

    bytes: Count = field(name="Bytes Written", default=0)
    records: Count = field(name="Records Written", default=0)


class TaskMetrics(Part):
    """What a task did with its time and memory."""

    run_ms: Count = field(name="Executor Run Time", default=0)
    cpu_ns: Count = field(name="Executor CPU Time", default=0)
    deserialize_ms: Count = field(name="Executor Deserialize Time", default=0)
    serialize_ms: Count = field(name="Result Serialization Time", default=0)
    gc_ms: Count = field(name="JVM GC Time", default=0)
    memory_spilled: Count = field(name="Memory Bytes Spilled", default=0)
    disk_spilled: Count = field(name="Disk Bytes Spilled", default=0)
    shuffle_read: ShuffleRead = field(name="Shuffle Read Metrics", default_factory=ShuffleRead)
    shuffle_write: ShuffleWrite = field(name="Shuffle Write Metrics", default_factory=ShuffleWrite)
    input: Input = field(name="Input Metrics", default_factory=Input)
    output: Output = field(name="Output Metrics", default_factory=Output)


class Peaks(Part):
    """The most memory that an executor was seen to use; 0 where no heartbeat has looked."""

    heap: Count = field(name="JVMHeapMemory", default=0)
    storage: Count = field(name="OnHeapStorageMemory", default=0)
    off_heap_storage: Count = field(name="OffHeapStorageMemory", default=0)


class TaskEndReason(Part):
    """Success, or what else: an exception has class and text, a lost executor its loss, a failed fetch a message."""

    reason: str = field(name="Reason")
    error_type: str | None = field(name="Class Name", default=None)
    description: str | None = field(name="Description", default=None)
    kill: str | None = field(name="Kill Reason", default=None)
    loss: str | None = field(name="Loss Reason", default=None)
    message: str | None = field(name="Message", default=None)


class SqlMetric(Part):
    """A number of an operator: the accumulable that holds it, and how to read it (sum, size, timing, average)."""

    name: str
    id: int = field(name="accumulatorId")
    type: str = field(name="metricType", default="sum")


class SqlPlan(Part):
    """An operator of a physical plan, with what it reads from."""

    name: str = field(name="nodeName")
    text: str = field(name="simpleString", default="")
    children: "list[SqlPlan]" = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    metrics: list[SqlMetric] = field(default_factory=list)


class Source(Part):
    """What a batch read of one source; a source of old may not say how much."""

    rows: int | None = field(name="numInputRows", default=None)


class Progress(Part):
    """What a batch of a streaming query did; times in milliseconds by part of the work, rates in rows per second."""

    query: str = field(name="id")
    run: str = field(name="runId")
    triggered_at: datetime.datetime = field(name="timestamp")
    name: str | None = None
    batch: int = field(name="batchId", default=-1)
    duration_ms: Count = field(name="batchDuration", default=0)
    durations_ms: dict[str, int] = field(name="durationMs", default_factory=dict)
    sources: list[Source] = field(default_factory=list)

    @property
    def rows(self) -> int | None:
        """Rows that the batch has read; None where no source says so."""
        told = [source.rows for source in self.sources if source.rows is not None]
        return sum(told) if told else None

    @property
    def started(self) -> int:
        """When it was triggered, in milliseconds since the epoch."""
        return round(self.triggered_at.timestamp() * 1000)

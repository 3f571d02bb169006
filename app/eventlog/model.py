"""What an event log says about an application, as data: times in milliseconds since the epoch, None where unknown."""

from array import array
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Final

from msgspec import Raw

from app.eventlog.events import TaskEnd
from app.eventlog.parts import JobProperties, StageInfo, TaskInfo, TaskMetrics
from app.eventlog.streams import BatchKey
from app.eventlog.usage import Usage

SLOWEST: Final = 5
"""How many tasks of a stage attempt are kept because they took longest."""
KEPT_FAILURES: Final = 50
"""How many failed, killed and speculative tasks of a stage attempt are kept; the rest is counted."""


@dataclass(slots=True)
class Totals:
    """Sums over the tasks of a stage attempt that reported metrics; units as in `parts.TaskMetrics`."""

    run_ms: int = 0
    cpu_ns: int = 0
    gc_ms: int = 0
    deserialize_ms: int = 0
    serialize_ms: int = 0
    scheduler_delay_ms: int = 0
    memory_spilled: int = 0
    disk_spilled: int = 0
    input_bytes: int = 0
    input_records: int = 0
    output_bytes: int = 0
    output_records: int = 0
    output_tasks: int = 0
    shuffle_read_bytes: int = 0
    shuffle_read_records: int = 0
    shuffle_wait_ms: int = 0
    shuffle_write_bytes: int = 0
    shuffle_write_records: int = 0

    def add(self, metrics: TaskMetrics, *, delay_ms: int) -> None:
        """Adds what one task did."""
        read, write = metrics.shuffle_read, metrics.shuffle_write
        self.run_ms += metrics.run_ms
        self.cpu_ns += metrics.cpu_ns
        self.gc_ms += metrics.gc_ms
        self.deserialize_ms += metrics.deserialize_ms
        self.serialize_ms += metrics.serialize_ms
        self.scheduler_delay_ms += delay_ms
        self.memory_spilled += metrics.memory_spilled
        self.disk_spilled += metrics.disk_spilled
        self.input_bytes += metrics.input.bytes
        self.input_records += metrics.input.records
        self.output_bytes += metrics.output.bytes
        self.output_records += metrics.output.records
        self.output_tasks += metrics.output.bytes > 0
        self.shuffle_read_bytes += read.remote_bytes + read.local_bytes
        self.shuffle_read_records += read.records
        self.shuffle_wait_ms += read.wait_ms
        self.shuffle_write_bytes += write.bytes
        self.shuffle_write_records += write.records


@dataclass(slots=True)
class StageAttempt:
    """One attempt of a stage, with its tasks so far.

    Attributes:
        info: As Spark submitted it, and as it completed it.
        properties: Of the thread that submitted it.
        job: The job that it ran for first; a stage may serve several.
        totals: Sums over its tasks.
        launched, durations_ms: One value for each task attempt, in the order of their ends.
        shuffle_read_bytes, spilled_bytes: One value for each task attempt that reported metrics.
        failed, killed, speculative: How many task attempts.
        wasted, wasted_ms: Sums over the task attempts that failed or were killed, a part of the totals, and their time.
        kept: The failed, killed, speculative and repeated task attempts, up to `KEPT_FAILURES`.
        group: What it does, once `groups.group_of` was asked.
        before, usage: What the application's cores did before it, and from its beginning to its end.
    """

    info: StageInfo
    properties: JobProperties | None
    job: int | None
    group: str | None = None
    totals: Totals = field(default_factory=Totals)
    launched: "array[int]" = field(default_factory=lambda: array("q"))
    durations_ms: "array[int]" = field(default_factory=lambda: array("q"))
    shuffle_read_bytes: "array[int]" = field(default_factory=lambda: array("q"))
    spilled_bytes: "array[int]" = field(default_factory=lambda: array("q"))
    started: int = 0
    failed: int = 0
    killed: int = 0
    speculative: int = 0
    wasted: Totals = field(default_factory=Totals)
    wasted_ms: int = 0
    kept: list[TaskEnd] = field(default_factory=list)
    before: Usage | None = None
    usage: Usage | None = None
    _slowest: list[tuple[int, int, TaskEnd]] = field(default_factory=list)

    def add(self, task: TaskEnd) -> None:
        """Takes the end of one attempt of a task."""
        info, metrics = task.info, task.metrics
        duration = info.finished - info.launched  # not by properties here: they would take 1 % of all reading each
        self.launched.append(info.launched)
        self.durations_ms.append(duration)
        if metrics is not None:
            read = metrics.shuffle_read
            self.shuffle_read_bytes.append(read.remote_bytes + read.local_bytes)
            self.spilled_bytes.append(metrics.memory_spilled)
            self.totals.add(metrics, delay_ms=scheduler_delay_ms(info, metrics))
        if info.has_failed or info.was_killed or info.is_speculative or info.attempt:
            self._add_odd(task, duration)
        elif len(self._slowest) < SLOWEST:
            heappush(self._slowest, (duration, info.id, task))
        elif duration > self._slowest[0][0]:
            heappushpop(self._slowest, (duration, info.id, task))

    def _add_odd(self, task: TaskEnd, duration: int) -> None:
        """Takes a task attempt that failed, was killed, was tried again or was a copy."""
        info = task.info
        self.failed += info.has_failed
        self.killed += info.was_killed
        self.speculative += info.is_speculative
        if info.has_failed or info.was_killed:
            self.wasted_ms += duration
            if task.metrics is not None:
                self.wasted.add(task.metrics, delay_ms=scheduler_delay_ms(info, task.metrics))
        if len(self.kept) < KEPT_FAILURES:
            self.kept.append(task)

    @property
    def slowest(self) -> list[TaskEnd]:
        """The tasks that took longest, of those that succeeded in their first attempt; longest first."""
        return [task for _, _, task in sorted(self._slowest, reverse=True)]


@dataclass(slots=True)
class LateTask:
    """A task attempt that ended after the attempt of its stage: a copy that lost, one of a stage that failed."""

    stage: StageAttempt
    task: TaskEnd


@dataclass(slots=True)
class Job:
    """A job: `stages` are all that it may need, `ran` the attempts of them that were made; others are skipped."""

    id: int
    submitted: int
    stages: list[int]
    properties: JobProperties
    query: int | None
    batch: BatchKey | None = None
    ran: list[tuple[int, int]] = field(default_factory=list)
    completed: int | None = None
    failure: str | None = None
    has_failed: bool = False


@dataclass(slots=True)
class Query:
    """A SQL execution with its last plan; `plans` is how many it had, `settings` what it changed.

    Attributes:
        traceparent, batch: Those of its first job.
        is_placed: Whether its parent is known: it has run a job, or has ended.
        is_held: Whether its span waits for the end of the query that it is a part of.
        held: The queries that are a part of this one and whose spans wait for its end.
        numbers, reads_cache: What its own jobs have counted; whether it has read what other queries cached.
    """

    id: int
    root: int | None
    started: int
    description: str
    details: str
    plan: Raw
    plans: int = 1
    ended: int | None = None
    error: str | None = None
    traceparent: str | None = None
    batch: BatchKey | None = None
    is_placed: bool = False
    is_held: bool = False
    held: list[int] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    reads_cache: bool = False

    def settle(self, root: "Query | None") -> None:
        """Fixes its parent. If that of `root` is not known yet, the span of this query waits until `root` ends."""
        self.is_placed = True
        if root is not None and not root.is_placed:
            self.is_held = True
            root.held.append(self.id)


def task_totals(task: TaskEnd) -> Totals:
    """The sums of one task; zeros for a task without metrics."""
    totals = Totals()
    if task.metrics is not None:
        totals.add(task.metrics, delay_ms=scheduler_delay_ms(task.info, task.metrics))
    return totals


def scheduler_delay_ms(info: TaskInfo, metrics: TaskMetrics) -> int:
    """Time of a task that neither it nor its result can account for.

    Source: Spark's `AppStatusUtils.schedulerDelay`.
    """
    fetching = info.finished - info.getting_result if info.getting_result else 0
    work = metrics.run_ms + metrics.deserialize_ms + metrics.serialize_ms
    return max(0, info.finished - info.launched - work - fetching)

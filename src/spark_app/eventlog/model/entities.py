"""What an event log says about an application, as data: times in milliseconds since the epoch, None where unknown."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappush, heappushpop
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from spark_app.eventlog.model.connect import Operation
from spark_app.eventlog.model.occupancy import Span, Utilization
from spark_app.eventlog.model.streams import BatchKey
from spark_app.eventlog.model.targets import Target
from spark_app.eventlog.model.task_numbers import Totals, add
from spark_app.eventlog.parse.events import (
    NOT_THE_TASK,
    JobProperties,
    StageInfo,
    TaskEnd,
    TaskInfo,
    TaskMetrics,
)

MAX_SLOWEST: Final = 5
"""How many tasks of a stage attempt are kept because they took longest."""
WAITS: Final = ("network", "disk", "gc", "scheduling", "deserializing")
"""What Spark measures of each task that it waited for, in the order of `StageAttempt.waits_ms`."""
NO_WAITS: Final = (0,) * len(WAITS)
MAX_FAILURES: Final = 50
"""How many failed, killed and speculative tasks of a stage attempt are kept; the rest is counted."""


@dataclass(slots=True)
class StageAttempt:
    """One attempt of a stage, with its tasks so far.

    Attributes:
        info: As Spark submitted it, and as it completed it.
        properties: Of the thread that submitted it.
        job: The job that it ran for first; a stage may serve several.
        totals: Sums over its tasks.
        launched, durations_ms: One value for each task attempt, in the order of their ends.
        waits_ms: A value for each of `WAITS`, task attempt by task attempt in the same order; 0 without metrics.
        shuffle_read_bytes, spilled_bytes: One value for each task attempt that reported metrics.
        failed, killed, speculative: How many task attempts, as Spark counts them: a resubmitted one has failed.
        failed_itself: How many of the failed ones caused their failure: not for one of `NOT_THE_TASK`.
        resubmitted, resubmitted_ms: How many task attempts succeeded and then lost their output, and their time.
        first_launch: The launch of its first task attempt, if the log has it.
        latest: The end of the last of its task attempts that have ended.
        wasted, wasted_ms: Sums over the task attempts that failed or were killed, a part of the totals, and their time.
        kept: The failed, killed, speculative, repeated and resubmitted task attempts, up to `MAX_FAILURES`.
        group: What it does, after the first call of `stage_groups.group_of`.
        is_input_missed: Whether Spark did not count the bytes that its tasks read; they are 0 then, and not known.
        before, usage: What the application's cores did before it, and from its beginning to its end.
    """

    info: StageInfo
    properties: JobProperties | None
    job: int | None
    group: str | None = None
    is_input_missed: bool = False
    totals: Totals = field(default_factory=Totals)
    launched: "array[int]" = field(default_factory=lambda: array("q"))
    durations_ms: "array[int]" = field(default_factory=lambda: array("q"))
    waits_ms: "array[float]" = field(default_factory=lambda: array("f"))  # half of the memory, and never too small
    shuffle_read_bytes: "array[int]" = field(default_factory=lambda: array("q"))
    spilled_bytes: "array[int]" = field(default_factory=lambda: array("q"))
    started: int = 0
    failed: int = 0
    killed: int = 0
    speculative: int = 0
    failed_itself: int = 0
    resubmitted: int = 0
    resubmitted_ms: int = 0
    first_launch: int | None = None
    latest: int = 0
    wasted: Totals = field(default_factory=Totals)
    wasted_ms: int = 0
    kept: list[TaskEnd] = field(default_factory=list)
    before: Utilization | None = None
    usage: Utilization | None = None
    _slowest: list[tuple[int, int, TaskEnd]] = field(default_factory=list)

    def add(self, task: TaskEnd) -> None:
        """Takes the end of one attempt of a task."""
        info, metrics = task.info, task.metrics
        duration = info.finished - info.launched  # not by properties here: they would take 1 % of all reading each
        self.launched.append(info.launched)
        self.durations_ms.append(duration)
        self.latest = max(self.latest, info.finished)
        if metrics is not None:
            read, delay_ms = metrics.shuffle_read, scheduler_delay_ms(info, metrics)
            self.shuffle_read_bytes.append(read.remote_bytes + read.local_bytes)
            self.spilled_bytes.append(metrics.memory_spilled)
            add(self.totals, metrics, delay_ms)
            disk_ms = metrics.shuffle_write.write_ns / 1e6
            self.waits_ms.extend((read.wait_ms, disk_ms, metrics.gc_ms, delay_ms, metrics.deserialize_ms))
        else:
            self.waits_ms.extend(NO_WAITS)
        if info.has_failed or info.was_killed or info.is_speculative or info.attempt:
            self._add_odd(task, duration)
        elif len(self._slowest) < MAX_SLOWEST:
            heappush(self._slowest, (duration, len(self.durations_ms), task))
        elif duration > self._slowest[0][0]:
            heappushpop(self._slowest, (duration, len(self.durations_ms), task))

    def lose_output(self, task: TaskEnd) -> None:
        """Takes the second end of a task attempt that had succeeded and lost its output: it has failed after all.

        Its time and its metrics were taken at its first end.
        """
        self.failed += 1
        self.resubmitted += 1
        self.resubmitted_ms += task.info.duration_ms
        first = next((each for each in (*self.slowest, *self.kept) if each.info.id == task.info.id), task)
        self._slowest = [each for each in self._slowest if each[2] is not first]
        heapify(self._slowest)
        self.kept = [each for each in self.kept if each is not first]
        if len(self.kept) < MAX_FAILURES // 2:  # leaves room for attempts that failed by themselves
            self.kept.append(replace(first, reason=task.reason, info=replace(first.info, has_failed=True)))

    def _add_odd(self, task: TaskEnd, duration: int) -> None:
        """Takes a task attempt that failed, was killed, retried or speculative."""
        info = task.info
        self.failed += info.has_failed
        self.failed_itself += info.has_failed and task.reason.reason not in NOT_THE_TASK
        self.killed += info.was_killed
        self.speculative += info.is_speculative
        if info.has_failed or info.was_killed:
            self.wasted_ms += duration
            if task.metrics is not None:
                add(self.wasted, task.metrics, scheduler_delay_ms(info, task.metrics))
        if len(self.kept) < MAX_FAILURES:
            self.kept.append(task)

    @property
    def task_spans(self) -> Iterator[Span]:
        """When each of its task attempts ran that have ended."""
        return ((launched, launched + ms, 1) for launched, ms in zip(self.launched, self.durations_ms, strict=True))

    def waits_for(self, cause: str) -> "array[float]":
        """How long each of its task attempts waited for one of `WAITS`, in milliseconds."""
        return self.waits_ms[WAITS.index(cause) :: len(WAITS)]

    @property
    def completed(self) -> int:
        """How many task attempts succeeded; as in Spark, those that lost their output later are among them."""
        return len(self.durations_ms) - (self.failed - self.resubmitted) - self.killed

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
    """A job: `stages` are all that it may need, `ran` the attempts of them that were made; others are skipped.

    Where the log lacks its start or its end, as in logs of Spark before 1.3, they are the time of the event before.
    `latest` is the end of the last of its stages that have ended. `operation` is what asked for it, of a client of
    Spark Connect.
    """

    id: int
    submitted: int
    stages: list[int]
    properties: JobProperties
    query: int | None
    batch: BatchKey | None = None
    operation: Operation | None = None
    ran: list[tuple[int, int]] = field(default_factory=list)
    completed: int | None = None
    latest: int = 0
    failure: str | None = None
    has_failed: bool = False


@dataclass(slots=True)
class Query:
    """A SQL execution with its last plan; `plans` is how many it had, `settings` what it changed.

    Attributes:
        target: What it writes; None where the log does not say.
        sources: What it reads, after `work_names` was asked for its name and found nothing better.
        traceparent, batch: Those of its first job.
        operation: What asked for it, of a client of Spark Connect.
        is_placed: Whether its parent is known: it has run a job, or has ended.
        is_held: Whether its span waits for the end of the query that it is a part of.
        held: The queries that are a part of this one and whose spans wait for its end.
        latest: The end of the last of its parts that have ended.
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
    latest: int = 0
    error: str | None = None
    target: Target | None = None
    sources: str | None = None
    traceparent: str | None = None
    batch: BatchKey | None = None
    operation: Operation | None = None
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


def totals_of(tasks: Iterable[TaskEnd]) -> Totals:
    """The sums of some tasks; those without metrics add nothing."""
    totals = Totals()
    for task in tasks:
        if task.metrics is not None:
            add(totals, task.metrics, scheduler_delay_ms(task.info, task.metrics))
    return totals


def unmeasured_wait_ms(totals: Totals) -> float:
    """Run time in which tasks had no processor and waited neither for a shuffle nor for garbage collection."""
    return max(0.0, totals.run_ms - (totals.cpu_ns or 0) / 1e6 - totals.gc_ms - totals.shuffle_wait_ms)


def scheduler_delay_ms(info: TaskInfo, metrics: TaskMetrics) -> int:
    """Time of a task that neither it nor its result can account for.

    Source: Spark's `AppStatusUtils.schedulerDelay`.
    """
    fetching = max(0, info.finished - info.getting_result) if info.getting_result else 0
    work = metrics.run_ms + metrics.deserialize_ms + metrics.serialize_ms
    return max(0, info.finished - info.launched - work - fetching)

"""What an event log says about executors, as data."""

from dataclasses import dataclass, field
from typing import Literal

from spark_app.eventlog.model.failures import is_of_executor
from spark_app.eventlog.model.memory import MemoryHistory, MemorySample
from spark_app.eventlog.parse.events import EXECUTOR_LOST, ExecutorAdded, ExecutorRemoved, TaskEnd


@dataclass(slots=True)
class Executor:
    """An executor, or the driver where it runs tasks; sizes in bytes, None where they were not reported.

    Attributes:
        node: The node of its pod on Kubernetes, where the pod names it.
        lost_tasks, lost_task_ms: Tasks that were lost with it, if it was lost: they ran there, had ended it by their
            failure, or had left their output there.
        peak_heap: The most of `heap_samples` reports.
        stored: What cached blocks took of its memory by its last report.
        memory: The most that it used over time.
    """

    id: str
    host: str
    cores: int
    added: int
    node: str | None = None
    removed: int | None = None
    reason: str | None = None
    lost_tasks: int = 0
    lost_task_ms: int = 0
    peak_heap: int | None = None
    heap_samples: int = 0
    stored: int | None = None
    memory: MemoryHistory = field(default_factory=MemoryHistory)

    def task_ended(self, task: TaskEnd) -> None:
        """Takes the end of a task that it ran."""
        if task.peaks is not None and task.peaks.heap > 0:
            stage = (task.stage, task.stage_attempt)
            self.used(MemorySample(task.info.launched, task.info.finished, stage, task.peaks))
        if task.reason.reason == EXECUTOR_LOST or is_of_executor(task.reason):
            self.lost_tasks += 1
            self.lost_task_ms += task.info.duration_ms

    def lose_output(self, task: TaskEnd) -> None:
        """Takes the loss of the output of a task that it ran."""
        self.lost_tasks += 1
        self.lost_task_ms += task.info.duration_ms

    def used(self, sample: MemorySample) -> None:
        """Keeps the most that it was seen to use, and what caches took last."""
        peaks = sample.peaks
        self.peak_heap = max(self.peak_heap or 0, peaks.heap)
        self.heap_samples += 1
        self.stored = max(0, peaks.storage) + max(0, peaks.off_heap_storage)
        self.memory.add(sample)


class Executors:
    """The executors so far.

    Attributes:
        known: By their ids.
        cores, slots: Of the executors that are there now: cores, and tasks that they can run at once.
    """

    def __init__(self) -> None:
        """No executor has come."""
        self.known: dict[str, Executor] = {}
        self.cores = self.slots = 0
        self._task_cpus = 1

    def configured(self, task_cpus: int) -> None:
        """A task takes so many cores, also on the executors that a log has before its settings."""
        self._task_cpus = task_cpus
        self.slots = sum(each.cores // task_cpus for each in self.known.values() if each.removed is None)

    def added(self, event: ExecutorAdded) -> None:
        """An executor is there from now on."""
        self._count(self.known.get(event.id), -1)
        info = event.info
        executor = Executor(event.id, info.host, info.cores, event.time, info.attributes.node or None)
        self.known[event.id] = executor
        self._count(executor, 1)

    def removed(self, event: ExecutorRemoved) -> Executor | None:
        """An executor is gone; None if the log does not say that it came."""
        executor = self.known.get(event.id)
        self._count(executor, -1)
        if executor is not None:
            executor.removed, executor.reason = max(executor.added, event.time), event.reason
        return executor

    def _count(self, executor: Executor | None, sign: Literal[1, -1]) -> None:
        if executor is not None and executor.removed is None:
            self.cores += sign * executor.cores
            self.slots += sign * (executor.cores // self._task_cpus)

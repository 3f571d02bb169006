"""What an event log says about executors, as data."""

from dataclasses import dataclass

from app.eventlog.events import EXECUTOR_LOST, ExecutorAdded, ExecutorRemoved, StagePeaks, TaskEnd
from app.eventlog.parts import Peaks


@dataclass(slots=True)
class Executor:
    """An executor, or the driver where it runs tasks; sizes in bytes, None where they were not reported.

    Attributes:
        peak_heap: The most of `heap_samples` reports.
        stored: What cached blocks took of its memory by its last report.
    """

    id: str
    host: str
    cores: int
    added: int
    removed: int | None = None
    reason: str | None = None
    lost_tasks: int = 0
    lost_task_ms: int = 0
    peak_heap: int | None = None
    heap_samples: int = 0
    stored: int | None = None

    def took(self, task: TaskEnd) -> None:
        """Takes the end of a task that it ran."""
        self.used(task.peaks)
        if task.reason.reason == EXECUTOR_LOST:
            self.lost_tasks += 1
            self.lost_task_ms += task.info.duration_ms

    def used(self, peaks: Peaks | None) -> None:
        """Keeps the most of its heap that it was seen to use, and what caches took last."""
        if peaks is not None and peaks.heap:
            self.peak_heap = max(self.peak_heap or 0, peaks.heap)
            self.heap_samples += 1
            self.stored = peaks.storage + peaks.off_heap_storage


class Executors:
    """The executors so far.

    Attributes:
        known: By their ids.
        cores: Of the executors that are there now.
    """

    def __init__(self) -> None:
        """No executor has come."""
        self.known: dict[str, Executor] = {}
        self.cores = 0

    def added(self, event: ExecutorAdded) -> None:
        """An executor is there from now on."""
        self.cores += event.info.cores
        self.known[event.id] = Executor(event.id, event.info.host, event.info.cores, event.time)

    def removed(self, event: ExecutorRemoved) -> Executor | None:
        """An executor is gone; None if the log does not say that it came."""
        executor = self.known.get(event.id)
        if executor is not None:
            self.cores -= executor.cores if executor.removed is None else 0
            executor.removed, executor.reason = event.time, event.reason
        return executor

    def reported(self, event: StagePeaks) -> None:
        """What an executor used at most during a stage."""
        if event.executor in self.known:
            self.known[event.executor].used(event.peaks)

"""What the cores and the driver of an application did over time, summed up while its events are read."""

from dataclasses import dataclass


@dataclass(slots=True)
class Utilization:
    """Sums over time, in milliseconds, for a log with the start and the end of every task.

    Events are not exactly in the order of their times: sums may be 0.1 % short of the sums over tasks.

    Attributes:
        wall_ms: Wall-clock time.
        core_ms: Time, multiplied by the cores of the registered executors.
        task_ms: Time, multiplied by the running tasks.
        planning_ms: Time in which a job or a query ran without tasks, while executors were registered.
        waiting_ms: The same without any executor.
        outside_ms: Time without any running task, job or query.
    """

    wall_ms: int = 0
    core_ms: int = 0
    task_ms: int = 0
    planning_ms: int = 0
    waiting_ms: int = 0
    outside_ms: int = 0

    def spend(self, ms: int, *, cores: int, tasks: int, is_at_work: bool) -> None:
        """Adds a stretch of time in which nothing changed."""
        self.wall_ms += ms
        self.core_ms += ms * cores
        if tasks:
            self.task_ms += ms * tasks
        elif not is_at_work:
            self.outside_ms += ms
        elif cores:
            self.planning_ms += ms
        else:
            self.waiting_ms += ms

    def slots(self, task_cpus: int) -> float | None:
        """How many tasks could run at once, on average; None where no executor was there.

        Args:
            task_cpus: How many cores a task takes.
        """
        return self.core_ms / self.wall_ms / task_cpus if self.wall_ms and self.core_ms else None

    @property
    def busy_ms(self) -> int:
        """Wall-clock time in which a task ran."""
        return self.wall_ms - self.planning_ms - self.waiting_ms - self.outside_ms

    def wall_of(self, task_ms: float) -> float | None:
        """What a part of the task time took of the wall-clock time: divided by the mean number of running tasks.

        None where no task is known to have run.
        """
        return task_ms * self.busy_ms / self.task_ms if self.task_ms else None

    def copy(self) -> "Utilization":
        """The sums as they are now."""
        return self.since(Utilization())

    def since(self, before: "Utilization") -> "Utilization":
        """What was added after an earlier copy."""
        return Utilization(
            self.wall_ms - before.wall_ms,
            self.core_ms - before.core_ms,
            self.task_ms - before.task_ms,
            self.planning_ms - before.planning_ms,
            self.waiting_ms - before.waiting_ms,
            self.outside_ms - before.outside_ms,
        )

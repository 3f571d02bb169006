"""Shares of the time of tasks, from 0 to 1; None where no time is known."""

from collections.abc import Sequence

from spark_app.eventlog.model.task_numbers import Totals


def gc_share(totals: Sequence[Totals], task_cpus: int) -> float | None:
    """Garbage collection as a share of the time in which tasks were deserialised and ran.

    Spark measures it over both (`Executor.TaskRunner.run`), and counts the run time once for each core of a task. The
    share is at most 1: times are rounded down to milliseconds, and collectors that work beside the tasks (G1 from JDK
    20 on) report time in which tasks went on.

    Args:
        totals: Of stages or tasks.
        task_cpus: How many cores a task takes.
    """
    time = sum(each.run_ms / task_cpus + each.deserialize_ms for each in totals)
    return min(1.0, sum(each.gc_ms for each in totals) / time) if time else None


def cpu_share(totals: Sequence[Totals]) -> float | None:
    """CPU time as a share of run time; at most 1, because the run time is rounded down to milliseconds.

    None where the log has no CPU times, as those of Spark before 2.1.
    """
    known = [(each.cpu_ns, each.run_ms) for each in totals if each.cpu_ns is not None]
    time = sum(run_ms for _, run_ms in known)
    return min(1.0, sum(cpu_ns for cpu_ns, _ in known) / 1e6 / time) if time else None

"""Rules about the executors of an application: lost executors, and executors with too much or too little memory."""

import re
from collections import Counter
from typing import Final

from spark_app.eventlog.diagnoses import switches
from spark_app.eventlog.diagnoses.excerpts import excerpt
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.executor_loss import is_lost
from spark_app.eventlog.model.executors import Executor
from spark_app.formatting import count, duration, quantity, share, size

_OUT_OF_MEMORY: Final = re.compile(r"\bmemory\b|OOM|code 52\b")
"""Finds loss reasons about memory; 52 is an `OutOfMemoryError` in Spark's `SparkExitCode`."""
_KILLED: Final = re.compile(r"code 137\b")
_MORE_MEMORY: Final = (
    "It ran out of memory: raise spark.executor.memoryOverhead (killed from outside; Python workers count) or "
    "spark.executor.memory (out of heap), or run fewer tasks at once (spark.executor.cores)."
)
_WHO_KILLED: Final = (
    "The executor was killed (SIGKILL): by its host for its memory use (raise spark.executor.memoryOverhead, or lower "
    "spark.executor.cores), or by preemption. The log of the host says which."
)
_LOOK: Final = (
    "Read the logs of the executor and of its host: it was killed, preempted, or sent no heartbeat in time "
    "(spark.network.timeout; long garbage collections)."
)


def lost_executors(app: Application, _limits: Thresholds) -> list[Finding]:
    """Finds executors that disappeared, except by dynamic allocation or decommissioning.

    Cost: the time of the tasks that were lost with them, divided by the mean number of running tasks. Spark writes
    their shuffle output once more in another attempt of a stage, whose cost `retried_stage` reports. An info if the
    cost is low.
    """
    lost = [executor for executor in app.executors.values() if is_lost(app, executor)]
    if not lost:
        return []
    reason, _ = Counter(excerpt(executor.reason or "no reason given") for executor in lost).most_common(1)[0]
    tasks, task_ms = sum(executor.lost_tasks for executor in lost), sum(executor.lost_task_ms for executor in lost)
    wall = app.usage.wall_of(task_ms)
    cost = task_ms / max(1.0, app.slots or 0.0) if wall is None else wall
    return [
        Finding(
            "lost_executors",
            "info",
            f"Lost {count(len(lost))} of {quantity(len(app.executors), 'executor')} and {quantity(tasks, 'task')} "
            f"that ran there ({duration(task_ms)} of task time); most frequent reason: {reason}",
            _advice(reason),
            {"lost_executors": len(lost), "executors": len(app.executors)}
            | {"lost_tasks": tasks, "lost_task_ms": task_ms},
            cost_ms=cost,
        )
    ]


def _advice(reason: str) -> str:
    if _OUT_OF_MEMORY.search(reason):
        return _MORE_MEMORY
    return _WHO_KILLED if _KILLED.search(reason) else _LOOK


def memory_over(app: Application, limits: Thresholds) -> list[Finding]:
    """Finds applications whose executors never used much of their heap.

    No cost in time. Spark reports the heap with each heartbeat (10 s) while a task runs, or for each stage with
    spark.eventLog.logStageExecutorMetrics=true. The used heap includes garbage, so tasks need less than these reports
    show. Without enough reports there is no finding.
    """
    executors = _measured(app, limits)
    memory = executor_memory(app)
    if not executors or memory is None or memory < limits.memory_over_bytes:
        return []
    peak = max(executor.peak_heap or 0 for executor in executors)
    if peak >= limits.memory_over_ratio * memory:
        return []
    return [
        Finding(
            "memory_over",
            "info",
            f"No executor used more than {size(peak)} of {size(memory)} of heap ({share(peak / memory)}), by the "
            f"reports of {quantity(len(executors), 'executor')}.",
            f"Lower {switches.now(app.properties, memory_settings.memory(app.properties))}, "
            f"or run more tasks at once ({memory_settings.cores(app.properties)}).",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(executors)},
        )
    ]


def memory_under(app: Application, limits: Thresholds) -> list[Finding]:
    """Finds executors whose heap was full, by the same reports as `memory_over`.

    No cost in time: garbage collection, spill and lost executors report it.
    """
    executors, memory = _measured(app, limits), executor_memory(app)
    if memory is None:
        return []
    raised = switches.now(app.properties, memory_settings.memory(app.properties))
    fewer = memory_settings.cores(app.properties)
    full = [executor for executor in executors if (executor.peak_heap or 0) > limits.memory_under_ratio * memory]
    if not full:
        return []
    peak = max(executor.peak_heap or 0 for executor in full)
    return [
        Finding(
            "memory_under",
            "warning",
            f"{count(len(full))} of {quantity(len(executors), 'executor')} used up to {size(peak)} of {size(memory)} "
            f"of heap ({share(peak / memory)}).",
            f"Raise {raised}, or run fewer tasks at once ({fewer}), before it runs out.",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(full)},
        )
    ]


def _measured(app: Application, limits: Thresholds) -> list[Executor]:
    """Executors with enough memory reports."""
    executors = app.executors.values()
    return [executor for executor in executors if executor.peak_heap and executor.heap_samples >= limits.memory_samples]


def executor_memory(app: Application) -> int | None:
    """The configured heap of an executor in bytes; None if the setting is invalid, or the log has no settings."""
    return memory_settings.heap(app.properties) if app.properties else None

"""Rules about the executors of an application: those that were lost, and how much of their memory was used."""

import re
from collections import Counter
from typing import Final

from app.amounts import count, duration, share, size, things
from app.eventlog.application import Application
from app.eventlog.diagnoses import sizing
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.diagnoses.words import cut
from app.eventlog.executor import Executor
from app.eventlog.findings import Finding
from app.eventlog.losses import is_lost

_OUT_OF_MEMORY: Final = re.compile(r"\bmemory\b|OOM|code 52\b")
"""What out of memory sounds like; 52 is out of heap in Spark's `SparkExitCode`."""
_KILLED: Final = re.compile(r"code 137\b")
_MORE_MEMORY: Final = (
    "It was the memory: raise spark.executor.memoryOverhead (killed from outside; Python workers count) or "
    "spark.executor.memory (out of heap), or run fewer tasks at once (spark.executor.cores)."
)
_WHO_KILLED: Final = (
    "It was killed (SIGKILL): by its host for the memory it took, which spark.executor.memoryOverhead or fewer "
    "spark.executor.cores mend, or by somebody who wanted the place. The log of the host tells which."
)
_LOOK: Final = (
    "Look at the log of the executor and of its host: killed, preempted, or not heard of for too long "
    "(spark.network.timeout; long garbage collections)."
)
_UNITS: Final = {"": 1024**2, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
DEFAULT_MEMORY: Final = "1g"


def lost_executors(app: Application, limits: Thresholds) -> list[Finding]:
    """Executors that went away though nobody had sent them away.

    Cost: the time of the tasks that were lost with them, over the tasks that could run at once. What they had written
    for other stages is made again in another attempt of a stage, whose cost is told there. An info if it cost little.
    """
    lost = [executor for executor in app.executors.values() if is_lost(app, executor)]
    if not lost:
        return []
    reason, _ = Counter(cut(executor.reason or "no reason is told") for executor in lost).most_common(1)[0]
    tasks, task_ms = sum(one.lost_tasks for one in lost), sum(one.lost_task_ms for one in lost)
    cost = task_ms / max(1.0, app.slots or 0.0)
    return [
        Finding(
            "lost_executors",
            "warning" if cost >= limits.cost_ms else "info",
            f"Lost {count(len(lost))} of {things(len(app.executors), 'executor')} and {things(tasks, 'task')} that ran "
            f"there ({duration(task_ms)} of work); most often: {reason}",
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
    """Executors that never used much of their heap.

    No cost in time. Only reports tell it: Spark makes one with each heartbeat (10 s) while a task runs, or for each
    stage with spark.eventLog.logStageExecutorMetrics=true. The heap in use holds garbage, so that it is less than told
    here that is needed; without enough reports nothing is said.
    """
    told = _told(app, limits)
    memory = executor_memory(app)
    if not told or memory is None or memory < limits.memory_over_bytes:
        return []
    peak = max(executor.peak_heap or 0 for executor in told)
    if peak >= limits.memory_over_ratio * memory:
        return []
    return [
        Finding(
            "memory_over",
            "info",
            f"No executor used more than {size(peak)} of {size(memory)} of heap ({share(peak / memory)}), as far as "
            f"{things(len(told), 'executor')} told.",
            f"Lower {sizing.memory(app.properties)}, or run more tasks at once in it ({sizing.cores(app.properties)}).",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(told)},
        )
    ]


def memory_under(app: Application, limits: Thresholds) -> list[Finding]:
    """Executors whose heap was full.

    No cost in time: it is seen as garbage collection, spill and lost executors. Known as in `memory_over`.
    """
    told, memory = _told(app, limits), executor_memory(app)
    if memory is None:
        return []
    raised, fewer = sizing.memory(app.properties), sizing.cores(app.properties)
    full = [executor for executor in told if (executor.peak_heap or 0) > limits.memory_under_ratio * memory]
    if not full:
        return []
    peak = max(executor.peak_heap or 0 for executor in full)
    return [
        Finding(
            "memory_under",
            "warning",
            f"{count(len(full))} of {things(len(told), 'executor')} used up to {size(peak)} of {size(memory)} of heap "
            f"({share(peak / memory)}).",
            f"Raise {raised}, or run fewer tasks at once ({fewer}), before it runs out.",
            {"peak_heap_bytes": peak, "executor_memory_bytes": memory, "executors": len(full)},
        )
    ]


def _told(app: Application, limits: Thresholds) -> list[Executor]:
    return [one for one in app.executors.values() if one.peak_heap and one.heap_samples >= limits.memory_samples]


def executor_memory(app: Application) -> int | None:
    """The heap of an executor in bytes, as configured; None where it cannot be read, or the log has no settings."""
    if not app.properties:
        return None
    text = app.properties.get(sizing.memory(app.properties), DEFAULT_MEMORY).strip().lower()
    found = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", text)
    return int(found[1]) * _UNITS[found[2]] if found else None

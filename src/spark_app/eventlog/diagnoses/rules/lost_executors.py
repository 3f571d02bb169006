"""Executors that disappeared, except by dynamic allocation, by decommissioning or at the end of the application."""

import re
from collections import Counter
from typing import Final

from spark_app.eventlog.diagnoses import lost_pods, lost_tasks
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.executor_loss import EXIT_KILLED, EXIT_OUT_OF_MEMORY, is_lost, summary_of
from spark_app.eventlog.model.pod_exit import pod_exit
from spark_app.formatting import count, duration, quantity

_OUT_OF_MEMORY: Final = re.compile(rf"\bmemory\b|OOM|{EXIT_OUT_OF_MEMORY}")
"""Finds loss reasons about memory for advice, which a kill alone is not: it may have been a preemption."""
_KILLED: Final = re.compile(EXIT_KILLED)
_MORE_MEMORY: Final = (
    "It ran out of memory: raise spark.executor.memoryOverhead (killed from outside; Python workers count) or "
    "spark.executor.memory (out of heap), or run fewer tasks at once (spark.executor.cores)."
)
_WHO_KILLED: Final = (
    "The executor was killed (SIGKILL): by its host for its memory use (raise spark.executor.memoryOverhead, or lower "
    "spark.executor.cores), or by preemption. The log of the host says which."
)
_READ_LOGS: Final = (
    "Read the logs of the executor and of its host: it was killed, preempted, or sent no heartbeat in time "
    "(spark.network.timeout; long garbage collections)."
)


@rule(
    reports_always=True,
    cause="lost_executor",
    alert=Alert(
        "SparkExecutorsLost",
        "In the last hour of {application} executors were lost and their work was repeated.",
    ),
)
def lost_executors(app: Application, _limits: Thresholds) -> list[Finding]:
    """Executors that disappeared, except by dynamic allocation, by decommissioning or at the end of the application.

    Evidence: their number, the most frequent reason, and the tasks and task time that were lost: tasks that ran there,
        that ended them by their failure, as an `OutOfMemoryError` does, and tasks of running stages whose shuffle
        output was there (`Resubmitted`).
    Why: Spark repeats their tasks, and writes their shuffle output once more.
    Change: depends on the reason: memory (`spark.executor.memoryOverhead`, `spark.executor.memory`), a kill, or missing
        heartbeats (`spark.network.timeout`). On Kubernetes the text has what the API server said of the pod: killed at
        its memory limit (`OOMKilled`; the advice has the limit, by the settings, and its shares:
        `spark.executor.memoryOverhead`, `spark.executor.memoryOverheadFactor`, `spark.executor.pyspark.memory`),
        evicted for its disk or for its node, or deleted. Who deleted a pod, a preemption, a drain or a person, is in no
        event log.
    Threshold: any is an info, a warning if it costs enough.
    Cost: the time of the lost tasks divided by the mean number of running tasks; or how much sooner their stages would
        have ended without these attempts, and without the wait for the next executor, if the others are laid on as many
        slots again, which is more where few tasks are left to run beside a repeated one. At least it is their time
        divided by all slots, at most all of it and the wait for the next executor; `retried_stage` reports the cost of
        repeated stages.
    """
    lost = [executor for executor in app.executors.values() if is_lost(app, executor)]
    if not lost:
        return []
    reason, _ = Counter(summary_of(executor.reason or "") for executor in lost).most_common(1)[0]
    pod = next(pod_exit(each.reason or "") for each in lost if summary_of(each.reason or "") == reason)
    tasks, task_ms = sum(executor.lost_tasks for executor in lost), sum(executor.lost_task_ms for executor in lost)
    cost, between = _cost(app, task_ms)
    return [
        Finding(
            "lost_executors",
            "info",
            f"Lost {count(len(lost))} of {quantity(len(app.executors), 'executor')} and {quantity(tasks, 'task')} "
            f"that ran there ({duration(task_ms)} of task time); most frequent reason: {reason}{_failure(app)}",
            (lost_pods.advice(app, pod) if pod else None) or _advice(reason),
            {"lost_executors": len(lost), "executors": len(app.executors)}
            | {"lost_tasks": tasks, "lost_task_ms": task_ms},
            cost_ms=cost,
        ).within(between),
    ]


def _cost(app: Application, task_ms: float) -> tuple[float | None, tuple[float, float] | None]:
    """The wall-clock time that lost tasks cost; the least and the most, where the log tells."""
    wall = app.usage.wall_of(task_ms)
    if wall is None or not app.slots:
        return wall, None
    stages = [stage for stage in app.stages.values() if lost_tasks.lost_of(app, stage)]
    sooner = sum(lost_tasks.saved_ms(app, stage) for stage in stages)
    absent = sum(lost_tasks.absent_ms(app, stage) for stage in stages)
    return max(wall, sooner), (task_ms / max(1.0, app.slots), task_ms + absent)


def _failure(app: Application) -> str:
    """The most frequent failure of tasks that ended their executors."""
    kept = (task for stage in app.stages.values() for task in stage.kept if task.reason.error_type)
    failures = Counter(lost_tasks.reason_of(task) for task in kept if lost_tasks.is_of_loss(app, task))
    return f", after a task had failed there: {failures.most_common(1)[0][0]}" if failures else ""


def _advice(reason: str) -> str:
    if _OUT_OF_MEMORY.search(reason):
        return _MORE_MEMORY
    return _WHO_KILLED if _KILLED.search(reason) else _READ_LOGS

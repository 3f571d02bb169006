"""Rules about what went wrong in a stage, or in the way of its work."""

from collections import Counter
from typing import Final

from app.amounts import count, duration, share, size, things
from app.eventlog.diagnoses import sizing
from app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from app.eventlog.diagnoses.words import PYTHON, cut, error
from app.eventlog.events import EXECUTOR_LOST, TaskEnd
from app.eventlog.findings import Finding

NOT_THE_TASK: Final = (EXECUTOR_LOST, "FetchFailed", "TaskCommitDenied")
"""Reasons of failure that lie outside of the task; lost executors and retried stages are rules of their own."""


def spill(view: StageView) -> Finding | None:
    """Sorts and aggregates that did not fit into memory were written to disk and read again.

    Cost: what was spilled to disk, written and read once, at `disk_bytes_per_second` on each host with an executor; at
    most the stage's time.
    """
    spilled = view.stage.totals.disk_spilled
    if spilled < view.limits.spill_bytes:
        return None
    cost = min(view.wall_ms, 2000 * spilled / view.limits.disk_bytes_per_second / _hosts(view))
    if cost < view.limits.cost_ms:
        return None
    tasks = sum(1 for each in view.stage.spilled_bytes if each)
    return view.finding(
        "spill",
        f"{count(tasks)} of {count(len(view.stage.spilled_bytes))} tasks spilled {size(spilled)} to disk "
        f"({size(view.stage.totals.memory_spilled)} in memory)",
        advice="Make smaller partitions (a higher spark.sql.shuffle.partitions, repartition), give each task more "
        f"memory ({_more_memory(view)}), or keep fewer columns and rows before the shuffle.",
        numbers={"disk_spilled_bytes": spilled, "memory_spilled_bytes": view.stage.totals.memory_spilled}
        | {"spilling_tasks": tasks, "tasks": len(view.stage.spilled_bytes)},
        cost_ms=cost,
    )


def _more_memory(view: StageView) -> str:
    settings = view.app.properties
    return f"a higher {sizing.memory(settings)}, or fewer {sizing.cores(settings)}"


def _hosts(view: StageView) -> int:
    ended = view.stage.info.completed or 0
    alive = (one.host for one in view.app.executors.values() if one.removed is None or one.removed >= ended)
    return max(1, len(set(alive)))


def gc_pressure(view: StageView) -> Finding | None:
    """The JVM of the executors spent much of the time in which tasks ran on garbage collection.

    Cost: that share of the stage's time, as a collection holds up all tasks of an executor.
    """
    totals = view.stage.totals
    ratio = totals.gc_ms / totals.run_ms if totals.run_ms else 0.0
    cost = ratio * view.wall_ms
    if ratio < view.limits.gc_ratio or cost < view.limits.cost_ms:
        return None
    return view.finding(
        "gc_pressure",
        f"{share(ratio)} of its tasks' time was garbage collection ({duration(cost)} of {duration(view.wall_ms)})",
        advice=f"Give each task more heap ({_more_memory(view)}), make smaller "
        "partitions, cache less or serialised, and let fewer objects be made (columns instead of UDFs and RDDs).",
        numbers={"gc_task_ms": totals.gc_ms, "run_task_ms": totals.run_ms, "gc_ratio": ratio},
        cost_ms=cost,
    )


def failed_tasks(view: StageView) -> Finding | None:
    """Task attempts that failed by themselves, and what they said.

    Cost: the time of those that are kept, over the slots. A warning if the stage gave up, or if so many failed that it
    cost something; tasks that were lost with an executor, or lacked what another stage had written, are not meant.
    """
    kept = [task for task in view.stage.kept if task.info.has_failed]
    failed = [task for task in kept if task.reason.reason not in NOT_THE_TASK]
    if not failed:
        return None
    attempts, told = len(view.stage.durations_ms), view.stage.failed - (len(kept) - len(failed))
    cost = sum(map(duration_ms, failed)) / max(1.0, view.slots or 1.0)
    ratio = told / attempts
    is_bad = view.stage.info.failure is not None or (ratio >= view.limits.failed_ratio and cost >= view.limits.cost_ms)
    reason, _ = Counter(map(_reason, failed)).most_common(1)[0]
    hosts = {cut(task.info.host, MAX_PLACE) for task in failed}
    where = f", all on {hosts.pop()}" if len(hosts) == 1 and len(failed) > 1 and _hosts(view) > 1 else ""
    outcome = "and Spark gave up" if view.stage.info.failure is not None else "and Spark tried again"
    return view.finding(
        "failed_tasks",
        f"{count(told)} of {count(attempts)} task attempts failed{where}, {outcome}; most often: {reason}",
        advice="Look at the first failure in the log of its executor: a row that the code cannot take, or a service "
        "or host that is not well. spark.task.maxFailures says how often a task may fail before the job does.",
        numbers={"failed_tasks": told, "tasks": attempts, "failed_ratio": ratio},
        cost_ms=cost,
        severity="warning" if is_bad else "info",
    )


def _reason(task: TaskEnd) -> str:
    kind, said = task.reason.error_type or task.reason.reason, task.reason.description
    return kind if not said else error(said) if PYTHON in said else cut(f"{kind}: {said}")


def retried_stage(view: StageView) -> Finding | None:
    """Another attempt of a stage, which Spark makes when what it had written, or what it was to read, is lost.

    Cost: the time of the attempt.
    """
    info = view.stage.info
    if not info.attempt:
        return None
    before = view.app.stages.get((info.id, info.attempt - 1))
    failure = before.info.failure if before is not None else None
    why = error(failure) if failure else "what it had written for other stages was lost"
    if before is None and not view.app.is_whole:  # in a whole log it was skipped until then
        why = "why is not in the log"
    return view.finding(
        "retried_stage",
        f"it ran {things(info.tasks, 'task')} again for {duration(view.wall_ms)}: {why}",
        advice="See why executors were lost (memory, disk, preemption). What they wrote is kept by an external shuffle "
        "service (spark.shuffle.service.enabled=true) or, if they were told to go, by spark.decommission.enabled=true "
        "with spark.storage.decommission.enabled=true.",
        numbers={"attempt": info.attempt, "tasks": info.tasks, "stage_ms": view.wall_ms},
        cost_ms=view.wall_ms,
        severity="warning" if view.wall_ms >= view.limits.cost_ms else "info",
    )

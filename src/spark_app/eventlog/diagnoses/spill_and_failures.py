"""Rules about spill, garbage collection, failed tasks and repeated stages."""

from collections import Counter
from typing import Final

from spark_app.eventlog.diagnoses import lost_pods, lost_tasks, settings_advice
from spark_app.eventlog.diagnoses.excerpts import error
from spark_app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model import memory_settings
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.eventlog.model.shares import gc_share
from spark_app.eventlog.parse.events import NOT_THE_TASK
from spark_app.formatting import count, duration, quantity, share, size
from spark_app.redaction import excerpt

SPILLED_BYTE_NS: Final = (2.0, 2.5, 5.0)
"""What a byte on disk takes of a processor: the least, usually, and the most. Project: 2.4 and 3.2 in `spill-sql` and
`spill-dataframe` of `truth/`, and up to 5 where little was spilled."""
_WORKER_ENDED: Final = "Python worker exited unexpectedly"
"""What Spark says of a Python worker that was killed, or that crashed."""
_READ_FAILURE: Final = (
    "Read the first failure in the log of its executor: a row that the code cannot handle, or a failing service or "
    "host. spark.task.maxFailures is how often a task may fail before its job fails."
)


@rule(adds=("disk_spilled_bytes", "memory_spilled_bytes", "spilling_tasks", "tasks"))
def spill(view: StageView) -> Finding | None:
    """Sorts, joins and aggregates that do not fit into memory.

    Evidence: bytes on disk and in memory, number of tasks.
    Why: Spark writes, reads and merges rows once more.
    Change: a `spark.memory.fraction` that is below its default; smaller partitions, more memory for each task
        (`spark.executor.memory`, fewer `spark.executor.cores`; in local mode `spark.driver.memory`, fewer threads in
        `spark.master`), fewer columns and rows before the shuffle.
    Threshold: only the cost.
    Cost: 2.5 ns of a processor for each byte on disk, to serialise, compress, read and merge rows (project: the runs of
        `truth/`), and the wait for the disk, divided by the mean number of running tasks; at most the duration of the
        stage. The wait is one write and one read of these bytes at {disk_bytes_per_second} on each host with an
        executor (the baseline of an AWS gp3 volume), and at most what the tasks waited for something that Spark does
        not measure: what fits into the page cache waits for no disk. Its range is from 2 ns without a wait to 5 ns with
        all of that wait. Where the log has no CPU time it is the write and the read alone.
    """
    spilled = view.stage.totals.disk_spilled
    if not spilled:
        return None
    cost, between = _spill_cost(view, spilled)
    tasks = sum(1 for each in view.stage.spilled_bytes if each)
    return view.finding(
        "spill",
        f"{count(tasks)} of {count(len(view.stage.spilled_bytes))} tasks spilled {size(spilled)} to disk "
        f"({size(view.stage.totals.memory_spilled)} in memory)",
        advice=f"{settings_advice.enough_memory(view.settings)}Make smaller partitions "
        f"({view.more_partitions}; repartition), give each task more memory "
        f"({_more_memory(view)}), or keep fewer columns and rows before the shuffle.",
        numbers={"disk_spilled_bytes": spilled, "memory_spilled_bytes": view.stage.totals.memory_spilled}
        | {"spilling_tasks": tasks, "tasks": len(view.stage.spilled_bytes)},
        cost_ms=cost,
    ).within(between)


def _spill_cost(view: StageView, spilled: int) -> tuple[float, tuple[float, float]]:
    """The wall-clock time that so many bytes on disk cost; the least and the most."""
    totals = view.stage.totals
    disk_ms = 2000 * spilled / view.limits.disk_bytes_per_second / _hosts(view)
    if totals.cpu_ns is None:
        most = min(float(view.wall_ms), disk_ms)
        return most, (0.0, most)
    waited = view.wall_of(unmeasured_wait_ms(totals))
    least, usual, most = (view.wall_of(min(ns * spilled, totals.cpu_ns) / 1e6) for ns in SPILLED_BYTE_NS)
    wall = float(view.wall_ms)
    return min(wall, usual + min(waited, disk_ms)), (least, min(wall, most + waited))


def _more_memory(view: StageView) -> str:
    settings = view.app.properties
    memory = settings_advice.now(settings, memory_settings.memory(settings))
    return f"a higher {memory}, or fewer {memory_settings.cores(settings)}"


def _hosts(view: StageView) -> int:
    ended = view.stage.info.completed or 0
    executors = view.app.executors.values()
    alive = {executor.host for executor in executors if executor.removed is None or executor.removed >= ended}
    return max(1, len(alive))


@rule()
def gc_pressure(view: StageView) -> Finding | None:
    """Tasks that spend much of their time in garbage collection.

    Evidence: garbage collection time and run time of all tasks.
    Why: a collection pauses all tasks of an executor; an executor that collects much often runs out of memory next.
    Change: more heap for each task, smaller partitions, less cached data (or serialised caches), columns instead of
        Python or Scala objects.
    Threshold: {gc_ratio} (Dr. Elephant: moderate).
    Cost: that share of the duration of the stage.
    """
    totals = view.stage.totals
    ratio = gc_share([totals], view.app.task_cpus) or 0.0
    cost = ratio * view.wall_ms
    if ratio < view.limits.gc_ratio:
        return None
    return view.finding(
        "gc_pressure",
        f"{share(ratio)} of task time was garbage collection ({duration(cost)} of {duration(view.wall_ms)})",
        advice=f"Give each task more heap ({_more_memory(view)}), make smaller "
        "partitions, cache less or serialised, and create fewer objects (columns instead of UDFs and RDDs).",
        numbers={"gc_task_ms": totals.gc_ms, "run_task_ms": totals.run_ms, "gc_ratio": ratio},
        cost_ms=cost,
    )


@rule(reports_always=True)
def failed_tasks(view: StageView) -> Finding | None:
    """Task attempts that fail because of their own code or data.

    Evidence: their number, the most frequent error, and the host if all failed on one of several.
    Why: Spark repeats their work, and fails the job after `spark.task.maxFailures` failures of one task.
    Change: see the error. `Python worker exited unexpectedly` is a worker that was killed for its memory, or that
        crashed in native code: `spark.executor.memoryOverhead`, `spark.executor.pyspark.memory`,
        `spark.python.worker.faulthandler.enabled`. On Kubernetes the advice has the limit of the pod, by the settings.
    Threshold: any failure is an info. It is a warning if the stage failed, or if all failures with the same error cost
        enough.
    Cost: the time of the failed attempts (of 50 of a stage at most), divided by the mean number of running tasks.
        `lost_executors` and `retried_stage` report tasks that were lost with an executor or ended it (as one does that
        fails with an `OutOfMemoryError`), lost their output or did not find their shuffle blocks.
    """
    kept = [task for task in view.stage.kept if task.info.has_failed]
    itself = [task for task in kept if task.reason.reason not in NOT_THE_TASK]
    failed = [task for task in itself if not lost_tasks.is_of_loss(view.app, task)]
    if not failed:
        return None
    attempts, failures = len(view.stage.durations_ms), view.stage.failed_itself - len(itself) + len(failed)
    cost = view.wall_of(sum(map(duration_ms, failed)))
    reason, _ = Counter(map(lost_tasks.reason_of, failed)).most_common(1)[0]
    hosts = {excerpt(task.info.host, MAX_PLACE) for task in failed}
    where = f", all on {hosts.pop()}" if len(hosts) == 1 and len(failed) > 1 and _hosts(view) > 1 else ""
    outcome = "and the stage failed" if view.stage.info.failure is not None else "and Spark retried them"
    return view.finding(
        "failed_tasks",
        f"{count(failures)} of {count(attempts)} task attempts failed{where}, {outcome}; most frequent error: {reason}",
        advice=lost_pods.killed_worker(view.settings) if _WORKER_ENDED in reason else _READ_FAILURE,
        numbers={"failed_tasks": failures, "tasks": attempts, "failed_ratio": failures / attempts},
        cost_ms=cost,
        severity="info" if view.stage.info.failure is None else "warning",
        cause=reason,
    )


@rule(adds=("tasks", "stage_ms"), reports_always=True)
def retried_stage(view: StageView) -> Finding | None:
    """A second attempt of a stage.

    Evidence: the tasks that ran again, their time, and why the previous attempt failed, if the log says so.
    Why: the shuffle output of a lost executor is lost too.
    Change: find out why the executor was lost. Decommissioning (`spark.decommission.enabled` with
        `spark.storage.decommission.enabled`; both are off by default) or an external shuffle service keeps the shuffle
        output.
    Threshold: any is an info, a warning if all cost enough.
    Cost: the duration of the attempt.
    """
    info = view.stage.info
    if not info.attempt:
        return None
    before = view.app.stages.get((info.id, info.attempt - 1))
    failure = before.info.failure if before is not None else None
    why = error(failure) if failure else "its shuffle output was lost"
    if before is None and not view.app.is_whole:  # in a whole log it was skipped until then
        why = "the log does not say why"
    return view.finding(
        "retried_stage",
        f"it ran {quantity(info.tasks, 'task')} again for {duration(view.wall_ms)}: {why}",
        advice=f"Find out why executors were lost (memory, disk, preemption). {_keep_output(view)}",
        numbers={"attempt": info.attempt, "tasks": info.tasks, "stage_ms": view.wall_ms},
        cost_ms=view.wall_ms,
        severity="info",
    )


def _keep_output(view: StageView) -> str:
    if not settings_advice.is_off(view.settings, settings_advice.SHUFFLE_SERVICE):
        return ""
    service, decommission = (
        settings_advice.now(view.settings, name)
        for name in (settings_advice.SHUFFLE_SERVICE, settings_advice.DECOMMISSION)
    )
    return (
        f"An external shuffle service keeps their output: {service}; so does decommissioning: {decommission} "
        "with spark.storage.decommission.enabled."
    )

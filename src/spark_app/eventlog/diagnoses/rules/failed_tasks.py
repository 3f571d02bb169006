"""Task attempts that fail because of their own code or data."""

from collections import Counter
from typing import Final

from spark_app.eventlog.diagnoses import lost_pods, lost_tasks
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.parse.events import NOT_THE_TASK
from spark_app.formatting import count
from spark_app.redaction import excerpt

_WORKER_ENDED: Final = "Python worker exited unexpectedly"
"""What Spark says of a Python worker that was killed, or that crashed."""
_READ_FAILURE: Final = (
    "Read the first failure in the log of its executor: a row that the code cannot handle, or a failing service or "
    "host. spark.task.maxFailures is how often a task may fail before its job fails."
)


@rule(
    reports_always=True,
    alert=Alert("SparkRetries"),
)
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
    where = f", all on {hosts.pop()}" if len(hosts) == 1 and len(failed) > 1 and view.hosts > 1 else ""
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

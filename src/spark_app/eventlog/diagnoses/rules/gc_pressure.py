"""Tasks that spend much of their time in garbage collection."""

from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.shares import gc_share
from spark_app.formatting import duration, share


@rule(
    limits={"gc_ratio": Limit(0.1, "Garbage collection over the run time of tasks, at least.", gt=0, le=1)},
    tries=(
        trials.LARGER_FRACTION,
        trials.MORE_HEAP,
        trials.FEWER_CORES,
    ),
    alert=Alert(
        "SparkGarbageCollectionInTasks",
        "In the last hour of {application} tasks spent much of their time in garbage collection.",
    ),
)
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
        advice=f"Give each task more heap ({view.more_memory}), make smaller "
        "partitions, cache less or serialised, and create fewer objects (columns instead of UDFs and RDDs).",
        numbers={"gc_task_ms": totals.gc_ms, "run_task_ms": totals.run_ms, "gc_ratio": ratio},
        cost_ms=cost,
    )

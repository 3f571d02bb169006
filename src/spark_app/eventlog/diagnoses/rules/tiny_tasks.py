"""Hundreds of tasks that take milliseconds."""

from typing import Final

from spark_app.eventlog.diagnoses import settings_advice, trials
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.model.stream_skew import has_state
from spark_app.formatting import count, duration

FEWER_OF_INPUT: Final = "a higher spark.sql.files.maxPartitionBytes (files), fewer numSlices (RDDs)"


@rule(
    adds=("tasks", "overhead_task_ms"),
    limits={
        "tiny_tasks": Limit(100, "Tiny tasks: a stage has more tasks than this.", ge=1),
        "tiny_median_ms": Limit(500.0, "Tiny tasks: their median is below this.", ge=0),
    },
    cause="too_many_partitions",
    tries=(
        trials.ADAPTIVE,
        trials.MERGE_PARTITIONS,
        trials.LARGER_FILE_PARTITIONS,
    ),
)
def tiny_tasks(view: StageView) -> Finding | None:
    """Hundreds of tasks that take milliseconds.

    Evidence: their number, their median, and the time that Spark spent on starting and ending them.
    Why: each task costs milliseconds on the driver and on its core before it starts to work.
    Change: adaptive execution where it is off (`spark.sql.adaptive.enabled`,
        `spark.sql.adaptive.coalescePartitions.enabled`); behind a shuffle a lower `spark.sql.shuffle.partitions` (of
        RDDs, `spark.default.parallelism`) or a higher `spark.sql.adaptive.advisoryPartitionSizeInBytes`; at the input a
        higher `spark.sql.files.maxPartitionBytes`, fewer files or `numSlices`; or `coalesce`.
    Threshold: more than {tiny_tasks} tasks of a stage (project; DataFlint has 5000) with a median below
        {tiny_median_ms} (DataFlint).
    Cost: the time for scheduling, deserialising and sending results, divided by the cores, plus the idle time; at most
        the duration of the stage. A task that runs Python has to set up its worker, which the log does not tell from
        work: then the cost has a range, up to the median time of a task for each of them.
    """
    tasks, totals = len(view.stage.durations_ms), view.stage.totals
    if tasks <= view.limits.tiny_tasks or view.median_ms >= view.limits.tiny_median_ms or not view.slots:
        return None
    if has_state(view.stage):
        return None
    overhead = totals.scheduler_delay_ms + totals.deserialize_ms + totals.serialize_ms
    cost = min(view.wall_ms, overhead / view.slots + (view.idle_ms or 0))
    merge = settings_advice.merge_partitions(view.settings) if view.is_shuffled and not view.is_of_rdds else ""
    fewer = (
        settings_advice.fewer_partitions(view.settings, is_rdd=view.is_of_rdds) if view.is_shuffled else FEWER_OF_INPUT
    )
    return view.finding(
        "tiny_tasks",
        f"{count(tasks)} tasks of {duration(view.median_ms)} (median); {duration(cost)} of {duration(view.wall_ms)} "
        "went into scheduling them",
        advice=f"{merge}Make fewer and larger tasks: {fewer}, or coalesce.",
        numbers={"tasks": tasks, "median_task_ms": view.median_ms, "overhead_task_ms": overhead},
        cost_ms=cost,
    ).within(_with_workers(view, cost))


def _with_workers(view: StageView, cost_ms: float) -> tuple[float, float] | None:
    """What tiny tasks cost at least, and with the time to set up their Python workers; None without Python."""
    if not view.slots or not has_python(view.stage.info):
        return None
    whole = len(view.stage.durations_ms) * view.median_ms / view.slots
    return cost_ms, min(float(view.wall_ms), whole + (view.idle_ms or 0))

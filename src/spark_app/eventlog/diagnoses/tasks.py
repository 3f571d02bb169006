"""Rules about the number and the size of the tasks of a stage."""

from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.entities import Totals, task_totals
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.model.stream_skew import has_state
from spark_app.eventlog.parse.events import TaskEnd
from spark_app.formatting import count, duration, quantity, size
from spark_app.redaction import excerpt

SIDE_BY_SIDE: Final = 0.1
SIDE_BY_SIDE_MOST: Final = 0.25
"""How much longer work takes in tasks side by side, usually and at most, and until the last of them ends. Project: 4 to
22 % in the pairs `too-few-partitions` of `truth/`."""
MORE_OF_INPUT: Final = "a lower spark.sql.files.maxPartitionBytes (files), more numSlices or repartition (RDDs)"
FEWER_OF_INPUT: Final = "a higher spark.sql.files.maxPartitionBytes (files), fewer numSlices (RDDs)"


@rule(subject="data", explains=("gc_pressure", "spill", "huge_partitions"))
def partition_skew(view: StageView) -> Finding | None:
    """One task takes far longer than the others.

    Evidence: the longest and the median task; the bytes and records of the longest task and the mean of the others.
    Why: all other cores wait for it.
    Change: the text names the cause. More data behind a shuffle means a hot key: salt it, aggregate first, filter out
        nulls; in a join adaptive execution splits it (`spark.sql.adaptive.enabled`,
        `spark.sql.adaptive.skewJoin.enabled`), and the text names the one that is off. `report --name-hot-keys` names
        the key, by a sample of the Parquet files or Delta tables that the query read. More data at the input means a
        large file that cannot be split. The same amount of data means a slow host, or rows that cost more: check the
        host, or set `spark.speculation=true`.
    Threshold: {skew_longest_ms} (project; DataFlint has 5 s) and more than {skew_ratio} times the median (Dr. Elephant:
        severe; DataFlint has 10); from {skew_data_ratio} (project) on, the data is the cause.
        Explained by it: `gc_pressure`, `spill` and `huge_partitions` of the same stages, which come behind it.
    Cost: the longest task minus the median, at most the idle time of the stage. A long task delays nothing while all
        other cores have work, and is then not reported.
    """
    longest, limits = view.longest, view.limits
    if longest is None or len(view.stage.durations_ms) < 2 or duration_ms(longest) < limits.skew_longest_ms:
        return None
    if has_state(view.stage):
        return None
    excess = duration_ms(longest) - view.median_ms
    cost = excess if view.idle_ms is None else min(excess, view.idle_ms)
    if duration_ms(longest) <= limits.skew_ratio * view.median_ms:
        return None
    numbers = {
        "longest_task_ms": duration_ms(longest),
        "median_task_ms": view.median_ms,
        "tasks": len(view.stage.durations_ms),
    }
    why, advice, evidence, cause = _cause(view, longest)
    text = f"its longest task took {duration(duration_ms(longest))}, the median {duration(view.median_ms)}; {why}"
    return view.finding("partition_skew", text, advice=advice, numbers=numbers | evidence, cost_ms=cost, cause=cause)


def _cause(view: StageView, longest: TaskEnd) -> tuple[str, str, dict[str, float], str]:
    """Why the longest task took long, what to change, the evidence, and the kind of cause."""
    own, others = task_totals(longest), len(view.stage.shuffle_read_bytes) - 1
    where = excerpt(f"executor {longest.info.executor} on {longest.info.host}", MAX_PLACE)
    if others < 1 or not (_bytes(own) or _rows(own)):
        return "the log does not contain the data size of the tasks", _UNKNOWN.format(where=where), {}, "unknown"
    mean = (_bytes(view.stage.totals) - _bytes(own)) / others
    mean_rows = (_rows(view.stage.totals) - _rows(own)) / others
    numbers = {"longest_task_bytes": _bytes(own), "mean_other_bytes": mean}
    numbers |= {"longest_task_records": _rows(own), "mean_other_records": mean_rows}
    is_more = max(_bytes(own) / max(mean, 1), _rows(own) / max(mean_rows, 1)) >= view.limits.skew_data_ratio
    if not is_more:
        return (
            f"it was slower, with no more data than the others ({size(_bytes(own))})",
            _SLOW.format(where=where),
            numbers,
            "slow",
        )
    had = f"it had {size(_bytes(own))} and {count(_rows(own))} records"
    others_had = f"the others {size(mean)} and {count(mean_rows)} on average"
    if not view.is_shuffled:
        return f"{had}, {others_had}", _BIG_FILE, numbers, "input"
    split = settings_advice.split_skew(view.settings) if view.is_of_join else ""
    return f"{had}, {others_had}", f"{split}{_HOT_KEY}", numbers, "key"


_UNKNOWN: Final = "Check whether its partition held more work (repartition), or whether {where} is slow."
_SLOW: Final = (
    "Check load, disk and network of {where}; spark.speculation=true starts a copy of a slow task elsewhere. "
    "If some rows cost far more than others, repartition them."
)
_HOT_KEY: Final = "A few keys hold most rows: salt the key, aggregate first, or filter out nulls and default values."
_BIG_FILE: Final = (
    "One part of the input is far larger: split it by a lower spark.sql.files.maxPartitionBytes, write it in a "
    "format that can be split (no gzip text), or repartition after reading."
)


@rule(adds=("tasks", "overhead_task_ms"))
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


@rule(explains=("gc_pressure", "spill", "huge_partitions"))
def too_few_tasks(view: StageView) -> Finding | None:
    """A long stage with fewer tasks than cores.

    Evidence: tasks, cores, duration.
    Why: the other cores are idle.
    Change: the opposite of `tiny_tasks`. Usual causes of a single task are a window without `partitionBy`, a global
        limit, `coalesce(1)`, or a file that cannot be split.
    Threshold: at least one core without a task, in a stage of {few_tasks_stage_ms} (project).
        Explained by it: `gc_pressure`, `spill` and `huge_partitions` of the same stages, which come behind it.
    Cost: the idle time of the stage, less a tenth of what its work takes on all slots: tasks that compute side by side
        take longer, and do not end together (project). Its range is from a quarter of that less to the idle time. The
        rule ignores later attempts, which run only the missing tasks.
    """
    tasks = view.stage.info.tasks
    is_short = view.wall_ms < view.limits.few_tasks_stage_ms
    if is_short or view.stage.info.attempt or not view.slots or tasks > view.slots - 1:
        return None
    if view.idle_ms is None:
        return None
    causes = " (usual causes: a window without partitionBy, a global limit, coalesce(1), an unsplittable file)"
    spread = view.wall_ms - view.idle_ms
    remedy = view.more_partitions if view.is_shuffled else MORE_OF_INPUT
    return view.finding(
        "too_few_tasks",
        f"{quantity(tasks, 'task')} in {duration(view.wall_ms)}, where {count(view.slots)} could run at once",
        advice=f"Make more tasks: {remedy}{causes if tasks == 1 else ''}.",
        numbers={"tasks": tasks, "slots": view.slots, "stage_ms": view.wall_ms},
        cost_ms=max(0.0, view.idle_ms - SIDE_BY_SIDE * spread),
    ).within((view.idle_ms - SIDE_BY_SIDE_MOST * spread, view.idle_ms))


@rule()
def huge_partitions(view: StageView) -> Finding | None:
    """A task that reads or writes too much data.

    Evidence: the largest input, output, shuffle read or shuffle write of one task. The rule knows the shuffle reads of
        all tasks, and the other sizes of the five longest tasks.
    Why: such a task spills and is slow, and Spark repeats all of it after a failure.
    Change: more partitions, as above; `repartition` before a write.
    Threshold: {huge_bytes} (DataFlint).
    Cost: not estimated; `spill` and `partition_skew` report it.
    """
    tasks = [task_totals(task) for task in (*view.stage.slowest, *view.stage.kept)]
    largest = {
        "input": max((task.input_bytes for task in tasks), default=0),
        "output": max((task.output_bytes for task in tasks), default=0),
        "shuffle read": max(view.stage.shuffle_read_bytes, default=0),
        "shuffle write": max((task.shuffle_write_bytes for task in tasks), default=0),
    }
    kind, most = max(largest.items(), key=lambda item: item[1])
    if most < view.limits.huge_bytes:
        return None
    is_read_of_files = kind == "input" or (kind != "shuffle read" and not view.is_shuffled)
    smaller = MORE_OF_INPUT if is_read_of_files else view.more_partitions
    return view.finding(
        "huge_partitions",
        f"one of its {quantity(len(view.stage.durations_ms), 'task')} had {size(most)} of {kind}",
        advice=f"Make more and smaller partitions: {smaller}; before a write, repartition.",
        numbers={"largest_bytes": most, "tasks": len(view.stage.durations_ms)},
    )


def _bytes(totals: Totals) -> int:
    return totals.input_bytes + totals.shuffle_read_bytes


def _rows(totals: Totals) -> int:
    return totals.input_records + totals.shuffle_read_records

"""Rules about how the work of a stage is cut into tasks."""

from typing import Final

from app.amounts import count, duration, size, things
from app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from app.eventlog.diagnoses.words import cut
from app.eventlog.events import TaskEnd
from app.eventlog.findings import Finding
from app.eventlog.model import Totals, task_totals

MORE_OF_INPUT: Final = "a lower spark.sql.files.maxPartitionBytes (files), more numSlices or repartition (RDDs)"
MORE_OF_SHUFFLE: Final = (
    "a higher spark.sql.shuffle.partitions, or a lower spark.sql.adaptive.advisoryPartitionSizeInBytes"
)
FEWER_OF_INPUT: Final = "a higher spark.sql.files.maxPartitionBytes (files), fewer numSlices (RDDs)"
FEWER_OF_SHUFFLE: Final = (
    "a lower spark.sql.shuffle.partitions, or a higher spark.sql.adaptive.advisoryPartitionSizeInBytes"
)


def partition_skew(view: StageView) -> Finding | None:
    """One task took far longer than the others, and cores were idle meanwhile.

    Cost: the longest task minus the median one, as only that delayed the stage; at most the stage's time weighted by
    the share of slots that had nothing to do, as work that is spread over busy slots ends no sooner.
    """
    longest, limits = view.longest, view.limits
    if longest is None or len(view.stage.durations_ms) < 2 or duration_ms(longest) < limits.skew_longest_ms:
        return None
    excess = duration_ms(longest) - view.median_ms
    cost = excess if view.idle_ms is None else min(excess, view.idle_ms)
    if duration_ms(longest) <= limits.skew_ratio * view.median_ms or cost < limits.cost_ms:
        return None
    numbers = {
        "longest_task_ms": duration_ms(longest),
        "median_task_ms": view.median_ms,
        "tasks": len(view.stage.durations_ms),
    }
    why, advice, evidence = _cause(view, longest)
    text = f"its longest task took {duration(duration_ms(longest))}, the median {duration(view.median_ms)}; {why}"
    return view.finding("partition_skew", text, advice=advice, numbers=numbers | evidence, cost_ms=cost)


def _cause(view: StageView, longest: TaskEnd) -> tuple[str, str, dict[str, float]]:
    """Whether the task had more to do than the others, what to do about it, and the evidence."""
    own, others = task_totals(longest), len(view.stage.shuffle_read_bytes) - 1
    where = cut(f"executor {longest.info.executor} on {longest.info.host}", MAX_PLACE)
    if others < 1 or not (_bytes(own) or _rows(own)):
        return "how much data the tasks had is not told", _UNKNOWN.format(where=where), {}
    mean = (_bytes(view.stage.totals) - _bytes(own)) / others
    mean_rows = (_rows(view.stage.totals) - _rows(own)) / others
    numbers = {"longest_task_bytes": _bytes(own), "mean_other_bytes": mean}
    numbers |= {"longest_task_records": _rows(own), "mean_other_records": mean_rows}
    is_more = max(_bytes(own) / max(mean, 1), _rows(own) / max(mean_rows, 1)) >= view.limits.skew_data_ratio
    if not is_more:
        return (
            f"it had no more data than the others ({size(_bytes(own))}), it was slower",
            _SLOW.format(where=where),
            numbers,
        )
    had = f"it had {size(_bytes(own))} and {count(_rows(own))} records"
    others_had = f"the others {size(mean)} and {count(mean_rows)} on average"
    return f"{had}, {others_had}", _HOT_KEY if view.is_shuffled else _BIG_FILE, numbers


_UNKNOWN: Final = "See whether its partition held more work (repartition), or whether {where} is slow."
_SLOW: Final = (
    "Look at {where}: load, disk, network; spark.speculation=true starts a second copy elsewhere. "
    "Or some rows cost far more than others: then repartition them."
)
_HOT_KEY: Final = (
    "A few keys hold most rows: add a salt to the key, aggregate before, or leave out nulls and defaults; for joins "
    "spark.sql.adaptive.skewJoin.enabled=true with a lower spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes."
)
_BIG_FILE: Final = (
    "One part of the input is far larger: split it by a lower spark.sql.files.maxPartitionBytes, write it in a format "
    "that can be split (no gzip text), or repartition after reading."
)


def tiny_tasks(view: StageView) -> Finding | None:
    """So many short tasks that scheduling them is what takes the time.

    Cost: the time that tasks spent on scheduling, deserialising and sending results, over the slots, and the time in
    which slots waited for a task.
    """
    tasks, totals = len(view.stage.durations_ms), view.stage.totals
    if tasks <= view.limits.tiny_tasks or view.median_ms >= view.limits.tiny_median_ms or not view.slots:
        return None
    overhead = totals.scheduler_delay_ms + totals.deserialize_ms + totals.serialize_ms
    cost = min(view.wall_ms, overhead / view.slots + (view.idle_ms or 0))
    if cost < view.limits.cost_ms:
        return None
    return view.finding(
        "tiny_tasks",
        f"{count(tasks)} tasks of {duration(view.median_ms)} (median); {duration(cost)} of {duration(view.wall_ms)} "
        "went into starting and ending them",
        advice=f"Make fewer and larger tasks: {FEWER_OF_SHUFFLE if view.is_shuffled else FEWER_OF_INPUT}, or coalesce.",
        numbers={"tasks": tasks, "median_task_ms": view.median_ms, "overhead_task_ms": overhead},
        cost_ms=cost,
    )


def too_few_tasks(view: StageView) -> Finding | None:
    """A long stage with fewer tasks than can run at once.

    Cost: the stage's time, times the share of slots that had no task of any stage. A later attempt, which has only the
    missing tasks, is not judged.
    """
    tasks = view.stage.info.tasks
    is_short = view.wall_ms < view.limits.few_tasks_stage_ms
    if is_short or view.stage.info.attempt or not view.slots or tasks > view.slots - 1:
        return None
    if view.idle_ms is None or view.idle_ms < view.limits.cost_ms:
        return None
    one = " (one task: a window without partitionBy, a global limit, coalesce(1), or a file that cannot be split?)"
    return view.finding(
        "too_few_tasks",
        f"{things(tasks, 'task')} in {duration(view.wall_ms)}, where {count(view.slots)} could run at once",
        advice=f"Make more tasks: {MORE_OF_SHUFFLE if view.is_shuffled else MORE_OF_INPUT}{one if tasks == 1 else ''}.",
        numbers={"tasks": tasks, "slots": view.slots, "stage_ms": view.wall_ms},
        cost_ms=view.idle_ms,
    )


def huge_partitions(view: StageView) -> Finding | None:
    """A task that read or wrote more than a task should: it spills, takes long, and is lost as a whole.

    Seen among the longest tasks, and in what every task has read of a shuffle. No cost: what it costs is seen as spill
    or as skew.
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
    return view.finding(
        "huge_partitions",
        f"one of its {things(len(view.stage.durations_ms), 'task')} had {size(most)} of {kind}",
        advice=f"Make more and smaller partitions: {MORE_OF_INPUT if is_read_of_files else MORE_OF_SHUFFLE}; before a "
        "write, repartition.",
        numbers={"largest_bytes": most, "tasks": len(view.stage.durations_ms)},
    )


def _bytes(totals: Totals) -> int:
    return totals.input_bytes + totals.shuffle_read_bytes


def _rows(totals: Totals) -> int:
    return totals.input_records + totals.shuffle_read_records

"""A task that reads or writes too much data."""

from spark_app.eventlog.diagnoses import trials
from spark_app.eventlog.diagnoses.rule import GIB, Limit, rule
from spark_app.eventlog.diagnoses.stage import MORE_OF_INPUT, StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import totals_of
from spark_app.formatting import quantity, size


@rule(
    limits={"huge_bytes": Limit(5 * GIB, "Huge partitions: input, output or shuffle of one task.", ge=1)},
    tries=(trials.MORE_PARTITIONS,),
)
def huge_partitions(view: StageView) -> Finding | None:
    """A task that reads or writes too much data.

    Evidence: the largest input, output, shuffle read or shuffle write of one task. The rule knows the shuffle reads of
        all tasks, and the other sizes of the five longest tasks.
    Why: such a task spills and is slow, and Spark repeats all of it after a failure.
    Change: more partitions, as of `too_few_tasks`; `repartition` before a write.
    Threshold: {huge_bytes} (DataFlint).
    Cost: not estimated; `spill` and `partition_skew` report it.
    """
    tasks = [totals_of([task]) for task in (*view.stage.slowest, *view.stage.kept)]
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

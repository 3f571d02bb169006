"""Sorts, joins and aggregates that do not fit into memory."""

from typing import Final

from spark_app.eventlog.diagnoses import limits, settings_advice, trials
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import unmeasured_wait_ms
from spark_app.formatting import count, size

SPILLED_BYTE_NS: Final = (2.0, 2.5, 5.0)
"""What a byte on disk takes of a processor: the least, usually, and the most. Project: 2.4 and 3.2 in `spill-sql` and
`spill-dataframe` of `truth/`, and up to 5 where little was spilled."""


@rule(
    adds=("disk_spilled_bytes", "memory_spilled_bytes", "spilling_tasks", "tasks"),
    limits={"disk_bytes_per_second": limits.DISK_BYTES_PER_SECOND},
    tries=(
        trials.MORE_PARTITIONS,
        trials.LARGER_FRACTION,
        trials.MORE_HEAP,
        trials.FEWER_CORES,
    ),
    alert=Alert("SparkSpill", "In the last hour of {application} a stage did not fit into memory and spilled to disk."),
)
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
        f"({view.more_memory}), or keep fewer columns and rows before the shuffle.",
        numbers={"disk_spilled_bytes": spilled, "memory_spilled_bytes": view.stage.totals.memory_spilled}
        | {"spilling_tasks": tasks, "tasks": len(view.stage.spilled_bytes)},
        cost_ms=cost,
    ).within(between)


def _spill_cost(view: StageView, spilled: int) -> tuple[float, tuple[float, float]]:
    """The wall-clock time that so many bytes on disk cost; the least and the most."""
    totals = view.stage.totals
    disk_ms = 2000 * spilled / view.limits.disk_bytes_per_second / view.hosts
    if totals.cpu_ns is None:
        most = min(float(view.wall_ms), disk_ms)
        return most, (0.0, most)
    waited = view.wall_of(unmeasured_wait_ms(totals))
    least, usual, most = (view.wall_of(min(ns * spilled, totals.cpu_ns) / 1e6) for ns in SPILLED_BYTE_NS)
    wall = float(view.wall_ms)
    return min(wall, usual + min(waited, disk_ms)), (least, min(wall, most + waited))

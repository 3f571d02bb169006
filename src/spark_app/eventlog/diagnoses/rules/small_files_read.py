"""A scan of many small files, except for the transaction log of a Delta table."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import limits, trials
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, value
from spark_app.eventlog.model.plan_names import (
    FILE_BYTES_READ,
    FILES_READ,
    SCAN_TIME,
)
from spark_app.eventlog.model.repeated_reads import file_scans, location
from spark_app.formatting import count, size

OPEN_COST_BYTES: Final = 4 * 1024**2
"""Opening a file takes as long as reading this many bytes: the default of `spark.sql.files.openCostInBytes`."""


@rule(
    subject="data",
    adds=("read_bytes",),
    explains=("slow_storage",),
    explains_in="query",
    limits={"small_files": limits.SMALL_FILES, "small_file_bytes": limits.SMALL_FILE_BYTES},
    tries=(trials.LARGER_FILE_PARTITIONS,),
    alert=Alert("SparkSmallFiles"),
)
def small_files_read(view: QueryView) -> Iterator[Finding]:
    """A scan of many small files, except for the transaction log of a Delta table.

    Evidence: files, bytes, mean file size.
    Why: opening a file takes as long as reading megabytes, and the driver lists all files.
    Change: merge the files where they are written: `OPTIMIZE` for a Delta table, `repartition(n)` or `coalesce(n)`
        before the write for others; until then a larger `spark.sql.files.maxPartitionBytes`.
    Threshold: more than {small_files} of less than {small_file_bytes} on average (DataFlint). Explained by it:
        `slow_storage` of the same queries, which comes behind it.
    Cost: the share of the scan time that Spark estimates for opening files (`spark.sql.files.openCostInBytes`, 4 MiB
        for each file), divided by the mean number of running tasks. Formats without a scan time (text, CSV, JSON) have
        at most the time of the tasks that scan, with that to start and to end them: many files make many tasks. The
        listing of the files by the driver is no part of it, since the log does not tell it.
    """
    for scan in file_scans(view.operators):
        files, total = scan.numbers[FILES_READ].value, scan.numbers[FILE_BYTES_READ].value
        if files <= view.limits.small_files or total >= files * view.limits.small_file_bytes:
            continue
        opening = files * OPEN_COST_BYTES
        measured = value(scan, SCAN_TIME)
        time = _task_ms(view, scan) if measured is None else measured
        yield view.finding(
            "small_files_read",
            f"reads {count(files)} files of {size(total / files)} on average from {location(scan)}",
            advice="Write files of 128 MiB and more: OPTIMIZE for a Delta table, "
            "repartition(n) or coalesce(n) before the write for others. Until then a larger "
            "spark.sql.files.maxPartitionBytes puts more of them into a task.",
            operator=scan,
            numbers={"files": files, "read_bytes": total, "mean_file_bytes": total / files},
            cost_ms=view.wall_of(None if time is None else time * opening / (opening + total), scan),
            cause=location(scan),
        )


def _task_ms(view: QueryView, scan: Operator) -> float | None:
    """The time of all tasks of the stages that a scan ran in, from launch to end; None if no stage is known."""
    totals = [stage.totals for stage in view.stages_of(scan)]
    parts = (each.run_ms + each.deserialize_ms + each.serialize_ms + each.scheduler_delay_ms for each in totals)
    return float(sum(parts)) if totals else None

"""Rules about files that queries read and write."""

from collections.abc import Iterator
from typing import Final

from app.amounts import count, size
from app.eventlog.diagnoses.query import QueryView, value
from app.eventlog.findings import Finding
from app.eventlog.reuse import FILE_BYTES, FILES, file_scans, place

OPEN_COST_BYTES: Final = 4 * 1024**2
"""To open a file takes as long as to read so many bytes: default of `spark.sql.files.openCostInBytes`."""
WRITTEN_FILES: Final = "number of written files"
WRITTEN_BYTES: Final = ("written output", "bytes of written output")
PARTITIONS: Final = "number of partitions read"


def small_files_read(view: QueryView) -> Iterator[Finding]:
    """A scan of many small files.

    Cost: the share of the scan's time that Spark itself reckons for opening files (`spark.sql.files.openCostInBytes`,
    4 MiB each), spread over all slots; unknown for formats whose scans do not tell their time.
    """
    for scan in file_scans(view.operators):
        files, total = scan.numbers[FILES].value, scan.numbers[FILE_BYTES].value
        if files <= view.limits.small_files or total >= files * view.limits.small_file_bytes:
            continue
        opening = files * OPEN_COST_BYTES
        time = value(scan, "scan time")
        cost = view.spread(None if time is None else time * opening / (opening + total))
        if not view.is_cheap(cost):
            yield view.finding(
                "small_files_read",
                f"reads {count(files)} files of {size(total / files)} on average from {place(scan)}",
                advice="Merge the files where they are written, to 128 MiB and more: OPTIMIZE for a Delta table, "
                "repartition(n) or coalesce(n) before the write for others. Until then a larger "
                "spark.sql.files.maxPartitionBytes puts more of them into a task.",
                operator=scan,
                numbers={"files": files, "read_bytes": total, "mean_file_bytes": total / files},
                cost_ms=cost,
            )


def small_files_written(view: QueryView) -> Iterator[Finding]:
    """A query that leaves many small files; whoever reads them pays, so that no cost is told.

    Where the plan does not count the files, as with Delta, each task that has written left at least one.
    """
    counted = [operator for operator in view.operators if WRITTEN_FILES in operator.numbers]
    if counted:
        files, total = value(counted[0], WRITTEN_FILES) or 0, value(counted[0], *WRITTEN_BYTES)
    else:
        totals = [stage.totals for stage in view.app.stages_of(view.query)]
        files, total = sum(each.output_tasks for each in totals), sum(each.output_bytes for each in totals)
    if total is None or files <= view.limits.small_files or total >= files * view.limits.small_file_bytes:
        return
    least, most = ("", "") if counted else ("at least ", "at most ")
    yield view.finding(
        "small_files_written",
        f"writes {least}{count(files)} files of {most}{size(total / files)} on average",
        advice="Write fewer, larger files: coalesce(n) or repartition(n) before the write, and for a partitioned table "
        "repartition by its partition columns. For a Delta table: OPTIMIZE, or the table property "
        "delta.autoOptimize.optimizeWrite = true.",
        operator=counted[0] if counted else None,
        numbers={"files": files, "written_bytes": total, "mean_file_bytes": total / files},
    )


def partition_filter_missing(view: QueryView) -> Iterator[Finding]:
    """A filtered scan of a partitioned table that no filter keeps to some of its partitions.

    No cost: nobody can tell how few partitions would do.
    """
    for scan in file_scans(view.operators):
        partitions, total = value(scan, PARTITIONS) or 0, scan.numbers[FILE_BYTES].value
        has_filter = scan.metadata.get("DataFilters", "[]") != "[]"
        is_whole = scan.metadata.get("PartitionFilters") == "[]" and has_filter
        if is_whole and partitions >= view.limits.unfiltered_partitions and total >= view.limits.unfiltered_bytes:
            yield view.finding(
                "partition_filter_missing",
                f"filters {place(scan)}, but reads all its {count(partitions)} partitions, {size(total)}",
                advice="Add a condition on the partition column itself (where(F.col('date') == ...)), as a literal and "
                "not within a function; or partition the table by what it is filtered by.",
                operator=scan,
                numbers={"partitions": partitions, "read_bytes": total},
                severity="info",
            )

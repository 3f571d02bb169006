"""Rules about files that queries read and write."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView, value
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.plan_names import (
    FILE_BYTES_READ,
    FILES_READ,
    PARTITION_FILTERS,
    SCAN_TIME,
    WRITTEN_BYTES,
)
from spark_app.eventlog.model.repeated_reads import file_scans, location
from spark_app.formatting import count, size
from spark_app.redaction import excerpt

OPEN_COST_BYTES: Final = 4 * 1024**2
"""Opening a file takes as long as reading this many bytes: the default of `spark.sql.files.openCostInBytes`."""
WRITTEN_FILES: Final = "number of written files"
BYTES_OF_WRITES: Final = (WRITTEN_BYTES, "bytes of written output")
PARTITIONS: Final = "number of partitions read"


@rule(subject="data", adds=("read_bytes",))
def small_files_read(view: QueryView) -> Iterator[Finding]:
    """A scan of many small files, except for the transaction log of a Delta table.

    Evidence: files, bytes, mean file size.
    Why: opening a file takes as long as reading megabytes, and the driver lists all files.
    Change: merge the files where they are written: `OPTIMIZE` for a Delta table, `repartition(n)` or `coalesce(n)`
        before the write for others; until then a larger `spark.sql.files.maxPartitionBytes`.
    Threshold: more than {small_files} of less than {small_file_bytes} on average (DataFlint).
    Cost: the share of the scan time that Spark estimates for opening files (`spark.sql.files.openCostInBytes`, 4 MiB
        for each file), divided by the mean number of running tasks. Formats without a scan time (text, CSV, JSON) have
        at most the run time of the tasks that scan.
    """
    for scan in file_scans(view.operators):
        files, total = scan.numbers[FILES_READ].value, scan.numbers[FILE_BYTES_READ].value
        if files <= view.limits.small_files or total >= files * view.limits.small_file_bytes:
            continue
        opening = files * OPEN_COST_BYTES
        measured = value(scan, SCAN_TIME)
        time = view.run_ms(scan) if measured is None else measured
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


@rule(adds=("files", "written_bytes"), more_than=("files", "small_files"))
def small_files_written(view: QueryView) -> Iterator[Finding]:
    """Queries, or batches of a stream, that write many small files.

    Evidence: files and bytes, by Spark's metrics. Delta does not count its files in the plan: the rule then counts each
        task with output as one file, and the text says "at least".
    Why: every later read pays for them.
    Change: `coalesce(n)` or `repartition(n)` before the write, `repartition` by the partition columns for a partitioned
        table; for Delta `OPTIMIZE`, or the table property `delta.autoOptimize.optimizeWrite`.
    Threshold: as above, for all files that are written to a folder, by queries that write at least two.
    Cost: not estimated; `small_files_read` reports it when a query reads the files.
    """
    counted = [operator for operator in view.operators if WRITTEN_FILES in operator.numbers]
    if counted:
        files, total = value(counted[0], WRITTEN_FILES) or 0, value(counted[0], *BYTES_OF_WRITES)
    else:
        totals = [stage.totals for stage in view.app.stages_of(view.query)]
        files, total = sum(each.output_tasks for each in totals), sum(each.output_bytes for each in totals)
    if total is None or files < 2 or total >= files * view.limits.small_file_bytes:
        return
    target = view.query.target.path or "" if counted and view.query.target else ""
    least, most = ("", "") if counted else ("at least ", "at most ")
    yield view.finding(
        "small_files_written",
        f"writes {least}{count(files)} files of {most}{size(total / files)} on average{_to(target)}",
        advice="Write fewer, larger files: coalesce(n) or repartition(n) before the write, and for a partitioned table "
        "repartition by its partition columns. For a Delta table: OPTIMIZE, or the table property "
        "delta.autoOptimize.optimizeWrite = true.",
        operator=counted[0] if counted else None,
        numbers={"files": files, "written_bytes": total, "mean_file_bytes": total / files},
        cause=target,
    )


def _to(target: str) -> str:
    return f" to {excerpt(target)}" if target else ""


@rule(adds=("read_bytes",))
def partition_filter_missing(view: QueryView) -> Iterator[Finding]:
    """A scan with a filter that reads all partitions of a partitioned table, because the filter is on other columns.

    Evidence: partitions, bytes.
    Why: with a filter on the partition column Spark opens few files.
    Change: add a condition on that column, as a literal and not within a function; or partition the table by the
        filtered column.
    Threshold: {unfiltered_partitions} and {unfiltered_bytes} (project; DataFlint has an alert for any full scan).
    Cost: not estimated, because the log does not say how few partitions the query needs: an info.
    """
    for scan in file_scans(view.operators):
        partitions, total = value(scan, PARTITIONS) or 0, scan.numbers[FILE_BYTES_READ].value
        has_filter = scan.metadata.get("DataFilters", "[]") != "[]"
        is_whole = scan.metadata.get(PARTITION_FILTERS) == "[]" and has_filter
        if is_whole and partitions >= view.limits.unfiltered_partitions and total >= view.limits.unfiltered_bytes:
            yield view.finding(
                "partition_filter_missing",
                f"filters {location(scan)}, but reads all {count(partitions)} partitions, {size(total)}",
                advice="Add a condition on the partition column itself (where(F.col('date') == ...)), as a literal and "
                "not within a function; or partition the table by the filtered column.",
                operator=scan,
                numbers={"partitions": partitions, "read_bytes": total},
                severity="info",
                cause=location(scan),
            )

"""Rules about files that queries read and write."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView, value
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.operators import Operator
from spark_app.eventlog.model.plan_names import (
    FILE_BYTES_READ,
    FILES_READ,
    OUTPUT_ROWS,
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
_FILTERING: Final = ("CSV", "JSON")
"""Formats whose readers drop the rows that pushed filters exclude, before these are counted."""
_OF_NULLS: Final = re.compile(r"isnotnull\([^()]*\)")


@rule(subject="data", adds=("read_bytes",), explains=("slow_storage",), explains_in="query")
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

    An info, since the log does not say whether the rows that pass are in few partitions.

    Evidence: partitions, bytes, and the rows that the filter let pass.
    Why: with a filter on the partition column Spark opens few files.
    Change: add a condition on that column, as a literal and not within a function; or partition the table by the
        filtered column.
    Threshold: {unfiltered_partitions}; where the plan does not say how many rows pass, {unfiltered_bytes} (project;
        DataFlint has an alert for any full scan). A filter for nulls alone, as joins have, is none.
    Cost: the scan time, times the share of the rows that did not pass, divided by the mean number of running tasks:
        what a filter on a partition column saves that reads no other rows. Formats without a scan time (text, CSV,
        JSON) have at most the run time of the tasks that scan. Readers of CSV and JSON may drop rows themselves and do
        not count them: then it is at most what a filter saves that reads one partition.
    """
    filters = {scan.accumulables: each for each in view.operators if (scan := _filtered(each)) is not None}
    for scan in file_scans(view.operators):
        partitions, total = value(scan, PARTITIONS) or 0, scan.numbers[FILE_BYTES_READ].value
        has_filter = _OF_NULLS.sub("", scan.metadata.get("DataFilters", "")).strip("[], ")
        if not has_filter or scan.metadata.get(PARTITION_FILTERS) != "[]":
            continue
        rows, passed = _rows(scan, filters.get(scan.accumulables))
        share = _unneeded(scan, rows, passed)
        is_little = share is None and total < view.limits.unfiltered_bytes
        if partitions < view.limits.unfiltered_partitions or is_little:
            continue
        is_counted = rows is not None and passed is not None and passed < rows
        part = f", for {count(passed or 0)} of {count(rows or 0)} rows" if is_counted else ""
        yield view.finding(
            "partition_filter_missing",
            f"filters {location(scan)}, but reads all {count(partitions)} partitions, {size(total)}{part}",
            advice="Add a condition on the partition column itself (where(F.col('date') == ...)), as a literal and "
            "not within a function; or partition the table by the filtered column.",
            operator=scan,
            numbers={"partitions": partitions, "read_bytes": total},
            cost_ms=None if share is None else _part_ms(view, scan, share),
            severity="info",
            cause=location(scan),
        )


def _filtered(operator: Operator) -> Operator | None:
    """The scan whose rows a filter takes; None for another operator, or where others are in between."""
    inputs = operator.inputs
    if operator.name != "Filter" or len(inputs) != 1:
        return None
    below = inputs[0]
    while len(below.inputs) == 1 and (below.is_wrapper or below.name == "ColumnarToRow"):
        below = below.inputs[0]
    return None if below.inputs else below


def _rows(scan: Operator, above: Operator | None) -> tuple[float | None, float | None]:
    """The rows of a scan, and those that the filter above it let pass: without a number, none did."""
    return value(scan, OUTPUT_ROWS), None if above is None else value(above, OUTPUT_ROWS) or 0.0


def _unneeded(scan: Operator, rows: float | None, passed: float | None) -> float | None:
    """The share of a scan that a filter on a partition column would save, at most; None where the plan does not say."""
    if scan.metadata.get("Format") in _FILTERING and scan.metadata.get("PushedFilters", "[]") != "[]":
        return 1 - 1 / (value(scan, PARTITIONS) or 1)
    return 1 - min(1.0, passed / rows) if rows and passed is not None else None


def _part_ms(view: QueryView, scan: Operator, share: float) -> float | None:
    """What a share of a scan took of the wall-clock time."""
    measured = value(scan, SCAN_TIME)
    time = view.run_ms(scan) if measured is None else measured
    return view.wall_of(None if time is None else time * share, scan)

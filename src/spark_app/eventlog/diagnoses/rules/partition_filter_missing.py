"""A scan with a filter that reads all partitions of a partitioned table, because the filter is on other columns."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.filters import filters_of, rows_of_filter
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import GIB, Limit, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, value
from spark_app.eventlog.model.plan_names import (
    FILE_BYTES_READ,
    PARTITION_FILTERS,
    SCAN_TIME,
)
from spark_app.eventlog.model.repeated_reads import file_scans, location
from spark_app.formatting import count, size

PARTITIONS: Final = "number of partitions read"
_FILTERING: Final = ("CSV", "JSON")
"""Formats whose readers drop the rows that pushed filters exclude, before these are counted."""
_OF_NULLS: Final = re.compile(r"isnotnull\([^()]*\)")


@rule(
    adds=("read_bytes",),
    limits={
        "unfiltered_partitions": Limit(100, "Unfiltered scan: partitions that a filtered scan read, at least.", ge=2),
        "unfiltered_bytes": Limit(
            10 * GIB,
            "Unfiltered scan: bytes that it read, at least, where the plan does not count the rows that passed it.",
            ge=1,
        ),
    },
    cause="unpruned_partitions",
)
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
    filters = filters_of(view.operators)
    for scan in file_scans(view.operators):
        partitions, total = value(scan, PARTITIONS) or 0, scan.numbers[FILE_BYTES_READ].value
        has_filter = _OF_NULLS.sub("", scan.metadata.get("DataFilters", "")).strip("[], ")
        if not has_filter or scan.metadata.get(PARTITION_FILTERS) != "[]":
            continue
        rows, passed = rows_of_filter(scan, filters.get(scan.accumulables))
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

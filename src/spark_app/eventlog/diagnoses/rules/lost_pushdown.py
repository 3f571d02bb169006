"""A filter that a cast of its column keeps from the files, so that a scan reads all rows."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.filters import filters_of, rows_of_filter
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.shuffle_cost import shared_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator
from spark_app.eventlog.model.plan_names import parts
from spark_app.eventlog.model.repeated_reads import file_scans, location
from spark_app.formatting import count
from spark_app.redaction import excerpt

SAVED_RATIO: Final = 0.5
"""What a filter that reaches the files saves, usually: none where each part of the files has such rows, all where one
has them. Project: the pair `lost-pushdown` of `truth/`."""
_FORMATS: Final = ("Parquet", "ORC")
"""The formats whose files say which values their parts have, in plans."""
_CAST: Final = re.compile(r"\(?cast\(([\w.]+)#\d+L? as ([\w(),]+?)\) (?:=|<=>|<=|>=|<|>|IN|INSET) [^#]*")
"""A cast of a column that is compared with literals."""


class _Lost(NamedTuple):
    """A column of some type that a filter casts to another one."""

    column: str
    type: str
    cast: str


@rule(
    explains=("partition_filter_missing", "repeated_scan"),
    explains_in="query",
    limits={
        "pushdown_rows_ratio": Limit(
            10.0, "Lost pushdown: rows that a scan read over those that its filter let pass, at least.", gt=1
        )
    },
)
def lost_pushdown(view: QueryView) -> Iterator[Finding]:
    """A filter that a cast of its column keeps from the files, so that a scan reads all rows.

    Evidence: the column, its type and that of the cast, the rows that were read and that passed.
    Why: Parquet and ORC have the smallest and the largest value of each part of a file, and Spark skips parts by the
        filters that it pushes there; it pushes none with a cast of the column.
    Change: compare the column with a literal of its own type: a text with a text, a timestamp with the first and the
        last timestamp of a day.
    Threshold: a scan of {pushdown_rows_ratio} rows for each that passes (project). The rule ignores filters of which
        Spark pushed another part for the same column.
        Explained by it: `partition_filter_missing` and `repeated_scan` of the same queries, which come behind it.
    Cost: the share of the scan, the filter and what is between them in the run time of their stages, by the rows that
        pass their operators, times that of the rows that did not pass, divided by the mean number of running tasks. The
        log does not tell where these rows are: half of that, and between none and all of it (project).
    """
    filters = filters_of(view.operators)
    for scan in file_scans(view.operators):
        above, lost = filters.get(scan.accumulables), _lost(scan)
        rows, passed = rows_of_filter(scan, above)
        if lost is None or above is None or not rows or passed is None:
            continue
        if rows < view.limits.pushdown_rows_ratio * max(passed, 1):
            continue
        most = view.wall_of(shared_ms(view, [above, *above.below()]) * (1 - passed / rows), scan)
        yield view.finding(
            "lost_pushdown",
            f"reads {count(rows)} rows of {location(scan)} for {count(passed)}: its filter casts the column "
            f"{lost.column} ({lost.type}) to {lost.cast}, and Spark pushes no filter with a cast to the files",
            advice=f"Compare {lost.column} with a literal of its own type, {lost.type}: {_instead(lost)}. Then the "
            "scan skips the parts of files that have no such values; sort the rows by the column where they are "
            "written, so that few parts have them.",
            operator=above,
            numbers={"rows": rows, "passed_rows": passed},
            cost_ms=None if most is None else most * SAVED_RATIO,
            cause=f"{lost.column} {location(scan)}",
        ).within(None if most is None else (0.0, most))


def _lost(scan: Operator) -> _Lost | None:
    """The first column that a filter of a scan casts, without any other filter of it that was pushed."""
    if scan.metadata.get("Format") not in _FORMATS:
        return None
    pushed = [each for each in parts(_in_brackets(scan, "PushedFilters")) if not each.startswith("IsNotNull(")]
    for condition in parts(_in_brackets(scan, "DataFilters")):
        cast = _CAST.fullmatch(condition)
        if cast is not None and not any(re.search(rf"\b{re.escape(cast[1])}\b", each) for each in pushed):
            own = re.search(rf"[<,]{re.escape(cast[1])}:([\w(),]+?)[,>](?![\d)])", scan.metadata.get("ReadSchema", ""))
            return _Lost(excerpt(cast[1], 100), own[1] if own else "its own type", cast[2])
    return None


def _in_brackets(scan: Operator, name: str) -> str:
    return scan.metadata.get(name, "").removeprefix("[").removesuffix("]")


def _instead(lost: _Lost) -> str:
    if lost.type == "string":
        return f"F.col('{lost.column}') == '17', as it is written there, and not == 17"
    if lost.type.startswith("timestamp"):
        return f"F.col('{lost.column}') >= a first timestamp, and < the one behind the last"
    return f"F.lit(…).cast('{lost.type}')"

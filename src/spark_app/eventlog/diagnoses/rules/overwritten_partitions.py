"""Writes of single partitions in overwrite mode, each of which removes the partitions that others have written."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.query import QueryView, query_name
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import plan_of, value
from spark_app.redaction import excerpt

MODE: Final = "spark.sql.sources.partitionOverwriteMode"
COMMAND: Final = re.compile(
    rb"InsertIntoHadoopFsRelationCommand ([^\s,\"]+), (?:true|false), \[([^\]\"]+)\], (?:[^\"\\]|\\.)*?, Overwrite,"
)
"""A write to a folder with partition columns, none of which has a value of its own in the statement (`PARTITION (day =
...)`): the folder, and the columns with their numbers."""
LITERAL: Final = rb"([^\s,\[\]]+) AS %b\b"
"""A value that all rows of a column have."""
DYNAMIC_OPTION: Final = re.compile(rb"partitionOverwriteMode=dynamic", re.IGNORECASE)
PARTITIONS: Final = "number of dynamic part"
MAX_QUERIES_BEFORE: Final = 1000
"""How many queries before one are looked at."""


@dataclass(frozen=True, slots=True)
class _Write:
    """An overwrite of a partitioned folder: that, its columns, and the value of the first one, if all rows have it."""

    path: str
    columns: str
    value: bytes | None


@rule(reports_always=True)
def overwritten_partitions(view: QueryView) -> Iterator[Finding]:
    """Writes of single partitions in overwrite mode, each of which removes the partitions that others have written.

    Evidence: two queries of the application that overwrite the same folder, in static mode, with one partition each,
        and not with the same value.
    Why: `mode("overwrite")` removes all partitions of the folder before it writes, also those that the rows do not
        belong to: what is left is the last write.
    Change: `spark.sql.sources.partitionOverwriteMode=dynamic`, or the option `partitionOverwriteMode` of the writer,
        which replaces the partitions that are written and no others; or a table of Delta with `replaceWhere`.
    Threshold: two such writes. A write of several partitions, which may be all that there are, is none.
    Cost: not estimated: the result is wrong, not late.
    """
    write = _write_of(view.query, view.settings)
    if write is None or _partitions(view, view.query) != 1:
        return
    before = next((query for query in _before(view) if _is_other_partition(view, query, write)), None)
    if before is None:
        return
    yield view.finding(
        "overwritten_partitions",
        f"overwrites {excerpt(write.path)}, which is partitioned by {write.columns}, with one partition, and so "
        f"removes the one that {query_name(view.app, before.id)} has written there: {MODE} is static",
        advice=f"Set {MODE} = dynamic, or .option('partitionOverwriteMode', 'dynamic') of the writer: an overwrite "
        "then replaces the partitions that it writes, and no others.",
        operator=None,
        numbers={"partitions": 1},
        cause=write.path,
    )


def _write_of(query: Query, settings: Mapping[str, str]) -> _Write | None:
    """The overwrite of a query in static mode; None if it is none, or has failed."""
    plan = bytes(query.plan)
    command = COMMAND.search(plan)
    if command is None or query.error or settings.get(MODE, "static").lower() == "dynamic":
        return None
    if DYNAMIC_OPTION.search(command[0]):
        return None
    first = command[2].partition(b", ")[0]
    literal = re.search(LITERAL % re.escape(first), plan)
    columns = ", ".join(column.partition("#")[0] for column in command[2].decode(errors="replace").split(", "))
    return _Write(command[1].decode(errors="replace"), columns, literal[1] if literal else None)


def _before(view: QueryView) -> Iterator[Query]:
    """The queries before one that have ended, the last of them first."""
    for number in range(view.query.id - 1, max(-1, view.query.id - 1 - MAX_QUERIES_BEFORE), -1):
        query = view.app.queries.get(number)
        if query is not None and query.ended is not None:
            yield query


def _is_other_partition(view: QueryView, query: Query, write: _Write) -> bool:
    """Whether a query before has written another partition of the same folder, or one that may be another."""
    before = _write_of(query, settings_advice.settings_of(view.app, query))
    if before is None or before.path != write.path or _partitions(view, query) != 1:
        return False
    return write.value is None or before.value != write.value


def _partitions(view: QueryView, query: Query) -> float | None:
    """How many partitions a query has written; None if it does not say."""
    try:
        operators = [each for _, each in plan_of(query, view.app.numbers).root.walk()]
    except ValueError:
        return None
    return next((value(each, PARTITIONS) for each in operators if PARTITIONS in each.numbers), None)

"""The columns by which rows were shuffled for a stage, and the scan of files that they come from."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.operators import MAX_TEXT
from spark_app.eventlog.model.plan_names import EXCHANGE, LOCATION, PATHS, parts
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import SqlPlan

RECORDS_READ: Final = "records read"
"""What tasks count that read the output of an exchange."""
FORMAT: Final = "Format"
_READING_RDD: Final = "ShuffledRowRDD"
_SCOPE: Final = re.compile(r'"spark_plan_(\d+)"')
_PLAN_ID: Final = re.compile(r"\[plan_id=(\d+)\]")
"""Spark 4 names an RDD by the id that the plan shows of the operator that made it."""
_HASHED: Final = re.compile(r"\bhashpartitioning\((.*), (\d+)\)(?:,|$)")
_ATTRIBUTE: Final = re.compile(r"([^#(),\[\]]+)#(\d+)L?")
_ALIAS: Final = r"[\[ ](?:\w+\.)?[^#(),\[\]]+#(\d+)L? AS [^#(),\[\]]+#{}L?\b"
"""A pattern of a column that gets another name, and the id of that: `shop#2L AS place#9L`."""
_OUTPUT: Final = re.compile(r"Scan \w+ [^\[]*\[([^\]]*)\]")
_LOCATED: Final = re.compile(PATHS + r"(.*?)\]?", re.DOTALL)
_FILTERS: Final = ("DataFilters", "PartitionFilters")
_CHANGING: Final = re.compile(
    r"Aggregate|Join|Generate|Expand|Window|Limit|Sample|Python|Pandas|CartesianProduct|Union"
)
"""Operators after which the rows are not those of the scan any more."""


class UnknownKeyError(ValueError):
    """The plan does not say which column of which files the rows were shuffled by; the message says why."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of files by which rows are shuffled; `is_never_null` where rows without a value are filtered out."""

    name: str
    is_never_null: bool


@dataclass(frozen=True, slots=True)
class ShuffleKey:
    """The columns by which rows were distributed over partitions, as files have them.

    Attributes:
        columns: All columns of the key, of one scan.
        partitions: How many partitions the shuffle had before adaptive execution merged or split them.
        paths: The folders or files of the scan, as Spark names them.
        format: Of the files: `Parquet`.
        between: The operators between the scan and the shuffle that change which rows there are.
    """

    columns: tuple[KeyColumn, ...]
    partitions: int
    paths: tuple[str, ...]
    format: str
    between: tuple[str, ...]


def exchanges_of(query: Query, stage: StageAttempt) -> list[SqlPlan]:
    """The shuffles by a key that a stage of a query has read, in the order of the plan, which may be unreadable."""
    try:
        plan = events.plan(query.plan)
    except ValueError:
        return []
    counted = {each.id for each in stage.info.accumulables}
    scopes = " ".join(rdd.scope or "" for rdd in stage.info.rdds if rdd.name == _READING_RDD)
    return [*_exchanges(plan, counted, {*_SCOPE.findall(scopes)})]


def _exchanges(plan: SqlPlan, counted: set[int], read: set[str]) -> Iterator[SqlPlan]:
    """The exchanges by a hash that tasks of a stage have read: they count it, or an RDD of theirs has its id."""
    is_read = any(metric.name == RECORDS_READ and metric.id in counted for metric in plan.metrics)
    is_read |= not read.isdisjoint(_PLAN_ID.findall(plan.text[:MAX_TEXT]))
    if plan.name == EXCHANGE and is_read and _HASHED.search(plan.text[:MAX_TEXT]):
        yield plan
    for child in plan.children:
        yield from _exchanges(child, counted, read)


def key_of(exchange: SqlPlan) -> ShuffleKey:
    """The key of a shuffle.

    Raises:
        UnknownKeyError: It is computed, or its columns are in no scan of files that the plan has.
    """
    match = _HASHED.search(exchange.text[:MAX_TEXT])
    found = [(part, _ATTRIBUTE.fullmatch(part)) for part in (parts(match[1]) if match else ())]
    columns = []
    for part, attribute in found:
        if attribute is None:
            raise UnknownKeyError(f"it is shuffled by {part}, which is no column of files")
        columns.append(_origin(exchange, attribute[1], attribute[2]))
    scans = {id(way[-1]): way for _, way in columns}
    if match is None or len(scans) != 1:
        raise UnknownKeyError("the columns that it is shuffled by come from several scans")
    way = next(iter(scans.values()))
    names = tuple(column for column, _ in columns)
    return ShuffleKey(names, int(match[2]), _paths(way[-1]), way[-1].metadata.get(FORMAT, ""), _between(way))


def _origin(exchange: SqlPlan, name: str, number: str) -> tuple[KeyColumn, list[SqlPlan]]:
    """A column of the scan that an attribute comes from, and the operators from the exchange down to the scan."""
    numbers = {number}
    for way in _ways(exchange):
        numbers |= {alias[1] for each in numbers for alias in re.finditer(_ALIAS.format(each), way[-1].text[:MAX_TEXT])}
        output = _OUTPUT.search(way[-1].text[:MAX_TEXT])
        for attribute in _ATTRIBUTE.finditer(output[1] if output else ""):
            if attribute[2] in numbers:
                column = attribute[1].strip()
                return KeyColumn(column, _is_never_null(way, column, numbers)), way
    raise UnknownKeyError(f"it is shuffled by {name}, which no scan of files in the plan of its query has")


def _ways(plan: SqlPlan, above: tuple[SqlPlan, ...] = ()) -> Iterator[list[SqlPlan]]:
    """Each operator below one, after those that lead to it."""
    for child in plan.children:
        yield [*above, child]
        yield from _ways(child, (*above, child))


def _is_never_null(way: list[SqlPlan], column: str, numbers: set[str]) -> bool:
    """Whether an operator on the way drops the rows that have no value in a column."""
    texts = [each.text[:MAX_TEXT] for each in way] + [way[-1].metadata.get(name, "") for name in _FILTERS]
    pattern = re.compile(rf"isnotnull\([^#()]+#(?:{'|'.join(sorted(numbers))})L?\)")
    return any(pattern.search(text) for text in texts) or f"IsNotNull({column})" in way[-1].text


def _between(way: list[SqlPlan]) -> tuple[str, ...]:
    names = [each.name for each in reversed(way[:-1]) if each.name == "Filter" or _CHANGING.search(each.name)]
    is_filtered = any(way[-1].metadata.get(name, "[]") != "[]" for name in _FILTERS)
    return tuple(dict.fromkeys(["Filter", *names] if is_filtered else names))


def _paths(scan: SqlPlan) -> tuple[str, ...]:
    located = _LOCATED.fullmatch(scan.metadata.get(LOCATION, ""))
    return tuple(path for path in located[1].split(", ") if path not in ("", "...")) if located else ()

"""The plans of queries without dates, sizes and ids: plans of equal queries about other days are equal."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.comparison.profile import OperatorSum, place_and_flow
from spark_app.eventlog.model import operators, stage_groups
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query, StageAttempt
from spark_app.eventlog.model.operators import Operator
from spark_app.eventlog.model.plan_names import (
    CARTESIAN_PRODUCT,
    DATA_SIZE,
    EXCHANGE,
    FILE_BYTES_READ,
    OUTPUT_ROWS,
    PYTHON_TIME,
    SCAN_TIME,
    SHUFFLE_READ,
    SHUFFLE_WRITE_TIME,
    SORT_TIME,
)

MAX_LABEL: Final = 200
"""Characters of the description of an operator; longer ones are truncated."""
MAX_OPERATORS: Final = 100
"""Different operators of one place that are kept; the plans of generated queries have more."""
UNNAMED: Final = ("Project", "ColumnarToRow", "RowToColumnar")
"""Operators that a list of operators leaves out: they do little, and almost every change of a query moves them."""
JOINS: Final = ("Join", CARTESIAN_PRODUCT)
_ARGUMENTS: Final = re.compile(r"\s*\(.*?\)|\d+")
_PARTITIONING: Final = re.compile(
    rf"{EXCHANGE} (\w+)(.*?)(?:, (?:ENSURE|REPARTITION|REBALANCE|REQUIRED)_|, \[plan_id|$)"
)
_COLUMN: Final = re.compile(r"([A-Za-z_][\w.]*)#\d")
_NUMBER: Final = re.compile(r"\d{3,}")

_ROWS: Final = (OUTPUT_ROWS, "shuffle records written")
_BYTES: Final = ("shuffle bytes written", FILE_BYTES_READ, DATA_SIZE)
_TIMES: Final = (
    PYTHON_TIME, SCAN_TIME, SORT_TIME, "time in aggregation build", "time to build hash map", SHUFFLE_WRITE_TIME,
)  # fmt: skip
"""Spark's names of the numbers that are kept of an operator; the first one that it has counts."""


class Planned(NamedTuple):
    """The queries of one place: the fingerprints of their different plans, and the sums of their operators."""

    plans: list[str]
    operators: list[OperatorSum]


def planned(app: Application) -> dict[str, Planned]:
    """The queries that ran jobs, by the place of their stages (see `profile.StageGroup`)."""
    runs = {(place_and_flow(stage_groups.group_of(app, stage))[0], query.id): query for stage, query in _queries(app)}
    queries_by_place: dict[str, list[Query]] = {}
    for (place, _), query in runs.items():
        queries_by_place.setdefault(place, []).append(query)
    planned_by_place = {place: _planned(queries) for place, queries in queries_by_place.items()}
    return {place: planned for place, planned in planned_by_place.items() if planned.plans}


def _queries(app: Application) -> Iterator[tuple[StageAttempt, Query]]:
    for stage in app.stages.values():
        query = app.query_of(app.job_of(stage))
        if query is not None:
            yield stage, query


def _planned(queries: Iterable[Query]) -> Planned:
    plans: dict[str, None] = {}
    sums: dict[str, OperatorSum] = {}
    for query in queries:
        try:
            root = operators.own_plan_of(query).root
        except ValueError:
            continue
        working = [(depth, label(operator), operator) for depth, operator in _working(root)]
        fingerprint = _fingerprint(f"{depth} {name}" for depth, name, _ in working)
        for _, name, operator in working:
            _add(sums, name, operator, is_new=fingerprint not in plans)
        plans[fingerprint] = None
    return Planned(list(plans), list(sums.values())[:MAX_OPERATORS])


def _fingerprint(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _add(sums: dict[str, OperatorSum], label: str, operator: Operator, *, is_new: bool) -> None:
    """Adds an operator to the sums; only the first query of each plan counts it, and all add their numbers."""
    if label in UNNAMED or operator.is_reused:
        return
    total = sums.setdefault(label, OperatorSum(label, 0))
    total.number = max(1, total.number + is_new)
    total.rows = _plus(total.rows, operators.value(operator, *_ROWS))
    total.bytes = _plus(total.bytes, operators.value(operator, *_BYTES))
    total.ms = _plus(total.ms, operators.value(operator, *_TIMES))


def _plus(sum_so_far: float | None, value: float | None) -> float | None:
    return sum_so_far if value is None else round((sum_so_far or 0) + value, 1)


def _working(operator: Operator, depth: int = 0) -> Iterator[tuple[int, Operator]]:
    """Operators that do work, with their depth; reads of a shuffle vary with its size and are left out."""
    is_wrapper = operator.is_wrapper or operator.name.startswith((SHUFFLE_READ, "TableCacheQueryStage"))
    if not is_wrapper:
        yield depth, operator
    for child in operator.children:
        yield from _working(child, depth + (not is_wrapper))


def label(operator: Operator) -> str:
    """What an operator does: its name, with the filters of a scan, the keys of an exchange, or its Python functions."""
    name = _name(operator)
    if name == EXCHANGE:
        details = _partitioning(operator)
    elif operators.PYTHON.search(name):
        details = ", ".join(operators.python_functions(operator))
    else:
        details = _filters(operator)
    return _NUMBER.sub("#", f"{name} {details}".strip())[:MAX_LABEL]


def _name(operator: Operator) -> str:
    """The name of an operator without arguments and numbers: `SortMergeJoin(skew=true)` is a SortMergeJoin."""
    return _ARGUMENTS.sub("", operator.name).strip()


def _partitioning(operator: Operator) -> str:
    """How an exchange distributes rows, and by which columns: `hashpartitioning(shop)`."""
    found = _PARTITIONING.match(operator.text[: operators.MAX_TEXT])
    columns = ", ".join(dict.fromkeys(_COLUMN.findall(found[2]))) if found else ""
    return "" if found is None else f"{found[1]}({columns})" if columns else found[1]


def _filters(operator: Operator) -> str:
    """The columns and comparisons of a scan's pushed filters, without the values, such as dates."""
    filters = operator.metadata.get("PushedFilters", "")
    return " ".join(f"{how}({column})" for how, column in re.findall(r"([A-Za-z]+)\(([^(),]+)", filters))

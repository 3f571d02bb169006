"""The first row of each group behind a sort whose order a shuffle does not keep."""

import re
from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import MAX_TEXT, Operator
from spark_app.eventlog.model.plan_names import EXPRESSION_ID
from spark_app.redaction import excerpt

MAX_NAME: Final = 100
_FIRST: Final = re.compile(r"Aggregate\(keys?=\[(.*?)\], functions=\[.*?\b(first|last)\(", re.DOTALL)
_GLOBAL_SORT: Final = re.compile(r"Sort \[(.*)\], true, \d+", re.DOTALL)
_AGGREGATES: Final = ("HashAggregate", "SortAggregate", "ObjectHashAggregate")
_PASSED: Final = ("Exchange", "AQEShuffleRead", "Project", "Sort", *_AGGREGATES)
"""What may stand between the aggregate and the sort: its own parts, and the shuffle that loses the order."""


@rule(reports_always=True)
def sorted_first(view: QueryView) -> Iterator[Finding]:
    """The first row of each group behind a sort whose order a shuffle does not keep.

    Evidence: the columns of the groups and of the sort.
    Why: `orderBy(...).dropDuplicates(columns)`, and `first` or `last` of groups behind an `orderBy`, take the row of a
        group that comes first behind a shuffle, and blocks of a shuffle come in any order: it may be another row in
        each run.
    Change: `max_by` or `min_by` of the columns by that of the sort, or `row_number` over a window with this order. The
        sort goes with it.
    Threshold: an aggregate with `first` or `last`, and below it a shuffle and then a sort of all rows. A sort within
        partitions is none.
    Cost: not estimated: the result may be wrong, and the sort is not needed.
    """
    for operator in view.operators:
        first = _FIRST.search(operator.text[:MAX_TEXT])
        order = None if first is None else _order_below(operator)
        if first is None or order is None:
            continue
        keys, columns = (excerpt(EXPRESSION_ID.sub("", each), MAX_NAME) for each in (first[1], order))
        yield view.finding(
            "sorted_first",
            f"takes the {first[2]} row of each {keys or 'partition'} behind a sort by {columns}; the shuffle between "
            "does not keep the order, so that it may be another row in each run",
            advice=_advice(keys, columns),
            operator=operator,
            numbers={},
            cause=f"{keys} {columns}",
        )


def _order_below(operator: Operator) -> str | None:
    """The order of a sort of all rows, which a shuffle lies between; None if there is none."""
    is_shuffled, below = False, operator
    while len(below.inputs) == 1:
        below = below.inputs[0]
        if not below.is_wrapper and not below.name.startswith(_PASSED):
            return None
        sort = _GLOBAL_SORT.fullmatch(below.text)
        if sort is not None:
            return sort[1] if is_shuffled else None
        is_shuffled |= below.name == "Exchange"
    return None


def _advice(keys: str, columns: str) -> str:
    """What finds the same row in each run."""
    by, direction, *_ = [*columns.partition(",")[0].split(), "ASC"]
    function = "max_by" if direction == "DESC" else "min_by"
    return (
        f"Drop the orderBy, and take the row by its value: groupBy({keys}).agg(F.{function}(F.struct('*'), '{by}')); "
        f"or number the rows by F.row_number().over(Window.partitionBy({keys}).orderBy({columns})), and keep the first."
    )

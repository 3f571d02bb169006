"""Of which columns of other DataFrames the columns of a DataFrame are made, by the plan that Spark has analyzed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame

from spark_app.runs.column_lineage import Origin

Node = dict[str, Any]
"""A node of a plan, or of an expression, as Spark writes it in JSON; its children follow it in a list."""
Known = dict[int, frozenset[Origin]]
"""By the id of an expression, the columns of the inputs that it is made of."""
_SAME: Final = frozenset({
    "Deduplicate", "Distinct", "EventTimeWatermark", "Filter", "GlobalLimit", "LocalLimit", "Offset", "Repartition",
    "RepartitionByExpression", "ResolvedHint", "Sample", "Sort", "SubqueryAlias", "Tail",
})  # fmt: skip
"""Operators with the columns of their child."""
_COLUMNS: Final = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
"""Operators with columns of their own, and where Spark writes these."""
_LEFT_ONLY: Final = ("LeftSemi$", "LeftAnti$")


def origins(rows: DataFrame, inputs: Mapping[str, DataFrame]) -> dict[str, list[Origin]]:
    """By column of a DataFrame, the columns of its inputs that its values are computed of.

    No column for a literal or a count of rows. What rows are chosen, joined or grouped by does not count. A column is
    left out where the plan does not tell: of a function on whole DataFrames, of a subquery, of an input that is joined
    with itself.

    Args:
        rows: The DataFrame.
        inputs: The DataFrames that it was made of, by their names.

    Raises:
        ValueError: Spark writes its plan in a form that is not known.
    """
    known: Known = {}
    for name, frame in inputs.items():
        known |= {number: frozenset({Origin(name, column)}) for column, number in _attributes(frame)}
    plan = msgspec.json.decode(_analyzed(rows).toJSON(), type=list[Node])
    outputs = list[list[int] | None]()
    for node in reversed(plan):  # each after its children
        outputs.append(_outputs(node, [outputs.pop() for _ in range(node["num-children"])], known))
    return {column: sorted(known[number]) for column, number in _attributes(rows) if number in known}


def _analyzed(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()


def _attributes(rows: DataFrame) -> list[tuple[str, int]]:
    """The columns with the ids of their expressions, in one call: `List(day#1, amount#2L)`.

    Raises:
        ValueError: Spark writes them otherwise.
    """
    text, position, found = str(_analyzed(rows).output().toString()), 0, list[tuple[str, int]]()
    for column in rows.columns:
        match = re.compile(f"{re.escape(column)}#(\\d+)").search(text, position)
        if match is None:
            raise ValueError(f"there is no id of {column} in {text}")
        position = match.end()
        found.append((column, int(match[1])))
    return found


def _outputs(node: Node, children: Sequence[list[int] | None], known: Known) -> list[int] | None:
    """The ids of the columns of an operator, whose new ones are known from now on; None where it is not known."""
    match node["class"].rpartition(".")[2]:
        case "Project" | "Aggregate" as name:
            return [_named(each, known) for each in node[_COLUMNS[name]]]
        case "Window":
            return _together([children[0], [_named(each, known) for each in node["windowExpressions"]]])
        case "Generate":
            for each in node["generatorOutput"]:
                _add(_id(each), [node["generator"]], known)
            return None
        case "Expand":
            columns = [_id(each) for each in node["output"]]
            for column, expressions in zip(columns, zip(*node["projections"], strict=True), strict=True):
                _add(column, expressions, known)
            return columns
        case "Join":
            return _together(children[:1] if node["joinType"].get("object", "").endswith(_LEFT_ONLY) else children)
        case "Union":
            return _united(children, known)
        case name if name in _SAME:
            return children[0]
    return [_id(each) for each in node["output"]] if "output" in node else None


def _together(children: Sequence[list[int] | None]) -> list[int] | None:
    parts = [each for each in children if each is not None]
    return [number for part in parts for number in part] if len(parts) == len(children) else None


def _united(children: Sequence[list[int] | None], known: Known) -> list[int] | None:
    """The columns of a union, which have the ids of its first child and are made of those of all."""
    first = children[0]
    if first is None:
        return None
    is_plain = len({*first}) == len(first) and all(each is not None and len(each) == len(first) for each in children)
    for position, number in enumerate(first):
        parts = [known.get(each[position]) for each in children if each is not None] if is_plain else [None]
        if None in parts:
            known.pop(number, None)
        else:
            known[number] = frozenset().union(*(part for part in parts if part))
    return first


def _named(expression: Sequence[Node], known: Known) -> int:
    number = _id(expression)
    if expression[0]["class"].endswith(".Alias"):
        _add(number, [expression[1:]], known)
    return number


def _add(number: int, expressions: Iterable[Sequence[Node]], known: Known) -> None:
    """Makes the id of expressions known, unless it is that of an input, or something that they need is not known."""
    found = set[Origin]()
    for node in (node for each in expressions for node in each):
        kind = node["class"].rpartition(".")[2]
        parts = known.get(node["exprId"]["id"]) if kind == "AttributeReference" else frozenset()
        if parts is None or kind == "OuterReference" or "plan" in node:  # a subquery has a plan of its own
            return
        found |= parts
    known.setdefault(number, frozenset(found))


def _id(expression: Sequence[Node]) -> int:
    number: int = expression[0]["exprId"]["id"]
    return number

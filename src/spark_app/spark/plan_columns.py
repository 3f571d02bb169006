"""From which columns of others the columns of a DataFrame are computed, by the plan that Spark has analyzed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame

from spark_app.runs.column_lineage import Origin

Node = dict[str, Any]
"""A node of a plan, or of an expression, as Spark writes it in JSON; its children follow it in a list."""
Known = dict[int, frozenset[Origin]]
"""By the id of an expression, the columns of the inputs that it is computed from."""
_ID: Final = re.compile(rb'"id":(\d+),"jvmId"')
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
    left out where the plan does not tell: of a function on whole DataFrames, of a subquery, and of an input that is
    used twice where another one has the same form.

    Args:
        rows: The DataFrame.
        inputs: The DataFrames that it was computed from, by their names.

    Raises:
        ValueError: Spark writes its plan in a form that is not known.
    """
    columns, plan = _attributes(rows), _plan(rows)
    own = {name: _attributes(frame) for name, frame in inputs.items()}
    known = _known(plan, own, {})
    if any(number not in known for _, number in columns):  # an input that is used twice has other ids there
        known = _known(plan, own, _forms(inputs))
    return {column: sorted(known[number]) for column, number in columns if number in known}


def _known(plan: Sequence[Node], own: Mapping[str, Sequence[tuple[str, int]]], forms: Mapping[bytes, str]) -> Known:
    """What the ids in a plan are computed from.

    Args:
        plan: The plan.
        own: The columns of the inputs and their ids.
        forms: The inputs by the forms of their plans, to find them under other ids.
    """
    known = {number: frozenset({Origin(name, column)}) for name, each in own.items() for column, number in each}
    parts = list[tuple[int, list[int] | None]]()  # of each part of the plan how many nodes it has, and its columns
    for position in reversed(range(len(plan))):  # each after its children
        node = plan[position]
        children = [parts.pop() for _ in range(node["num-children"])]
        size, columns = 1 + sum(each for each, _ in children), _outputs(node, [each for _, each in children], known)
        parts.append((size, columns))
        name = forms.get(_form(plan[position : position + size])) if forms else None
        if name and columns and len(columns) == len(own[name]):
            pairs = zip(columns, own[name], strict=True)
            known |= {number: frozenset({Origin(name, column)}) for number, (column, _) in pairs}
    return known


def _forms(inputs: Mapping[str, DataFrame]) -> dict[bytes, str]:
    """The inputs by the forms of their plans; none of those that have one form."""
    forms = [(_form(_plan(frame)), name) for name, frame in inputs.items()]
    times = Counter(form for form, _ in forms)
    return {form: name for form, name in forms if times[form] == 1}


def _form(plan: Sequence[Node]) -> bytes:
    """A plan with its ids numbered from 0, as they come: Spark gives others to a part that it uses twice."""
    numbers = dict[bytes, int]()
    return _ID.sub(lambda match: b"%d," % numbers.setdefault(match[1], len(numbers)), msgspec.json.encode(plan))


def _plan(rows: DataFrame) -> list[Node]:
    return msgspec.json.decode(_analyzed(rows).toJSON(), type=list[Node])


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
    """The columns of a union, which have the ids of its first child and are computed from those of all."""
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

"""The plan that a query ran with, as a tree of operators with what each has counted."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.plan_names import CACHE_SCANS, OUTPUT_ROWS, REUSED_EXCHANGE
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import SqlMetric, SqlPlan, StageInfo

MAX_OPERATORS: Final = 500
"""Operators of one plan that are kept; generated queries have thousands."""
MAX_TEXT: Final = 2000
"""Characters of the text of an operator that are searched: the cost grows with the square of the length of a word."""
WRAPPERS: Final = (
    "AdaptiveSparkPlan",
    "WholeStageCodegen",
    "InputAdapter",
    "ResultQueryStage",
    "ShuffleQueryStage",
    "BroadcastQueryStage",
)
"""Operators that do no work: they only say how the operators below them are run."""
_SUBQUERIES: Final = ("Subquery", "ReusedSubquery")
"""Beginnings of the names of subqueries, which Spark lists after what an operator reads rows from: `SubqueryBroadcast`
prunes partitions, others give a value or a set of values to a condition, or a bloom filter to a join."""
_REUSED: Final = (REUSED_EXCHANGE, "ReusedSubquery")
"""Operators that repeat a part that stands elsewhere in the same plan."""
PYTHON: Final = re.compile(r"Python|Pandas|InArrow")
"""Finds the operators and RDDs that run Python, by their names: `ArrowEvalPython`, `MapInPandas`, `PythonRDD`."""
ARROW_BATCHED: Final = "101"
"""PySpark's `SQL_ARROW_BATCHED_UDF`: a plain udf that gets its rows in Arrow batches, the default from 4.2 on."""
_EVAL_TYPE: Final = re.compile(r", (\d+)$")
_CALL: Final = re.compile(r"([\w.<>]*)\(|\)(#\d)?")


def has_python(stage: StageInfo) -> bool:
    """Whether tasks of a stage run Python, by its RDDs."""
    return any(PYTHON.search(f"{rdd.name} {rdd.scope}") for rdd in stage.rdds)


@dataclass(frozen=True, slots=True)
class Number:
    """What an operator has counted: a number of things, bytes (`By`) or milliseconds (`ms`)."""

    value: float
    unit: str

    def __str__(self) -> str:
        """The number, rounded, with its unit."""
        value = int(self.value) if self.value == int(self.value) else round(self.value, 1)
        return f"{value} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a plan that ran, with what it reads from.

    Attributes:
        name: As Spark calls it, `BroadcastHashJoin`.
        text: The same with its arguments, as in `EXPLAIN`.
        numbers: By Spark's names for them; a number that no task has reported is absent.
        metadata: Of a scan: its location, format, filters.
        children: What it reads rows from, then the subqueries of its expressions.
        accumulables: Ids of all its numbers: an operator ran in a stage that has counted some of them.
        is_reused: Whether its output was there already; see `own_plan_of`.
    """

    name: str
    text: str
    numbers: Mapping[str, Number]
    metadata: Mapping[str, str]
    children: "list[Operator]" = field(default_factory=list)
    accumulables: tuple[int, ...] = ()
    is_reused: bool = False

    def walk(self, depth: int = 0) -> "Iterator[tuple[int, Operator]]":
        """This operator and all below it with their depth, each after the operator that reads from it."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    def below(self) -> "Iterator[Operator]":
        """All operators that it reads from, directly or not."""
        return (operator for child in self.children for _, operator in child.walk())

    def __str__(self) -> str:
        """Its name, and what it has counted."""
        numbers = ", ".join(f"{name} {number}" for name, number in self.numbers.items())
        return f"{self.title} [{numbers}]" if numbers else self.title

    @property
    def title(self) -> str:
        """Its name, with a mark where it is reused."""
        return f"{self.name} (reused)" if self.is_reused else self.name

    @property
    def inputs(self) -> "list[Operator]":
        """What it reads rows from: none for a scan, one for a filter, whatever subqueries their conditions have."""
        return [child for child in self.children if not child.is_subquery]

    @property
    def is_subquery(self) -> bool:
        """Whether it gives an expression a value, and no rows to the operator above it."""
        return self.name.startswith(_SUBQUERIES)

    @property
    def is_wrapper(self) -> bool:
        """Whether it does no work, and only says how the operators below it are run."""
        return self.name.startswith(WRAPPERS)

    @property
    def first(self) -> "Operator":
        """The first operator that does work: of a command, the command."""
        return next((operator for _, operator in self.walk() if not operator.is_wrapper), self)


@dataclass(frozen=True, slots=True)
class Plan:
    """The last plan of a query; `is_cut` where it has more operators than are kept."""

    root: Operator
    is_cut: bool

    @property
    def text(self) -> str:
        """An indented tree, each operator with its numbers."""
        return "\n".join(f"{'  ' * depth}{operator}" for depth, operator in self.root.walk())

    @property
    def first(self) -> Operator:
        """The first operator that does work."""
        return self.root.first


NO_PLAN: Final = Plan(Operator("", "", {}, {}), is_cut=False)
"""Of a query whose plan cannot be read."""


def plan_of(query: Query, numbers: Mapping[int, int]) -> Plan:
    """The plan that a query ran with; numbers by accumulable.

    Raises:
        ValueError: What the log holds is no plan.
    """
    room = [MAX_OPERATORS]
    root = _operator(events.plan(query.plan), numbers, room)
    return Plan(root, room[0] < 0)


def own_plan_of(query: Query) -> Plan:
    """The plan that a query ran with; each number is there once, and only if this query caused it.

    Operators that filled a cache before, or stand elsewhere in the plan, are marked as reused and lose the numbers that
    Spark shows there, which are those of when they ran.

    Raises:
        ValueError: What the log holds is no plan.
    """
    plan = plan_of(query, query.numbers)
    return replace(plan, root=_marked(plan.root, reads_cache=query.reads_cache))


def rows_of(operator: Operator) -> float | None:
    """The output rows of an operator; those of its inputs where it neither adds nor drops rows, nor counts them."""
    number = operator.numbers.get(OUTPUT_ROWS)
    inputs = operator.inputs
    if number is not None or not inputs:
        return None if number is None else number.value
    rows = 0.0
    for child in inputs:  # a comprehension would be a frame more for each of 500 levels
        below = rows_of(child)
        if below is None:
            return None
        rows += below
    return rows


def rows_through(operator: Operator) -> float:
    """The rows that an operator took or made, whichever is more; 0 where the plan does not say."""
    return max(rows_of(each) or 0.0 for each in (operator, *operator.inputs))


def python_functions(operator: Operator) -> list[str]:
    """The Python functions that an operator calls, each once; one without a name is `<lambda>`.

    Spark writes a call with the id of its result: `price(length(name#2))#7`.
    """
    names: list[str] = []
    called: list[str] = []
    for token in _CALL.finditer(operator.text[:MAX_TEXT]):
        if token[0].endswith("("):
            called.append(token[1])
        elif called and (name := called.pop()) and token[2]:
            names.append(name)
    return list(dict.fromkeys(names))


def value(operator: Operator, *names: str) -> float | None:
    """The first metric of these names that an operator has; None if it has none of them."""
    metric = next((operator.numbers[name] for name in names if name in operator.numbers), None)
    return None if metric is None else metric.value


def is_row_at_a_time(operator: Operator) -> bool:
    """Whether an operator calls Python functions for each row by itself."""
    if operator.name != "ArrowEvalPython":
        return operator.name == "BatchEvalPython"
    eval_type = _EVAL_TYPE.search(operator.text)
    return eval_type is not None and eval_type[1] == ARROW_BATCHED


def _marked(operator: Operator, *, reads_cache: bool, is_reused: bool = False) -> Operator:
    is_filled = (
        reads_cache and operator.name.startswith(CACHE_SCANS) and not any(below.numbers for below in operator.below())
    )
    is_below = is_reused or is_filled or operator.name.startswith(_REUSED)
    children = []
    for child in operator.children:  # a comprehension would be a frame more for each of 500 levels
        children.append(_marked(child, reads_cache=reads_cache, is_reused=is_below))  # noqa: PERF401
    return replace(operator, children=children, numbers={} if is_reused else operator.numbers, is_reused=is_reused)


def _operator(plan: SqlPlan, numbers: Mapping[int, int], room: list[int]) -> Operator:
    room[0] -= 1
    children = []
    for child in plan.children:
        if room[0] <= 0:
            room[0] = -1
            break
        children.append(_operator(child, numbers, room))
    counted = {metric.name: number for metric in plan.metrics if (number := _number(metric, numbers)) is not None}
    ids = tuple(metric.id for metric in plan.metrics)
    return Operator(plan.name, plan.text, counted, plan.metadata, children, ids)


def _number(metric: SqlMetric, numbers: Mapping[int, int]) -> Number | None:
    """The total of a metric; Spark keeps times in ns or ms, and averages multiplied by ten.

    Source: Spark's `SQLMetrics`, where -1 stands for what was never set.
    """
    value = numbers.get(metric.id)
    if value is None or value < 0:
        return None
    match metric.type:
        case "size":
            return Number(value, "By")
        case "timing":
            return Number(value, "ms")
        case "nsTiming":
            return Number(value / 1e6, "ms")
        case "average":
            return Number(value / 10, "")
    return Number(value, "")

"""SQL executions with the plans that they ran with, and what each operator has counted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app import amounts
from app.eventlog.model import Query
from app.eventlog.operators import Number, Operator, own_plan_of
from app.report.limits import Limits
from app.report.scope import Scope

_FIRST: Final = ("number of output rows", "number of written rows", "number of files read", "data size", "spill size")
MOST_NUMBERS: Final = 12


@dataclass(frozen=True, slots=True)
class Node:
    """An operator: `depth` counts the branchings above it; `numbers` are shown texts by Spark's names."""

    depth: int
    name: str
    text: str
    numbers: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sql:
    """A SQL execution; `nodes` is None where its plan is not listed or cannot be read, `note` says which."""

    anchor: str
    id: int
    description: str
    started: float
    duration: float | None
    status: str
    error: str | None
    jobs: int
    replans: int
    nodes: list[Node] | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Queries:
    """The longest, in the order of their starts."""

    shown: list[Sql]
    total: int


def queries(scope: Scope, limits: Limits) -> Queries:
    """The queries that took longest; failed ones before all others. So far as there is room, with their plans."""
    ranked = sorted(scope.queries, key=lambda query: (query.error is None, -_weight(scope, query)))[: limits.queries]
    room, found = limits.operators, []
    for query in ranked:
        nodes, note = _plan(query, min(room, limits.operators_of_one))
        room -= len(nodes or ())
        found.append(_sql(scope, query, nodes, note))
    return Queries(sorted(found, key=lambda query: (query.started, query.id)), len(scope.queries))


def _weight(scope: Scope, query: Query) -> float:
    return (scope.period.end if query.ended is None else query.ended) - query.started


def _sql(scope: Scope, query: Query, nodes: list[Node] | None, note: str | None) -> Sql:
    status = "failed" if query.error else "done" if query.ended is not None else "not finished"
    return Sql(
        anchor=f"query-{query.id}",
        id=query.id,
        description=scope.named(query.description),
        started=query.started,
        duration=None if query.ended is None else query.ended - query.started,
        status=status,
        error=query.error,
        jobs=len(query.jobs),
        replans=query.plans - 1,
        nodes=nodes,
        note=note,
    )


def _plan(query: Query, room: int) -> tuple[list[Node] | None, str | None]:
    if room <= 0:
        return None, "plan left out: those of longer queries fill the room that a report has"
    try:
        plan = own_plan_of(query)
    except ValueError as error:
        return None, f"the plan cannot be read: {error}"
    nodes: list[Node] = []
    is_cut = plan.is_cut
    for node in _nodes(plan.root, 0, {}):
        if len(nodes) >= room:
            is_cut = True
            break
        nodes.append(node)
    return nodes, "the plan is cut: it has more operators than are listed" if is_cut else None


def _nodes(operator: Operator, depth: int, around: Mapping[str, Number]) -> Iterator[Node]:
    """The operators that do something; what wraps them lends them its time. Only branches are indented."""
    below: Mapping[str, Number] = {}
    if operator.is_wrapper:
        timed = {f"{name} of its stage": number for name, number in operator.numbers.items() if name == "duration"}
        below = {**around, **timed}
    else:
        yield Node(depth, operator.title, operator.text, _numbers({**operator.numbers, **around}))
    deeper = depth + 1 if len(operator.children) > 1 else depth
    for child in operator.children:
        yield from _nodes(child, deeper, below)


def _numbers(numbers: Mapping[str, Number]) -> list[tuple[str, str]]:
    """The telling ones first; zeros last, which are true but say little."""
    ranked = sorted(numbers.items(), key=lambda item: (item[1].value == 0, item[0] not in _FIRST))
    return [(name, _shown(number)) for name, number in ranked[:MOST_NUMBERS]]


def _shown(number: Number) -> str:
    match number.unit:
        case "By":
            return amounts.size(number.value)
        case "ms":
            return amounts.duration(number.value)
    return amounts.count(number.value)

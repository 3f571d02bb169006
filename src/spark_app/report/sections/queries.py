"""SQL executions, their final plans, and the SQL metrics of each operator."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model import work_names
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.operators import Number, Operator, own_plan_of
from spark_app.eventlog.model.plan_names import DATA_SIZE, FILES_READ, OUTPUT_ROWS
from spark_app.report import parts
from spark_app.report.formatting import instant
from spark_app.report.groups import Group, grouped
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope, scheduling
from spark_app.report.values import whole

_FIRST: Final = (OUTPUT_ROWS, "number of written rows", FILES_READ, DATA_SIZE, "spill size")
MAX_METRICS: Final = 12


@dataclass(frozen=True, slots=True)
class PlanNode:
    """An operator of a plan: `depth` counts the branches above it; `metrics` by Spark's names."""

    depth: int
    name: str
    text: str
    metrics: list[tuple[str, Number]]


class Sql(parts.Query, kw_only=True):
    """A SQL execution of the document, with what only a page draws.

    Attributes:
        stack: The lines of the program that ran it, where PySpark's calls are named (`spark_app.spark.call_sites`).
        nodes: None where its plan is not listed or cannot be read; `note` says why.
    """

    group: str | None
    pool: str | None
    stack: str
    replans: int
    nodes: list[PlanNode] | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Queries:
    """The longest SQL executions in the order of their starts; `total` counts all."""

    shown: list[Sql]
    total: int

    @property
    def groups(self) -> list[Group[Sql]]:
        """The same in groups."""
        return grouped(self.shown)


def queries(scope: Scope, limits: Limits) -> Queries:
    """The failed and the longest SQL executions, with plans for as many as the report has room for."""
    room, executions = limits.operators, []
    for query in ranked(scope)[: limits.queries]:
        nodes, note = _plan(query, min(room, limits.operators_of_one))
        room -= len(nodes or ())
        executions.append((query.started, query.id, _sql(scope, query, nodes, note)))
    return Queries([each for *_, each in sorted(executions, key=lambda each: each[:2])], len(scope.queries))


def ranked(scope: Scope) -> list[Query]:
    """All SQL executions: the failed ones first, then the longest."""
    return sorted(scope.queries, key=lambda query: (query.error is None, -_weight(scope, query)))


def of_query(scope: Scope, query: Query, limits: Limits) -> Sql:
    """One SQL execution with its plan."""
    return _sql(scope, query, *_plan(query, limits.operators_of_one))


def _weight(scope: Scope, query: Query) -> float:
    return (scope.period.end if query.ended is None else query.ended) - query.started


def _sql(scope: Scope, query: Query, nodes: list[PlanNode] | None, note: str | None) -> Sql:
    site, _, stack = query.details.partition("\n")
    group, pool = scheduling(scope.app.jobs[number] for number in query.jobs if number in scope.app.jobs)
    return Sql(
        id=query.id,
        name=scope.named(work_names.of_query(scope.app, query)),
        group=group,
        pool=pool,
        stack=stack if work_names.placed(site) else "",
        status="failed" if query.error else "done" if query.ended is not None else "not finished",
        error=query.error,
        started=instant(query.started),
        duration_ms=None if query.ended is None else whole(query.ended - query.started),
        jobs=len(query.jobs),
        replans=query.plans - 1,
        nodes=nodes,
        note=note,
    )


def _plan(query: Query, room: int) -> tuple[list[PlanNode] | None, str | None]:
    if room <= 0:
        return None, "plan omitted: the plans of longer queries use up the size limit of the report"
    try:
        plan = own_plan_of(query)
    except ValueError as error:
        return None, f"cannot read the plan: {error}"
    nodes: list[PlanNode] = []
    is_cut = plan.is_cut
    for node in _nodes(plan.root, 0, {}):
        if len(nodes) >= room:
            is_cut = True
            break
        nodes.append(node)
    return nodes, "plan truncated: it has more operators than are listed" if is_cut else None


def _nodes(operator: Operator, depth: int, around: Mapping[str, Number]) -> Iterator[PlanNode]:
    """The operators in pre-order; code generation wrappers only add their time. Only branches are indented."""
    below: Mapping[str, Number] = {}
    if operator.is_wrapper:
        timed = {f"{name} of its stage": number for name, number in operator.numbers.items() if name == "duration"}
        below = {**around, **timed}
    else:
        yield PlanNode(depth, operator.title, operator.text, _metrics({**operator.numbers, **around}))
    deeper = depth + 1 if len(operator.children) > 1 else depth
    for child in operator.children:
        yield from _nodes(child, deeper, below)


def _metrics(numbers: Mapping[str, Number]) -> list[tuple[str, Number]]:
    """Row and byte counts first, zeros last."""
    ranked = sorted(numbers.items(), key=lambda item: (item[1].value == 0, item[0] not in _FIRST))
    return ranked[:MAX_METRICS]

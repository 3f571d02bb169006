"""The plans of queries without dates, sizes and ids, so that another plan is not mistaken for another day's data."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from app.eventlog import groups, operators
from app.eventlog.application import Application
from app.eventlog.comparison.record import Plan, place_and_flow
from app.eventlog.model import Query, StageAttempt
from app.eventlog.operators import Operator

MAX_SCAN: Final = 200
"""Characters of the description of a scan; what is longer is cut."""
_JOINS: Final = ("Join", "CartesianProduct")
_ARGUMENTS: Final = re.compile(r"\s*\(.*?\)|\d+")


def plans(app: Application) -> dict[str, list[Plan]]:
    """The different plans of the queries that ran jobs, by the place of their stages (see `record.Group`)."""
    runs = {(place_and_flow(groups.group_of(app, stage))[0], query.id): query for stage, query in _queries(app)}
    found: dict[str, dict[str, Plan]] = defaultdict(dict)
    for (place, _), query in runs.items():
        plan = _plan(app, query)
        if plan is not None:
            found[place].setdefault(plan.fingerprint, plan)
    return {place: list(plans.values()) for place, plans in found.items()}


def _queries(app: Application) -> Iterator[tuple[StageAttempt, Query]]:
    for stage in app.stages.values():
        query = app.query_of(app.job_of(stage))
        if query is not None:
            yield stage, query


def _plan(app: Application, query: Query) -> Plan | None:
    try:
        plan = operators.plan_of(query, app.numbers)
    except ValueError:
        return None
    names = [(depth, _name(operator), operator) for depth, operator in _working(plan.root)]
    text = "\n".join(f"{depth} {name} {_filters(operator)}" for depth, name, operator in names)
    return Plan(
        fingerprint=hashlib.sha256(text.encode()).hexdigest()[:16],
        joins=[name for _, name, _ in names if name.endswith(_JOINS)],
        scans=[f"{name} {_filters(operator)}".strip()[:MAX_SCAN] for _, name, operator in names if "Scan" in name],
    )


def _working(operator: Operator, depth: int = 0) -> Iterator[tuple[int, Operator]]:
    """Operators that do work, with their depth among these; reading a shuffle varies with its size, and is left out."""
    is_wrapper = operator.is_wrapper or operator.name.startswith(("AQEShuffleRead", "TableCacheQueryStage"))
    if not is_wrapper:
        yield depth, operator
    for child in operator.children:
        yield from _working(child, depth + (not is_wrapper))


def _name(operator: Operator) -> str:
    """The name of an operator without arguments and numbers: `SortMergeJoin(skew=true)` is a SortMergeJoin."""
    return _ARGUMENTS.sub("", operator.name).strip()


def _filters(operator: Operator) -> str:
    """The columns and comparisons of a scan's pushed filters, without the values, such as dates."""
    told = operator.metadata.get("PushedFilters", "")
    return " ".join(f"{how}({column})" for how, column in re.findall(r"([A-Za-z]+)\(([^(),]+)", told))

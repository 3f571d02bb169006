"""Large plans, which the driver makes while no task runs."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.occupancy import Stretch
from spark_app.formatting import count, quantity, size

_OPERATOR: Final = b'"nodeName"'
_MORE: Final = re.compile(rb"\.\.\. (\d+) more fields")
_MAX_SHOWN: Final = 25
"""How many columns of an operator Spark writes before it only counts them: `spark.sql.debug.maxToStringFields`."""


class Size(NamedTuple):
    """How large a plan is: its operators, the columns of the widest of them, and the bytes that describe it."""

    operators: int
    columns: int
    bytes: int

    def __str__(self) -> str:
        """What is large of it."""
        columns = f", {count(self.columns)} columns" if self.columns else ""
        return f"{quantity(self.operators, 'operator')}{columns}, {size(self.bytes)} of text"


class Planned(NamedTuple):
    """A query with a large plan, with the time without work before it and that until its first job."""

    query: Query
    size: Size
    before: Stretch
    within: Stretch

    @property
    def ms(self) -> int:
        """How long both took."""
        return self.before.length_ms + self.within.length_ms


def usual_ms(each: Planned, limits: Thresholds) -> float:
    """The time that a large plan takes anyway."""
    return limits.first_plan_ms if each.before.kind == "startup" else limits.large_plan_ms


def planned(app: Application, limits: Thresholds) -> Iterator[Planned]:
    """The queries of an application with a large plan before which no task ran for longer than such a plan takes.

    None of streaming applications.
    """
    if not app.is_whole or app.batches:
        return
    works = [(job.submitted, job.completed or app.last) for job in app.jobs.values()]
    works += [(query.started, query.ended or app.last) for query in app.queries.values()]
    works.sort()
    ends = list(accumulate((ended for _, ended in works), max))
    for query in app.queries.values():
        plan = size_of(query)
        if query.root is None and _is_large(plan, limits):
            earlier = bisect_right(works, (query.started, -1))
            last_ended = ends[earlier - 1] if earlier else None
            found = Planned(query, plan, _before(app, query, last_ended), _within(app, query))
            if found.ms > usual_ms(found, limits):
                yield found


def size_of(query: Query) -> Size:
    """How large the plan of a query is."""
    plan = bytes(query.plan)
    more = max((int(number) for number in _MORE.findall(plan)), default=0)
    return Size(plan.count(_OPERATOR), more + _MAX_SHOWN if more else 0, len(plan))


def _is_large(plan: Size, limits: Thresholds) -> bool:
    return (
        plan.operators >= limits.plan_operators
        or plan.columns >= limits.plan_columns
        or plan.bytes >= limits.plan_bytes
    )


def _before(app: Application, query: Query, last_ended: int | None) -> Stretch:
    """The time before a query in which neither a query nor a job ran, since an executor was there.

    `last_ended` is when the last of those ended that had begun before it; None for the first one.
    """
    if last_ended is not None:
        return Stretch("between", min(query.started, last_ended), query.started)
    ready = min((executor.added for executor in app.executors.values()), default=query.started)
    return Stretch("startup", min(query.started, max(ready, app.began or ready)), query.started)


def _within(app: Application, query: Query) -> Stretch:
    """The time from the start of a query to its first job."""
    first = min((app.jobs[job].submitted for job in query.jobs if job in app.jobs), default=query.started)
    return Stretch("planning", query.started, max(query.started, first))

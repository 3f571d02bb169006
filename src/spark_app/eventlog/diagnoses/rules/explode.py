"""Rows that `explode` multiplies, and an aggregate brings together again by columns that they had before."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from spark_app.eventlog.diagnoses import aggregates
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.shuffle_cost import shared_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import Operator, rows_of, value
from spark_app.eventlog.model.plan_names import OUTPUT_ROWS
from spark_app.formatting import count

_GENERATE: Final = "Generate"
_MADE: Final = re.compile(r"\[([^\[\]]*)\]$")
"""The columns that `Generate explode(days#2), [id#1L], false, [day#3]` makes: its last list."""
_ATTRIBUTE: Final = re.compile(r"#(\d+)")


class _Gathered(NamedTuple):
    """Rows that were multiplied and brought together: by `generate`, and by the last of `steps`, all in between."""

    generate: Operator
    steps: list[Operator]
    rows_before: float
    rows: float
    groups: float


@rule(
    explains=("spill", "gc_pressure"),
    explains_in="query",
    limits={
        "explode_ratio": Limit(5.0, "Explode: rows behind it over those before it, at least.", ge=1),
        "explode_saved_ratio": Limit(
            0.6,
            "Explode: what is saved of the time of its operators by computing within the row, at least.",
            ge=0,
            le=1,
        ),
    },
)
def explode(view: QueryView) -> Iterator[Finding]:
    """Rows that `explode` multiplies, and an aggregate brings together again by columns that they had before.

    Evidence: the rows before, behind and after it.
    Why: each copy is made, passed through every operator, often shuffled, and thrown away; what stays is a row for each
        row of before, or fewer.
    Change: compute within the row: `aggregate`, `transform`, `filter` and `array_max` work on an array; of an interval,
        compare its ends (a sum over days is the difference of two running sums) instead of making a row for each day.
        Drop large columns before the `explode`, and join them to the result.
    Threshold: {explode_ratio} times as many rows (project). The rule ignores groups by what `explode` has made, such as
        the words of a text, which need the rows.
        Explained by it: `spill` and `gc_pressure` of the same queries, which come behind it: they are of the copies.
    Cost: the run time of the stages from the `explode` to the aggregate, shared among their operators by the rows that
        pass them, divided by the mean number of running tasks; at most that. What the same takes within the row is
        unknown: at least {explode_saved_ratio} is saved, as in the pairs `explode` of `truth/` (project).
    """
    for found in _gathered(view):
        if found.rows < view.limits.explode_ratio * found.rows_before:
            continue
        share = view.limits.explode_saved_ratio
        cost = view.wall_of(shared_ms(view, found.steps), *found.steps)
        estimate = None if cost is None else cost * (1 + share) / 2
        yield view.finding(
            "explode",
            f"{_function(found.generate)} makes {count(found.rows)} rows of {count(found.rows_before)}, which an "
            f"aggregate brings together to {count(found.groups)} again",
            advice="Compute within the row, without explode: aggregate(), transform(), filter() and array_max() work "
            "on arrays; of an interval, use its ends, such as the difference of two running sums, instead of a row for "
            "each day. Else drop large columns before the explode, and join them to the result.",
            operator=found.generate,
            numbers={"rows_before": found.rows_before, "exploded_rows": found.rows, "groups": found.groups},
            cost_ms=estimate,
        ).within(None if cost is None else (cost * share, cost))


def _gathered(view: QueryView) -> Iterator[_Gathered]:
    """What multiplies rows that an aggregate brings together by columns that they had before."""
    for generate in view.operators:
        rows, below = value(generate, OUTPUT_ROWS), generate.inputs
        before = rows_of(below[0]) if generate.name == _GENERATE and below else None
        if rows is None or not before:
            continue
        steps = _up_to_aggregate(view, generate)
        groups = value(steps[-1], OUTPUT_ROWS) if steps else None
        if groups is not None and groups <= before:
            yield _Gathered(generate, steps, before, rows, groups)


def _up_to_aggregate(view: QueryView, generate: Operator) -> list[Operator]:
    """The operators from one that makes rows up to the aggregate of them; empty where that needs what it has made."""
    steps = aggregates.above(view, generate)
    keys = aggregates.first_keys(steps)
    match = _MADE.search(generate.text)
    of_keys = set(_ATTRIBUTE.findall(keys))
    if not of_keys or match is None or of_keys & set(_ATTRIBUTE.findall(match[1])):
        return []
    return [generate, *aggregates.up_to_groups(steps, keys)]


def _function(generate: Operator) -> str:
    """What makes the rows: `explode`, `posexplode`, `json_tuple`."""
    called = re.match(r"Generate (\w+)\(", generate.text)
    return called[1] if called else generate.name

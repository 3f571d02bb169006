"""The operators that the queries of a place have in one of two runs only, and how a sentence lists them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from spark_app.eventlog.comparison.fingerprints import JOINS
from spark_app.eventlog.comparison.profile import OperatorSum, RunProfile
from spark_app.eventlog.model.operators import PYTHON
from spark_app.eventlog.model.plan_names import EXCHANGE
from spark_app.formatting import count, duration, quantity, size
from spark_app.redaction import excerpt

MAX_NAMED: Final = 6
"""Operators that a list names; the rest is counted."""
MAX_NAME: Final = 100
"""Characters of the name of an operator in a list."""
BROADCAST: Final = "Broadcast"
"""What the names of joins begin with that leave the rows of one side in their tasks."""


class PlanChange(NamedTuple):
    """How the plans of the queries of a place differ; both lists are empty where only order or projections differ."""

    added: list[OperatorSum]
    removed: list[OperatorSum]

    @property
    def has_joins(self) -> bool:
        """Whether a join is another one."""
        return any(_is_join(each) for each in self.added + self.removed)

    @property
    def moves_rows(self) -> bool:
        """Whether rows are distributed over tasks in another way, by another exchange or join."""
        return any(
            each.name.startswith(EXCHANGE) or (_is_join(each) and not each.name.startswith(BROADCAST))
            for each in self.added + self.removed
        )

    @property
    def text(self) -> str:
        """What was added and removed: `added SortMergeJoin (9 rows); removed BroadcastHashJoin (9 rows)`."""
        parts = [("added", self.added), ("removed", self.removed)]
        return "; ".join(f"{verb} {listed(own)}" for verb, own in parts if own) or "same operators in another order"


def plan_changes(before: RunProfile, now: RunProfile) -> dict[str, PlanChange]:
    """The places whose queries have different plans in both runs."""
    return {
        place: PlanChange(
            added=_more(now.operators.get(place, ()), before.operators.get(place, ())),
            removed=_more(before.operators.get(place, ()), now.operators.get(place, ())),
        )
        for place in now.plans
        if place in before.plans and set(before.plans[place]) != set(now.plans[place])
    }


def of_python(operators: Sequence[OperatorSum]) -> list[OperatorSum]:
    """The operators that run Python functions."""
    return [each for each in operators if PYTHON.search(each.name)]


def listed(operators: Sequence[OperatorSum]) -> str:
    """Some operators with their numbers."""
    more = len(operators) - MAX_NAMED
    named = [_operator(each) for each in operators[:MAX_NAMED]]
    return ", ".join([*named, *([f"and {count(more)} more"] if more > 0 else [])])


def _operator(operator: OperatorSum) -> str:
    name = excerpt(operator.name, MAX_NAME)
    numbers = [
        quantity(operator.rows, "row") if operator.rows is not None else "",
        size(operator.bytes) if operator.bytes is not None else "",
        f"{duration(operator.ms)} of task time" if operator.ms is not None else "",
    ]
    known = ", ".join(filter(None, numbers))
    return f"{name} ({known})" if known else name


def _more(many: Sequence[OperatorSum], few: Sequence[OperatorSum]) -> list[OperatorSum]:
    """The operators that the first have more often; joins, exchanges and Python functions first."""
    numbers = {each.name: each.number for each in few}
    more = [each for each in many if each.number > numbers.get(each.name, 0)]
    return sorted(more, key=lambda each: not (_is_join(each) or each.name.startswith(EXCHANGE) or of_python([each])))


def _is_join(operator: OperatorSum) -> bool:
    return operator.name.endswith(JOINS)

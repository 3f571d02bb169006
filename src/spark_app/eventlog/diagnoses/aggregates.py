"""What an aggregate brings together, by the text of its operator."""

import re
from typing import Final

from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.model.operators import Operator

_AGGREGATES: Final = ("HashAggregate", "ObjectHashAggregate", "SortAggregate")
_KEYS: Final = re.compile(r"keys?=\[(.*?)\], functions=")


def above(view: QueryView, operator: Operator) -> list[Operator]:
    """The operators that read from one, directly or not, the nearest first."""
    return [each for each in reversed(view.operators) if any(below is operator for below in each.below())]


def keys_of(operator: Operator) -> str | None:
    """The columns that an aggregate groups by; None of other operators."""
    keys = _KEYS.search(operator.text) if operator.name.startswith(_AGGREGATES) else None
    return None if keys is None else keys[1]


def first_keys(steps: list[Operator]) -> str:
    """The columns that the first aggregate of some operators groups by; empty without one, or of a total."""
    return next((keys for each in steps if (keys := keys_of(each)) is not None), "")


def up_to_groups(steps: list[Operator], keys: str) -> list[Operator]:
    """The first of some operators, up to the last aggregate by these columns: its parts, a shuffle, and their sum."""
    last = max((number for number, each in enumerate(steps) if keys_of(each) == keys), default=-1)
    return steps[: last + 1]

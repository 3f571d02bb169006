"""One test a rule: it looks at all items and reports every violation at once."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def violations(rule: Callable[[Item], Iterable[object]], items: Iterable[Item]) -> list[str]:
    """The reasons why items break a rule, each with its item.

    Args:
        rule: Gives the reasons why an item breaks it. An item that it cannot read breaks it, too.
        items: What the rule is about; they must have readable names.

    Raises:
        AssertionError: There are no items, so that the rule would hold nothing.
    """
    reasons: list[str] = []
    count = 0
    for item in items:
        count += 1
        try:
            reasons += [f"{item}: {reason}" for reason in rule(item)]
        except (LookupError, TypeError, ValueError) as error:
            reasons.append(f"{item}: {error!r}")
    assert count, "the rule has no items"
    return reasons

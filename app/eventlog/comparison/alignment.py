"""Two records side by side: what is the same work, although the program that does it was edited in between."""

import re
from collections import defaultdict
from typing import Final

from msgspec.structs import replace

from app.eventlog.comparison.record import Summary

_LINE: Final = re.compile(r"(\.\w+):\d+$")


def aligned(before: Summary, now: Summary) -> Summary:
    """The earlier record with its places named as those of the later one.

    Calls in one file on other lines are the same as long as they are as many; else those on the same lines are, and of
    the others, in the order of the stages, one is the other.
    """
    ours, theirs = _by_call(_places(now)), _by_call(_places(before))
    names = {place: place for place in _places(before)}
    for call, places in theirs.items():
        names |= _renamed(places, ours[call])
    return replace(
        before,
        groups=[replace(group, place=names[group.place]) for group in before.groups],
        plans={names.get(place, place): plans for place, plans in before.plans.items()},
    )


def _renamed(theirs: list[str], ours: list[str]) -> dict[str, str]:
    if len(theirs) != len(ours) or set(theirs) == set(ours):
        same = set(theirs) & set(ours)
        theirs, ours = ([place for place in places if place not in same] for places in (theirs, ours))
    return dict(zip(theirs, ours, strict=False))


def _places(summary: Summary) -> list[str]:
    """What its stages are for, in order, each once."""
    return list(dict.fromkeys(group.place for group in summary.groups))


def _by_call(places: list[str]) -> dict[str, list[str]]:
    """Places by their call without its line; those that name no line do not count."""
    found: dict[str, list[str]] = defaultdict(list)
    for place in places:
        if _LINE.search(place):
            found[_LINE.sub(r"\1", place)].append(place)
    return found

"""Arithmetic on time intervals in milliseconds: gaps between them, and the interval that has them all."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple


class Interval(NamedTuple):
    """A start and an end that is not before it."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """From start to end."""
        return self.end - self.start


def gaps(busy: Iterable[Interval], within: Interval) -> list[Interval]:
    """The stretches within bounds that no interval covers, in order."""
    uncovered, reached = [], within.start
    for interval in sorted(busy):
        if interval.start > reached:
            uncovered.append(Interval(reached, min(interval.start, within.end)))
        reached = max(reached, interval.end)
        if reached >= within.end:
            break
    if reached < within.end:
        uncovered.append(Interval(reached, within.end))
    return [gap for gap in uncovered if gap.length > 0]


def bounds(*times: Iterable[float | None]) -> Interval | None:
    """From the first to the last of the known times; None if no time is known."""
    known = [time for time in chain(*times) if time is not None]
    return Interval(min(known), max(known)) if known else None

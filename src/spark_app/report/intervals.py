"""Arithmetic on time intervals in milliseconds: gaps between them, and the interval that has them all."""

from collections.abc import Iterable
from itertools import chain, starmap
from typing import NamedTuple

from spark_app.eventlog.model.occupancy import levels, zeros


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
    instants, (covered,) = levels(within, ((*interval, 1) for interval in busy))
    return list(starmap(Interval, zeros(instants, covered)))


def bounds(*times: Iterable[float | None]) -> Interval | None:
    """From the first to the last of the known times; None if no time is known."""
    known = [time for time in chain(*times) if time is not None]
    return Interval(min(known), max(known)) if known else None

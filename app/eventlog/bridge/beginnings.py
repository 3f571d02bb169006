"""Lets each series of metrics begin with 0: what a store first hears of counts as having always been there.

An application that lasts a few seconds is told by one point; Prometheus sees no increase in a series of one point.
"""

from collections.abc import Iterator

from app.eventlog.bridge.histograms import MEASURES
from app.eventlog.bridge.metrics import Aggregate, Group, Numbers

Series = tuple[str, ...]


class Beginnings:
    """Which series were told already."""

    def __init__(self) -> None:
        """None was."""
        self._told: set[Series] = set()

    def told(self, numbers: Aggregate) -> None:
        """All of these were."""
        self._told.update(_series(numbers))

    def of(self, numbers: Aggregate) -> Aggregate:
        """Those that were not told yet, at 0."""
        found = Aggregate()
        for application, *rest in _series(numbers):
            if (application, *rest) not in self._told:
                _begin(found.applications.setdefault(application, Numbers()), *rest)
        return found


def _series(numbers: Aggregate) -> Iterator[Series]:
    """The application, the kind, and what tells the series from others of the kind."""
    for application, each in numbers.applications.items():
        for name, group in each.groups.items():
            yield from ((application, "histogram", name, metric) for metric in group.histograms)
            yield from ((application, "count", name, metric) for metric in group.counts)
        yield from ((application, "of all", *key) for key in each.counts)


def _begin(numbers: Numbers, kind: str, *rest: str) -> None:
    if kind == "of all":
        numbers.counts[rest] = 0
        return
    name, metric = rest
    group = numbers.groups.setdefault(name, Group())
    if kind == "histogram":
        group.histograms[metric] = MEASURES[metric].empty()
    else:
        group.counts[metric] = 0

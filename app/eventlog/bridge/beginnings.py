"""Lets each series of metrics begin with 0: a store takes the first value of a series as one that was always there.

A short application is exported as one point; Prometheus sees no increase in a series of one point.
"""

from collections.abc import Iterator

from app.eventlog.bridge.histograms import MEASURES
from app.eventlog.bridge.metrics import Aggregate, Group, Numbers

Series = tuple[str, ...]


class Beginnings:
    """Remembers which series were sent."""

    def __init__(self) -> None:
        """No series was sent."""
        self._sent: set[Series] = set()

    def sent(self, numbers: Aggregate) -> None:
        """All series of these totals were sent."""
        self._sent.update(_series(numbers))

    def of(self, numbers: Aggregate) -> Aggregate:
        """The series that were not sent yet, at 0."""
        found = Aggregate()
        for application, *rest in _series(numbers):
            if (application, *rest) not in self._sent:
                _begin(found.applications.setdefault(application, Numbers()), *rest)
        return found


def _series(numbers: Aggregate) -> Iterator[Series]:
    """Each series as the application, the kind of metric, and the names that tell it from others of its kind."""
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

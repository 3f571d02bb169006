"""The metrics of event logs: bounded, mergeable, and without ids of applications, stages or tasks.

Series go by the name of the application and what a stage does (`groups`), so that every run of a program adds to the
same series.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from app.eventlog.bridge.histograms import MEASURES, Histogram, Measure
from app.eventlog.findings import Finding
from app.telemetry import spark_names as names
from app.telemetry.names import Metric

MAX_GROUPS: Final = 100
"""Stage groups of one application that have series of their own; the rest is `other`."""
MAX_APPLICATIONS: Final = 500
"""Names of applications in one total; the rest is `other`, since some programs have a date in their name."""
OTHER: Final = "other"


class Group(msgspec.Struct):
    """What the stages of one group did; by the name of the metric."""

    histograms: dict[str, Histogram] = {}
    counts: dict[str, int] = {}

    def histogram(self, measure: Measure) -> Histogram:
        """The histogram of a measure, made when it is first asked for."""
        return self.histograms.setdefault(measure.metric.name, measure.empty())

    def count(self, metric: Metric, more: int) -> None:
        """Adds to a counter; 0 says that the counter is there."""
        self.counts[metric.name] = self.counts.get(metric.name, 0) + more

    def merge(self, other: "Group") -> None:
        """Adds the numbers of another."""
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, MEASURES[name].empty()).merge(histogram)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count


class Numbers(msgspec.Struct):
    """What all applications of one name did.

    Attributes:
        groups: By the name of the group.
        counts: By the name of the metric and the values of its labels.
        levels: What is at work now, by the name of the metric.
    """

    groups: dict[str, Group] = {}
    counts: dict[tuple[str, ...], int] = {}
    levels: dict[str, int] = {}

    def group(self, name: str) -> Group:
        """The group of a name, or `other` when there are too many groups."""
        return self.groups.setdefault(_named(name, self.groups, MAX_GROUPS), Group())

    def count(self, metric: Metric, *labels: str, more: int = 1) -> None:
        """Adds to a counter; 0 says that the counter is there."""
        key = (metric.name, *labels)
        self.counts[key] = self.counts.get(key, 0) + more

    def found(self, findings: Iterable[Finding]) -> None:
        """Counts findings."""
        for finding in findings:
            self.count(names.FINDINGS, finding.rule, finding.severity)

    def merge(self, other: "Numbers") -> None:
        """Adds the numbers of another."""
        for name, group in other.groups.items():
            self.group(name).merge(group)
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        for metric, level in other.levels.items():
            self.levels[metric] = self.levels.get(metric, 0) + level


class Aggregate(msgspec.Struct):
    """What the applications of one or many logs did, by their names; `merged` and `encoded` are for a journal."""

    applications: dict[str, Numbers] = {}

    def application(self, name: str) -> Numbers:
        """The numbers of an application's name, or of `other` when there are too many names."""
        return self.applications.setdefault(_named(name, self.applications, MAX_APPLICATIONS), Numbers())

    def merge(self, other: "Aggregate") -> None:
        """Adds the numbers of another, which is not changed."""
        for name, numbers in other.applications.items():
            self.application(name).merge(numbers)

    def encoded(self) -> bytes:
        """Bytes for `decoded`."""
        return msgspec.msgpack.encode(self)


def merged(aggregates: Iterable[Aggregate]) -> Aggregate:
    """The sum of several, as a new one; their order decides only which groups are `other`."""
    total = Aggregate()
    for aggregate in aggregates:
        total.merge(aggregate)
    return total


def decoded(content: bytes) -> Aggregate:
    """The numbers that `encoded` made bytes of.

    Raises:
        ValueError: Another version wrote them.
    """
    found = msgspec.msgpack.decode(content, type=Aggregate)
    for numbers in found.applications.values():
        for group in numbers.groups.values():
            for name, histogram in group.histograms.items():
                if name not in MEASURES or len(histogram.counts) != len(MEASURES[name].empty().counts):
                    raise ValueError(f"{name} was counted with other bounds")
    return found


def _named(name: str, known: Mapping[str, object], most: int) -> str:
    return name if name in known or len(known.keys() - {OTHER}) < most else OTHER

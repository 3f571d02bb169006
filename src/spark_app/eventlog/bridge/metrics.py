"""The metrics of event logs: bounded, mergeable, and without ids of applications, stages or tasks.

Series go by the name of the application with its labels (`LabelSources.labelled_name`), and what a stage does
(`stage_groups`) or the name of a streaming query, so that every run of a program adds to the same series.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from spark_app.eventlog.bridge.histograms import BATCH_DURATION, MEASURES, Histogram, Measure
from spark_app.eventlog.findings import Finding
from spark_app.vocabulary import spark_names as names
from spark_app.vocabulary.names import Metric

MAX_GROUPS: Final = 100
"""Stage groups of one application that have series of their own; the rest is `other`."""
OTHER: Final = "other"
MAX_QUERIES: Final = 100
"""Names of streaming queries of one application that have series of their own; the rest is `other`."""
Series = tuple[str, ...]


class SeriesGroup(msgspec.Struct):
    """What the stages of one group did; by the name of the metric."""

    histograms: dict[str, Histogram] = {}
    counts: dict[str, int] = {}

    def histogram(self, measure: Measure) -> Histogram:
        """The histogram of a measure, created when it is first asked for."""
        return self.histograms.setdefault(measure.metric.name, measure.empty())

    def count(self, metric: Metric, more: int) -> None:
        """Adds to a counter; 0 says that the counter is there."""
        self.counts[metric.name] = self.counts.get(metric.name, 0) + more

    def merge(self, other: "SeriesGroup") -> None:
        """Adds the numbers of another."""
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, MEASURES[name].empty()).merge(histogram)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count


class QueryStatus(msgspec.Struct, frozen=True):
    """How a streaming query is.

    Attributes:
        reported_at: When Spark last reported something of it, in Unix time: of two, the later one holds.
        known_at: When it was last known to be so.
        state: One of `STREAM_STATES`.
        levels: The current values of gauges in the unit of the metric, by its name and the values of its labels.
    """

    reported_at: float
    known_at: float
    state: str
    levels: dict[Series, float] = {}


class QueryNumbers(msgspec.Struct):
    """What the streaming queries of one name did.

    Attributes:
        durations: Of the batches.
        counts: In the unit of the metric, by its name and the values of its labels beside the name of the query.
        status: Of the query that Spark last reported something of.
    """

    durations: Histogram = msgspec.field(default_factory=BATCH_DURATION.empty)
    counts: dict[Series, float] = {}
    status: QueryStatus | None = None

    def count(self, metric: Metric, *labels: str, more: float = 1) -> None:
        """Adds to a counter; 0 says that the counter is there."""
        key = (metric.name, *labels)
        self.counts[key] = self.counts.get(key, 0) + more

    def merge(self, other: "QueryNumbers") -> None:
        """Adds the numbers of another."""
        self.durations.merge(other.durations)
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.is_now(other.status)

    def is_now(self, status: QueryStatus | None) -> None:
        """Takes a status, unless a later one is known."""
        if status is not None and (self.status is None or self.status.reported_at <= status.reported_at):
            self.status = status


class Numbers(msgspec.Struct):
    """What all applications of one name did.

    Attributes:
        groups: By the name of the group.
        queries: By the name of the streaming query.
        counts: By the name of the metric and the values of its labels.
        levels: The current values of gauges, by the name of the metric.
    """

    groups: dict[str, SeriesGroup] = {}
    counts: dict[tuple[str, ...], int] = {}
    levels: dict[str, int] = {}
    queries: dict[str, QueryNumbers] = {}

    def group(self, name: str) -> SeriesGroup:
        """The group of a name, or `other` when there are too many groups."""
        return self.groups.setdefault(_named(name, self.groups, MAX_GROUPS), SeriesGroup())

    def query(self, name: str) -> QueryNumbers:
        """The streaming query of a name, or `other` when there are too many."""
        return self.queries.setdefault(_named(name, self.queries, MAX_QUERIES), QueryNumbers())

    def count(self, metric: Metric, *labels: str, more: int = 1) -> None:
        """Adds to a counter; 0 says that the counter is there."""
        key = (metric.name, *labels)
        self.counts[key] = self.counts.get(key, 0) + more

    def without_gauges(self) -> "Numbers":
        """Removes what is said of now, in place."""
        self.levels.clear()
        for query in self.queries.values():
            query.status = None
        return self

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
        for name, query in other.queries.items():
            self.query(name).merge(query)


class Aggregate(msgspec.Struct):
    """What the applications of one or many logs did, by their names with labels; `merged` is for a checkpoint."""

    applications: dict[str, Numbers] = {}

    def application(self, name: str) -> Numbers:
        """The numbers of an application's name, created when they are first asked for."""
        return self.applications.setdefault(name, Numbers())

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
    """Decodes the bytes of `encoded`.

    Raises:
        ValueError: Another version of the bridge wrote them.
    """
    aggregate = msgspec.msgpack.decode(content, type=Aggregate)
    for numbers in aggregate.applications.values():
        for group in numbers.groups.values():
            for name, histogram in group.histograms.items():
                if name not in MEASURES or len(histogram.counts) != len(MEASURES[name].empty().counts):
                    raise ValueError(f"the histogram {name} has other bucket bounds")
        for query in numbers.queries.values():
            if len(query.durations.counts) != len(BATCH_DURATION.empty().counts):
                raise ValueError(f"the histogram {BATCH_DURATION.metric.name} has other bucket bounds")
    return aggregate


def _named(name: str, known: Mapping[str, object], most: int) -> str:
    return name if name in known or len(known.keys() - {OTHER}) < most else OTHER


class BasePoints:
    """What each series is at before it grows, for a point that is dated just before the growth.

    Prometheus computes an increase from two values within a range. A series that is new begins with 0; one of an
    application that was not sent for a while is sent once more as it was. Without these points the first growth, or the
    growth since the pause, would be the increase of no range.
    """

    def __init__(self, known: Aggregate) -> None:
        """Begins with the totals at which the last bridge ended; this one has sent nothing."""
        self._known = dict(known.applications)
        self._sent = set[str]()

    def sent(self, numbers: Aggregate, *, kept: Collection[str] = ()) -> None:
        """The series of these totals, and no other, were sent, or may have been: an answer can be missing.

        Args:
            numbers: The totals.
            kept: Further applications whose totals go on where they are; the series of all others begin with 0 again.
        """
        self._known = {name: each for name, each in self._known.items() if name in kept} | numbers.applications
        self._sent = set(numbers.applications)

    def of(self, numbers: Aggregate) -> Aggregate:
        """The applications with a series that needs a base: each of their series as it was, or 0."""
        bases = Aggregate()
        for name, each in numbers.applications.items():
            known = self._known.get(name, Numbers())
            base = _zeros(each)
            if name not in self._sent or base != _zeros(known):
                base.merge(known)
                bases.applications[name] = base.without_gauges()
        return bases


def _zeros(numbers: Numbers) -> Numbers:
    """The same series, each at 0; none of gauges."""
    return Numbers(
        groups={
            name: SeriesGroup(
                {metric: MEASURES[metric].empty() for metric in each.histograms}, dict.fromkeys(each.counts, 0)
            )
            for name, each in numbers.groups.items()
        },
        counts=dict.fromkeys(numbers.counts, 0),
        queries={name: QueryNumbers(counts=dict.fromkeys(each.counts, 0)) for name, each in numbers.queries.items()},
    )

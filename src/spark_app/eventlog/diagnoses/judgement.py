"""Judges what rules find by its cost as a share of the application: one finding for all places of a cause."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from spark_app.eventlog.diagnoses.rule import rule_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding, Place
from spark_app.eventlog.model.application import Application
from spark_app.formatting import quantity

MAX_GROUPS: Final = 200
"""How many causes of an application are tracked: texts of errors and paths have many values."""
SHORTEST_MS: Final = 1000.0
"""No cause with a lower cost is reported, however short the application is: so much differs from run to run."""
SYMPTOM_RATIO: Final = 0.5
"""What explains a symptom costs at least this share of it. Project."""
MAX_PLACES: Final = 5
"""How many places of a cause are named: those with the highest costs."""


def duration_of(app: Application) -> float:
    """The duration that costs are a share of, in milliseconds; without the time in which a stream waits for data."""
    waited = max(0, app.task_free.outside_ms - app.streams.overhead_ms) if app.streams.queries or app.batches else 0
    return app.usage.wall_ms - waited


def _little(app: Application, limits: Thresholds) -> float:
    """The cost below which a finding is an info, in milliseconds: a share of the application, within bounds."""
    return max(limits.cost_ms, min(limits.cost_ratio * duration_of(app), limits.cost_most_ms))


def least_cost(app: Application, limits: Thresholds) -> float:
    """The cost from which on a cause is reported, in milliseconds.

    Without streams, a cause with a large share is reported however short the application is: programs of half a minute
    have causes, too. A stream is made for days, of which its first half minute says little.
    """
    least = _little(app, limits)
    is_stream = app.streams.queries or app.batches
    return least if is_stream else min(least, max(limits.cost_large_ratio * duration_of(app), SHORTEST_MS))


@dataclass(slots=True)
class _Group:
    """The findings of a cause so far; `worst` is the finding of that with the highest cost."""

    worst: Finding
    places: list[Place] = field(default_factory=list)
    count: int = 0
    cost_ms: float | None = None
    low_ms: float = 0.0
    high_ms: float = 0.0
    has_range: bool = False
    sums: dict[str, float] = field(default_factory=dict)
    is_warning: bool = False

    def add(self, finding: Finding) -> None:
        """Adds a place."""
        self.count += 1
        self.is_warning |= finding.severity == "warning"
        if finding.cost_ms is not None:
            self.cost_ms = (self.cost_ms or 0.0) + finding.cost_ms
            self.low_ms += finding.cost_ms if finding.cost_low_ms is None else finding.cost_low_ms
            self.high_ms += finding.cost_ms if finding.cost_high_ms is None else finding.cost_high_ms
            self.has_range |= finding.cost_low_ms is not None
        for name in rule_of(finding.rule).adds:
            if name in finding.numbers:
                self.sums[name] = self.sums.get(name, 0) + finding.numbers[name]
        if (finding.cost_ms or 0) > (self.worst.cost_ms or 0):
            self.worst = finding
        self.places = sorted([*self.places, finding.place], key=lambda place: -(place.cost_ms or 0))[:MAX_PLACES]

    @property
    def costs_ms(self) -> tuple[float | None, float | None, float | None]:
        """The estimated cost, the least and the most; None where they are unknown, or there is no range."""
        return self.cost_ms, *((self.low_ms, self.high_ms) if self.has_range else (None, None))


class FindingGroups:
    """What rules have found in an application, by cause, in bounded memory."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        """Starts with some findings, each of one place and not judged yet."""
        self._groups: dict[tuple[str, str], _Group] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        """Adds a finding of one place; causes beyond `MAX_GROUPS` are left out."""
        key = finding.rule, finding.cause
        if key not in self._groups:
            if len(self._groups) >= MAX_GROUPS:
                return
            self._groups[key] = _Group(finding)
        self._groups[key].add(finding)

    def finding_of(self, finding: Finding, app: Application, limits: Thresholds) -> Finding | None:
        """The finding for all places so far of the cause of a finding; None if it costs too little.

        While an application runs, it is as short as it will never be again: no share of it is large.
        """
        group = self._groups.get((finding.rule, finding.cause))
        return None if group is None else _finding(group, app, limits, _little(app, limits))

    def ranked(self, app: Application, limits: Thresholds) -> list[Finding]:
        """One finding for each cause that costs enough, in the order in which they are shown.

        Together they cost at most the time of the application: two causes may claim the same second, such as a join and
        the wait for the processors that it runs on, and what comes later claims what is left.
        """
        least = least_cost(app, limits)
        found = (_finding(group, app, limits, least) for group in self._groups.values())
        return _within(duration_of(app), ranked(finding for finding in found if finding is not None))


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in the order in which they are shown: a failure of the application, then warnings, then by cost.

    Those about the host come last: they are true of whatever runs there.

    What a finding explains follows it. It comes as early as the most important of both would alone: its own cost may be
    unknown, as that of a cache that nothing uses and that fills the memory.
    """
    ordered = sorted(findings, key=_rank)
    explained: dict[int, list[Finding]] = {}
    first: dict[int, int] = {}
    for number, finding in enumerate(ordered):
        cause = next((place for place, each in enumerate(ordered) if _explains(each, finding)), number)
        first[cause] = min(first.get(cause, number), number)
        if cause != number:
            text = f"{finding.text}; a consequence of {ordered[cause].rule}"
            explained.setdefault(cause, []).append(replace(finding, text=text, because=ordered[cause].rule))
    causes = sorted(first, key=lambda cause: (first[cause], cause))
    return [each for cause in causes for each in (ordered[cause], *explained.get(cause, ()))]


def _within(length_ms: float, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with costs that are at most a length together."""
    left, shared = length_ms, list[Finding]()
    for finding in findings:
        shared.append(_at_most(left, finding, length_ms))
        left -= shared[-1].cost_ms or 0.0
    return shared


def _at_most(ms: float, finding: Finding, length_ms: float) -> Finding:
    if finding.cost_ms is None or finding.cost_ms <= ms:
        return finding
    low = None if finding.cost_low_ms is None else min(finding.cost_low_ms, ms)
    return replace(finding, cost_ms=ms, cost_low_ms=low, cost_ratio=ms / length_ms if length_ms else None)


def _explains(cause: Finding, finding: Finding) -> bool:
    """Whether a finding is a consequence of another: its rule says so, and all its places are among those of that.

    Of a symptom, whatever costs half as much in the batches of the same query is the cause.
    """
    declared = rule_of(cause.rule)
    if rule_of(finding.rule).is_symptom:
        is_same = finding.stream is not None and finding.stream in (cause.stream, cause.batch_of)
        costs = (cause.cost_ms or 0.0) >= SYMPTOM_RATIO * (finding.cost_ms or 0.0)
        return is_same and costs and not declared.is_symptom
    if finding.rule not in declared.explains:
        return False
    if declared.explains_in == "application":
        return True
    known, own = ({getattr(place, declared.explains_in) for place in each.found_in} for each in (cause, finding))
    return None not in own and own <= known


def _rank(finding: Finding) -> tuple[bool, bool, bool, float]:
    return (
        not rule_of(finding.rule).comes_first,
        finding.subject == "host",
        finding.severity != "warning",
        -(finding.cost_ms or 0),
    )


def _finding(group: _Group, app: Application, limits: Thresholds, least_ms: float) -> Finding | None:
    worst, length = group.worst, duration_of(app)
    cost, low, high = (None if ms is None else min(ms, float(length or ms)) for ms in group.costs_ms)
    is_costly = cost is not None and cost >= _little(app, limits)
    severity, declared = worst.severity, rule_of(worst.rule)
    if declared.reports_always:
        severity = "warning" if is_costly or group.is_warning else "info"
    elif cost is None and declared.more_than is not None:
        name, threshold = declared.more_than
        if group.sums[name] <= getattr(limits, threshold):
            return None
    elif cost is not None and cost < least_ms:
        return None
    elif cost is not None and not is_costly:
        severity = "info"
    return replace(
        worst,
        severity=severity,
        text=_text(group),
        numbers=_numbers(group),
        cost_ms=cost,
        cost_low_ms=low,
        cost_high_ms=high,
        cost_ratio=None if cost is None or not length else cost / length,
        places=tuple(group.places),
    )


def _text(group: _Group) -> str:
    """The text of the worst place, with the number and the names of the others."""
    if group.count == 1:
        return group.worst.text
    if group.worst.stream is not None:  # its places are periods of one query
        return f"{group.worst.text}; the same in {quantity(group.count - 1, 'other period')}"
    names = dict.fromkeys(str(place) for place in group.places if place != group.worst.place)
    others = quantity(group.count - 1, "more place")
    return f"{group.worst.text}; with {others} ({', '.join(names)}{', …' if group.count > MAX_PLACES else ''})"


def _numbers(group: _Group) -> dict[str, float]:
    """The numbers of the worst place, with the sums over all places of those that its rule adds."""
    if group.count == 1:
        return dict(group.worst.numbers)
    return {**group.worst.numbers, **group.sums, "places": group.count}

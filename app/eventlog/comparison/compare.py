"""Why an application took another time than before: ranked sentences with numbers, whose shares add up."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from app.amounts import duration
from app.eventlog.comparison import causes
from app.eventlog.comparison.alignment import aligned
from app.eventlog.comparison.attribution import Amount, Kind, amounts
from app.eventlog.comparison.causes import Changed
from app.eventlog.comparison.evidence import seconds
from app.eventlog.comparison.record import Summary
from app.eventlog.diagnoses.words import cut

RUNS_FOR_SPREAD: Final = 3
"""Earlier runs from which their spread tells what is noise."""
SPREAD: Final = {3: 2.6, 4: 1.65, 5: 2.5}
"""What is noise beside so many earlier runs, in distances between the fastest and the slowest of them. One more run of
the same normal distribution is farther from the middle one in a twentieth of a million draws; by the median deviation,
which says little of so few, 30 %, 18 % and 15 % of equal runs would be."""
OUTLIER_FROM: Final = 5
"""Earlier runs of which the one farthest out does not count; of fewer none can be told to be an outlier."""
MOST_RATIO: Final = 0.5
"""A run that takes half as long again is explained, however far apart the earlier ones were. Ours."""
NOISE_RATIO: Final = 0.10
NOISE_MS: Final = 3000
"""What is noise as long as no spread is known: JVMs alone differ that much from start to start. Ours: of four equal
runs of 22 s on two calm cores, differences of two have a standard deviation of 1.4 s, nearly all of it before the first
stage; twice that holds 19 of 20."""
CALM_RATIO: Final = 0.05
CALM_MS: Final = 1000
"""What is noise even if the earlier runs were nearly equal. Ours."""
WORTH_NAMING: Final = 0.05
"""A cause with less than this share of the difference goes to what is unexplained. Ours."""
UNEXPLAINED: Final = "unexplained, or in causes too small to name"
UNFINISHED: Final = {
    "failed": "failed: what it did not get to is missing in its time",
    "incomplete": "has no end in its log: it is still at work, or it was killed",
}
"""What is said of runs that are no fair comparison, by their outcome."""
MAX_ID: Final = 100
"""Characters of a name or an id that are told."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a part of the difference went.

    Attributes:
        kind: Of the kinds of `attribution`.
        ms: Wall-clock milliseconds, negative where it made the run faster.
        text: One sentence with the numbers.
        advice: What to do; None where it made the run faster.
        settings: Changed properties that have a say in it: before and now, None where not set.
    """

    kind: Kind
    ms: float
    text: str
    advice: str | None
    settings: Changed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of an application.

    Attributes:
        application: Its name.
        now, before: Ids of the run and of the earlier one, the median of several.
        runs: How many earlier runs there were.
        now_ms, before_ms: How long they took.
        noise_ms: A smaller difference is none.
        remarks: What else is not the same, so that the times say less.
        causes: The largest first; none where the difference is noise, or nothing is large enough to name.
        unexplained_ms: What of the difference the causes do not explain; 0 where it is noise.
        settings: All that changed: before and now, None where not set.
    """

    application: str
    now: str
    before: str
    runs: int
    now_ms: float
    before_ms: float
    noise_ms: float
    remarks: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    unexplained_ms: float = 0
    settings: Changed = field(default_factory=dict)

    @property
    def difference_ms(self) -> float:
        """How much longer it took; negative where it was faster."""
        return self.now_ms - self.before_ms

    @property
    def is_noise(self) -> bool:
        """Whether the difference is none to speak of."""
        return abs(self.difference_ms) < self.noise_ms

    @property
    def choice(self) -> str:
        """Which of several earlier runs it is compared with; empty where there is one."""
        return {1: "", 2: "the faster of 2 earlier runs"}.get(self.runs, f"the median of {self.runs} earlier runs")

    @property
    def sentences(self) -> list[str]:
        """How long both took, then each cause and what to do, as a report shows them."""
        now, before = cut(self.now, MAX_ID), cut(self.before, MAX_ID)
        runs = ", ".join(filter(None, (self.choice, before)))
        took = f"{now} took {duration(self.now_ms)}, before {duration(self.before_ms)} ({runs})"
        noise = f", which is noise: less than {duration(self.noise_ms)}" if self.is_noise else ""
        first = "; ".join([f"{took}: {seconds(self.difference_ms)}{noise}", *self.remarks])
        told = [f"{seconds(cause.ms)} {cause.text}{_to_do(cause)}" for cause in self.causes]
        return [first] if self.is_noise else [first, *told, f"{seconds(self.unexplained_ms)} {UNEXPLAINED}"]


def compare(before: Summary | Sequence[Summary], now: Summary) -> Comparison:
    """Where the difference of a run to an earlier one, or to the median of several, went.

    Raises:
        ValueError: There is no earlier one.
    """
    earlier = [before] if isinstance(before, Summary) else list(before)
    if not earlier:
        raise ValueError("nothing to compare with")
    one = aligned(sorted(earlier, key=lambda run: run.duration_ms)[(len(earlier) - 1) // 2], now)
    noise = noise_ms([run.duration_ms for run in earlier])
    changed = changed_settings(one, now)
    difference = now.duration_ms - one.duration_ms
    is_noise = abs(difference) < noise
    found = [] if is_noise else _causes(one, now, changed)
    return Comparison(
        application=now.application,
        now=now.id,
        before=one.id,
        runs=len(earlier),
        now_ms=now.duration_ms,
        before_ms=one.duration_ms,
        noise_ms=noise,
        remarks=list(_remarks(one, now)),
        causes=found,
        unexplained_ms=0 if is_noise else difference - sum(cause.ms for cause in found),
        settings=changed,
    )


def noise_ms(durations: Sequence[float]) -> float:
    """How much two runs may differ without a cause, told by the earlier ones."""
    middle, runs = median(durations), len(durations)
    if runs < RUNS_FOR_SPREAD:
        return max(NOISE_RATIO * middle, NOISE_MS)
    usual = sorted(durations, key=lambda one: abs(one - middle))[: runs - (runs >= OUTLIER_FROM)]
    spread = SPREAD[min(runs, max(SPREAD))] * (max(usual) - min(usual))
    return max(min(spread, MOST_RATIO * middle), CALM_RATIO * middle, CALM_MS)


def changed_settings(before: Summary, now: Summary) -> Changed:
    """Properties that differ: before and now, None where not set."""
    names = sorted(before.settings.keys() | now.settings.keys())
    pairs = {name: (before.settings.get(name), now.settings.get(name)) for name in names}
    return {name: values for name, values in pairs.items() if values[0] != values[1]}


def _to_do(cause: Cause) -> str:
    return f". To do: {cause.advice}" if cause.advice else ""


def _remarks(before: Summary, now: Summary) -> Iterator[str]:
    for run in (now, before):
        if run.outcome in UNFINISHED:
            yield f"{cut(run.id, MAX_ID)} {UNFINISHED[run.outcome]}"
    if before.application != now.application:
        yield f"the earlier one is of another application: {cut(before.application, MAX_ID) or 'without a name'}"
    elif before.workload != now.workload:
        yield f"it was asked for {now.workload or 'other work'}, before for {before.workload or 'other work'}"
    versions = now.spark_version, before.spark_version
    if None not in versions and versions[0] != versions[1]:
        yield f"it ran on Spark {versions[0]}, before on {versions[1]}"


def _causes(before: Summary, now: Summary, changed: Changed) -> list[Cause]:
    found: dict[Kind, list[Amount]] = defaultdict(list)
    for amount in amounts(before, now):
        found[amount.kind].append(amount)
    least = WORTH_NAMING * abs(now.duration_ms - before.duration_ms)
    told = [_cause(kind, parts, before, now, changed) for kind, parts in found.items()]
    return sorted((cause for cause in told if abs(cause.ms) >= least), key=lambda cause: -abs(cause.ms))


def _cause(kind: Kind, parts: Sequence[Amount], before: Summary, now: Summary, changed: Changed) -> Cause:
    ms = sum(part.ms for part in parts)
    largest_first = sorted(parts, key=lambda part: -part.ms if ms > 0 else part.ms)
    settings = causes.related(kind, changed)
    text = causes.sentence(kind, largest_first, before, now, settings)
    return Cause(kind, round(ms, 1), text, causes.advice(kind, now) if ms > 0 else None, settings)

"""Explains why a run took more or less time than earlier runs: ranked causes, whose amounts add up."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from msgspec import Struct

from spark_app.eventlog.comparison import causes
from spark_app.eventlog.comparison.attribution import Contribution, Kind, contributions
from spark_app.eventlog.comparison.causes import Setting, seconds
from spark_app.eventlog.comparison.changes import Change, changes
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.document import Count, Difference, Ms, Name
from spark_app.formatting import duration
from spark_app.redaction import excerpt

RUNS_FOR_SPREAD: Final = 3
"""From this number of earlier runs on, their spread determines the noise threshold."""
SPREAD: Final = {3: 2.6, 4: 1.65, 5: 2.5}
"""The noise threshold by the number of earlier runs, as a multiple of the distance between the fastest and the slowest.
In a simulation of a million draws, 5 % of equal, normally distributed runs exceed it. By the median deviation, which is
unreliable for so few runs, 30 %, 18 % and 15 % would."""
OUTLIER_FROM: Final = 5
"""From this number of earlier runs on, the run farthest from the median does not count."""
MAX_RATIO: Final = 0.5
"""A run that takes 50 % longer is explained, however large the spread of the earlier runs. Project."""
NOISE_RATIO: Final = 0.10
NOISE_MS: Final = 3000
"""The noise threshold for fewer runs: the start of the JVM alone varies that much. Project: between four equal runs of
22 s on two idle cores, differences have a standard deviation of 1.4 s, nearly all before the first stage; twice that
covers 19 of 20."""
CALM_RATIO: Final = 0.05
CALM_MS: Final = 1000
"""The least noise threshold, for nearly equal earlier runs. Project."""
WORTH_NAMING: Final = 0.05
"""A cause with a smaller share of the difference counts as unexplained. Project."""
UNEXPLAINED: Final = "unexplained, or in causes below 5 % of the difference"
UNFINISHED: Final = {
    "failed": "failed: its time lacks the work that it did not reach",
    "killed": "was killed: its time lacks the work that it did not reach",
    "running": "is still running: its time lacks the work that is to come",
    "incomplete": "has no end in its log: it is still running, or it was killed",
}
"""Remarks about unfinished runs, by their outcome."""
MAX_ID: Final = 100
"""Characters of a name or an id in a sentence."""


class Cause(Struct, frozen=True):
    """A cause of a part of the difference; negative where it made the run faster."""

    kind: Kind
    ms: Difference
    text: str
    advice: str | None
    settings: list[Setting]


class FunctionChange(Struct, frozen=True):
    """A function whose time by samples of stacks differs beyond the noise of both counts: in itself.

    Of one of the user's (`is_own`), libraries that it calls are included. The ratios are shares of all samples of each
    run.
    """

    function: Name
    is_own: bool
    difference_ms: Difference
    samples: Count
    samples_before: Count
    ratio: float
    ratio_before: float


class Comparison(Struct, frozen=True):
    """Why a run took longer or shorter than the median of `runs` earlier ones.

    Below `noise_ms` a difference is not significant and has no causes. `functions` have grown or shrunk; of
    runs that both have samples of stacks.
    """

    application: Name
    now: Name
    before: Name
    runs: Count
    now_ms: Ms
    before_ms: Ms
    difference_ms: Difference
    difference_ratio: float | None
    noise_ms: Ms
    is_significant: bool
    causes: list[Cause]
    unexplained_ms: Difference
    settings: list[Setting]
    changes: list[Change]
    remarks: list[str]
    functions: list[FunctionChange] = []

    @property
    def choice(self) -> str:
        """Which of several earlier runs is the baseline; empty for a single one."""
        return {1: "", 2: "the faster of 2 earlier runs"}.get(self.runs, f"the median of {self.runs} earlier runs")

    @property
    def sentences(self) -> list[str]:
        """The durations of both runs, then each cause with its advice, for reports."""
        now, before = excerpt(self.now, MAX_ID), excerpt(self.before, MAX_ID)
        runs = ", ".join(filter(None, (self.choice, before)))
        took = f"{now} took {duration(self.now_ms)}, before {duration(self.before_ms)} ({runs})"
        noise = f", no significant difference (noise threshold {duration(self.noise_ms)})"
        first = f"{took}: {seconds(self.difference_ms)}{'' if self.is_significant else noise}"
        explained = [f"{seconds(cause.ms)} {cause.text}{_to_do(cause)}" for cause in self.causes]
        explained += [f"{seconds(self.unexplained_ms)} {UNEXPLAINED}"]
        return ["; ".join([first, *self.remarks]), *(explained if self.is_significant else [])]


def compare(before: RunProfile | Sequence[RunProfile], now: RunProfile) -> Comparison:
    """Compares a run with an earlier one, or with the median of several.

    Raises:
        ValueError: There is no earlier run.
    """
    earlier = [before] if isinstance(before, RunProfile) else list(before)
    if not earlier:
        raise ValueError("there is no earlier run")
    baseline = sorted(earlier, key=lambda run: run.duration_ms)[(len(earlier) - 1) // 2]
    noise = noise_ms([run.duration_ms for run in earlier])
    changed = changed_settings(baseline, now)
    difference = now.duration_ms - baseline.duration_ms
    is_noise = abs(difference) < noise
    explained = [] if is_noise else _causes(baseline, now, changed)
    return Comparison(
        application=now.application,
        now=now.id,
        before=baseline.id,
        runs=len(earlier),
        now_ms=now.duration_ms,
        before_ms=baseline.duration_ms,
        difference_ms=difference,
        difference_ratio=difference / baseline.duration_ms if baseline.duration_ms > 0 else None,
        noise_ms=noise,
        is_significant=not is_noise,
        causes=explained,
        unexplained_ms=0 if is_noise else difference - sum(cause.ms for cause in explained),
        settings=changed,
        changes=changes(baseline, now, changed),
        remarks=list(_remarks(baseline, now)),
    )


def noise_ms(durations: Sequence[float]) -> float:
    """The noise threshold, by the durations of the earlier runs."""
    middle, runs = median(durations), len(durations)
    if runs < RUNS_FOR_SPREAD:
        return max(NOISE_RATIO * middle, NOISE_MS)
    usual = sorted(durations, key=lambda duration: abs(duration - middle))[: runs - (runs >= OUTLIER_FROM)]
    spread = SPREAD[min(runs, max(SPREAD))] * (max(usual) - min(usual))
    return max(min(spread, MAX_RATIO * middle), CALM_RATIO * middle, CALM_MS)


def changed_settings(before: RunProfile, now: RunProfile) -> list[Setting]:
    """The properties that differ."""
    names = sorted(before.settings.keys() | now.settings.keys())
    pairs = (Setting(name, now.settings.get(name), before.settings.get(name)) for name in names)
    return [each for each in pairs if each.now != each.before]


def _to_do(cause: Cause) -> str:
    return f". Next step: {cause.advice}" if cause.advice else ""


def _remarks(before: RunProfile, now: RunProfile) -> Iterator[str]:
    for run in (now, before):
        if run.outcome in UNFINISHED:
            yield f"{excerpt(run.id, MAX_ID)} {UNFINISHED[run.outcome]}"
    if before.application != now.application:
        yield f"the earlier run is of another application: {excerpt(before.application, MAX_ID) or 'without a name'}"
    elif before.workload != now.workload:
        yield f"its workload is {now.workload or 'unknown'}, before it was {before.workload or 'unknown'}"
    versions = now.spark_version, before.spark_version
    if None not in versions and versions[0] != versions[1]:
        yield f"it ran on Spark {versions[0]}, before on {versions[1]}"


def _causes(before: RunProfile, now: RunProfile, changed: Sequence[Setting]) -> list[Cause]:
    amounts: dict[Kind, list[Contribution]] = defaultdict(list)
    for amount in contributions(before, now):
        amounts[amount.kind].append(amount)
    least = WORTH_NAMING * abs(now.duration_ms - before.duration_ms)
    all_causes = [_cause(kind, parts, before, now, changed) for kind, parts in amounts.items()]
    return sorted((cause for cause in all_causes if abs(cause.ms) >= least), key=lambda cause: -abs(cause.ms))


def _cause(
    kind: Kind, parts: Sequence[Contribution], before: RunProfile, now: RunProfile, changed: Sequence[Setting]
) -> Cause:
    ms = sum(part.ms for part in parts)
    largest_first = sorted(parts, key=lambda part: -part.ms if ms > 0 else part.ms)
    settings = causes.related(kind, changed)
    text = causes.sentence(kind, largest_first, before, now, settings)
    to_do = causes.advice(kind, largest_first[0], before, now) if ms > 0 else None
    return Cause(kind, round(ms, 1), text, to_do, settings)

"""Which functions took more or less time in one run than in another, as far as samples of their stacks can tell."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from spark_app.eventlog.comparison.compare import FunctionChange
from spark_app.stack_samples.counts import NO_SAMPLES, Tally
from spark_app.stack_samples.stack_profile import Label, StackProfile

MAX_FUNCTIONS: Final = 30
"""Functions that are named."""
WORTH_NAMING: Final = 0.01
"""A difference of a smaller share of the time is not named: of thousands of functions, some differ by chance. Project.
"""


def changes(now: StackProfile, before: StackProfile) -> list[FunctionChange]:
    """The functions that grew or shrank, the largest difference first."""
    times, earlier = _times(now), _times(before)
    whole, whole_before = now.all.shown.ms or 1.0, before.all.shown.ms or 1.0
    least = WORTH_NAMING * max(whole, whole_before)
    labels = times.keys() | earlier.keys()
    pairs = ((label, times.get(label, NO_SAMPLES), earlier.get(label, NO_SAMPLES)) for label in labels)
    found = [
        (label, one, other)
        for label, one, other in pairs
        if _differ(one, other, now, before) and abs(one.ms - other.ms) >= least
    ]
    ranked = sorted(found, key=lambda each: (-abs(each[1].ms - each[2].ms), each[0]))[:MAX_FUNCTIONS]
    return [
        FunctionChange(
            function=label.function,
            is_own=label.is_own,
            difference_ms=one.ms - other.ms,
            samples=one.samples,
            samples_before=other.samples,
            ratio=one.ms / whole,
            ratio_before=other.ms / whole_before,
        )
        for label, one, other in ranked
    ]


def _times(stacks: StackProfile) -> Mapping[Label, Tally]:
    found = defaultdict[Label, Tally](Tally)
    for node, tally in stacks.all.own.items():
        label = stacks.labels[stacks.nodes[node].label]
        if label.kind != "root" and not label.is_own:
            found[label] += tally
    for function, time in stacks.all.functions.items():
        found[Label(function.language, function.name, function.file, is_own=True)] += time.innermost
    return found


def _differ(one: Tally, other: Tally, now: StackProfile, before: StackProfile) -> bool:
    """Whether the intervals of both times have nothing in common; of no samples, that is up to 3.7 of them."""
    low, high = _interval(one, now)
    other_low, other_high = _interval(other, before)
    return low > other_high or other_low > high


def _interval(tally: Tally, stacks: StackProfile) -> tuple[float, float]:
    low, high = tally.interval_ms()
    return (low, high) if tally.samples else (0.0, 3.7 * max(stacks.intervals_ms, default=0.0))

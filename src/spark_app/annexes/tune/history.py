"""Proposes settings from the last runs of an application, with a forecast of what each proposal rests on.

A proposal rests on one figure of the next run: the highest use of the heap, the largest shuffle, the time of tasks. The
forecast is its 90 % prediction interval from the logarithms of the last runs, by Student's t. Source: W. Meeker, G.
Hahn, L. Escobar, Statistical Intervals, 2nd edition, 4.8. A later run with the setting shows whether it came true.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

from msgspec.structs import astuple

from spark_app.annexes.tune.judgement import quantile
from spark_app.annexes.tune.settings import SMALL_PARTITION
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.diagnoses import settings_advice as advice
from spark_app.eventlog.diagnoses.trials import INSTANCES, MIB, PARTITION_BYTES
from spark_app.eventlog.model import memory_settings

MIN_RUNS: Final = 3
MIN_SPREAD: Final = 0.02
"""Runs that are alike differ by this much at least, as the deviation of a logarithm. Project."""
HEADROOM: Final = 1.25
"""How much more than the upper bound of the forecast is asked for. Project."""
LOWERED: Final = 0.7
"""Only a heap below this share of the one that there is is worth a change: `memory_over_ratio` of the diagnoses."""
FULL: Final = 0.95
"""`memory_under_ratio` of the diagnoses."""
HEAP_STEP: Final = 128 * MIB


def _peak(profile: RunProfile) -> float | None:
    return profile.peak_heap_bytes


def _shuffle(profile: RunProfile) -> float | None:
    return profile.largest_shuffle_bytes


def _task_time(profile: RunProfile) -> float | None:
    return sum(sum(astuple(group.spent)) for group in profile.groups)


FIGURES: Final[Mapping[str, Callable[[RunProfile], float | None]]] = {
    "highest use of the heap": _peak,
    "largest shuffle": _shuffle,
    "time of tasks": _task_time,
}
"""What proposals rest on, of a run: bytes, and milliseconds of tasks."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The bounds of a forecast."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A setting for the next run.

    Attributes:
        setting, value, now: The Spark property, what to set, and what it is; None where it is not set.
        why: What the last runs show, in a sentence.
        figure: What it rests on: a name in `FIGURES`.
        forecast: Of that figure.
    """

    setting: str
    value: str
    now: str | None
    why: str
    figure: str
    forecast: Interval


def proposals(profiles: Sequence[RunProfile]) -> list[Proposal]:
    """What the last runs propose, newest first; nothing from fewer than three."""
    if len(profiles) < MIN_RUNS:
        return []
    return [found for propose in (_heap, _partitions, _executors) for found in propose(profiles)]


def predicted(profiles: Sequence[RunProfile], figure: str) -> Interval | None:
    """The forecast of a figure; None where fewer than three runs have it."""
    known = [value for profile in profiles if (value := FIGURES[figure](profile))]
    if len(known) < MIN_RUNS:
        return None
    logs = [math.log(value) for value in known]
    half = quantile(len(logs) - 1) * max(stdev(logs), MIN_SPREAD) * math.sqrt(1 + 1 / len(logs))
    return Interval(math.exp(fmean(logs) - half), math.exp(fmean(logs) + half))


def _heap(profiles: Sequence[RunProfile]) -> Iterator[Proposal]:
    """A smaller heap where none used much of it, a larger one where it was full."""
    figure, settings = "highest use of the heap", profiles[0].settings
    name, forecast, heap = memory_settings.memory(settings), predicted(profiles, figure), memory_settings.heap(settings)
    if forecast is None or heap is None:
        return
    wanted = math.ceil(forecast.high * HEADROOM / HEAP_STEP) * HEAP_STEP
    spilled = sum(any(group.volume.disk_spilled for group in profile.groups) for profile in profiles)
    if forecast.high > FULL * heap:
        why = f"the heap was used up to {forecast.high / heap:.0%}"
        larger = Interval(forecast.low, forecast.high * HEADROOM)
        yield Proposal(name, _mebibytes(wanted), settings.get(name), why, figure, larger)
    elif wanted <= LOWERED * heap and not spilled:
        why = f"no run used more than {max(map(_known(_peak), profiles)) / heap:.0%} of the heap, and none spilled"
        # A JVM collects garbage later in a larger heap: what it uses becomes less with the heap.
        smaller = Interval(forecast.low * wanted / heap, forecast.high)
        yield Proposal(name, _mebibytes(wanted), settings.get(name), why, figure, smaller)


def _known(figure: Callable[[RunProfile], float | None]) -> Callable[[RunProfile], float]:
    return lambda profile: figure(profile) or 0.0


def _partitions(profiles: Sequence[RunProfile]) -> Iterator[Proposal]:
    """As many partitions as the largest shuffle will need, where they are far too small, or tasks spill."""
    figure, settings = "largest shuffle", profiles[0].settings
    forecast, text = predicted(profiles, figure), settings.get(advice.PARTITIONS, advice.DEFAULTS[advice.PARTITIONS])
    if forecast is None or not text.isdecimal() or not int(text):
        return
    now, cores = int(text), _cores(profiles[0])
    wanted = cores * max(1, math.ceil(forecast.high / PARTITION_BYTES / cores))
    spilled = sum(any(group.volume.disk_spilled for group in profile.groups) for profile in profiles)
    size = forecast.high / now
    if wanted < now and now > 2 * cores and size < SMALL_PARTITION:
        why = f"partitions of the largest shuffle have {size / MIB:.2f} MiB at most"
    elif wanted > now and spilled:
        why = f"{spilled} of {len(profiles)} runs spilled; partitions have up to {size / MIB:.0f} MiB on average"
    else:
        return
    yield Proposal(advice.PARTITIONS, str(wanted), settings.get(advice.PARTITIONS), why, figure, forecast)


def _executors(profiles: Sequence[RunProfile]) -> Iterator[Proposal]:
    """As many executors as tasks kept busy, and one more."""
    figure, settings = "time of tasks", profiles[0].settings
    text, forecast = settings.get(INSTANCES, ""), predicted(profiles, figure)
    core_ms = min((profile.core_ms for profile in profiles), default=0.0)
    if forecast is None or not text.isdecimal() or not core_ms:
        return
    busy = min(1.0, forecast.high / core_ms)
    wanted = math.ceil(int(text) * busy) + 1
    if wanted < int(text):
        why = f"tasks kept {busy:.0%} of the cores busy at most"
        yield Proposal(INSTANCES, str(wanted), text, why, figure, forecast)


def _cores(profile: RunProfile) -> int:
    return max(1, round(profile.core_ms / profile.duration_ms)) if profile.duration_ms else 1


def _mebibytes(size: float) -> str:
    return f"{math.ceil(size / MIB)}m"

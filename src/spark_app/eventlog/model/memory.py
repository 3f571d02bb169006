"""The most memory that an executor used over time, in bounded memory: for each stage, then for several together."""

from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.parse.events import Peaks

MAX_SAMPLES: Final = 64
"""Samples are merged to this many when there are twice as many."""
StageKey = tuple[int, int]
"""A stage and its attempt."""


@dataclass(slots=True)
class MemorySample:
    """The most that an executor was seen to use while it ran tasks of a stage, or of several.

    Attributes:
        started, ended: From the first to the last of the reports, in milliseconds since the epoch.
        stage: The one with the most heap.
        peaks: The most of each kind of memory; 0 where that was not measured, or not used.
    """

    started: int
    ended: int
    stage: StageKey
    peaks: Peaks

    def add(self, other: "MemorySample") -> None:
        """Adds what was seen at another time."""
        self.started, self.ended = min(self.started, other.started), max(self.ended, other.ended)
        if other.peaks.heap > self.peaks.heap:
            self.stage = other.stage
        self.peaks = self.peaks.highest(other.peaks)


class MemoryHistory:
    """What reports say of the memory of an executor.

    Attributes:
        samples: One for each stage, in the order of their first reports; neighbours are merged where there are many.
    """

    def __init__(self) -> None:
        """Nothing was reported."""
        self.samples: list[MemorySample] = []
        self._of_stage: dict[StageKey, MemorySample] = {}

    def add(self, sample: MemorySample) -> None:
        """Takes a report."""
        known = self._of_stage.get(sample.stage)
        if known is not None:
            known.add(sample)
            return
        self._of_stage[sample.stage] = sample
        self.samples.append(sample)
        if len(self.samples) >= 2 * MAX_SAMPLES:
            self._merge()

    def _merge(self) -> None:
        """Merges each sample with the next one; what follows of their stages begins a new one."""
        self.samples.sort(key=lambda sample: sample.started)
        for earlier, later in zip(self.samples[::2], self.samples[1::2], strict=True):
            earlier.add(later)
        self.samples = self.samples[::2]
        self._of_stage.clear()

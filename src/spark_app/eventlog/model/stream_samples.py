"""What the batches of a streaming query have done over its life, in bounded memory: samples of consecutive batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spark_app.vocabulary.spark_progress import Progress, StateOperatorProgress, sum_of_known

MAX_SAMPLES: Final = 256
"""Samples are merged to this many when there are twice as many."""
MAX_HOT: Final = 8
"""How many partitions of a state a sample names: those that had the longest task most often."""


@dataclass(slots=True)
class StateSample:
    """A stateful operator over some batches; None is unknown.

    Attributes:
        rows, memory_bytes, partitions, stores: Of its state after the last of the batches.
        updated, removed, dropped, updates_ms, removals_ms, commit_ms: Sums, as in `StateOperatorProgress`.
    """

    rows: int | None
    memory_bytes: int | None
    partitions: int | None
    stores: int | None
    updated: int | None
    removed: int | None
    dropped: int | None
    updates_ms: int | None
    removals_ms: int | None
    commit_ms: int | None

    @classmethod
    def of(cls, operator: StateOperatorProgress) -> "StateSample":
        """The sample of one batch."""
        return cls(**{name: getattr(operator, name) for name in cls.__slots__})

    def add(self, later: "StateSample") -> None:
        """Adds the batches that follow."""
        self.rows, self.memory_bytes = later.rows, later.memory_bytes
        self.partitions, self.stores = later.partitions, later.stores
        for name in ("updated", "removed", "dropped", "updates_ms", "removals_ms", "commit_ms"):
            setattr(self, name, sum_of_known((getattr(self, name), getattr(later, name))))


@dataclass(slots=True)
class StateSkew:
    """The stages with state of some batches: how much longer the longest task took than the median one.

    Attributes:
        stages: How many stages there were.
        longest_ms, median_ms: Sums over the stages of the longest and of the median task.
        excess_ms: What the longest tasks took more, as far as other cores were idle meanwhile.
        hot: How often each partition had the longest task, for the most frequent ones.
    """

    stages: int = 0
    longest_ms: float = 0
    median_ms: float = 0
    excess_ms: float = 0
    hot: dict[int, int] = field(default_factory=dict)

    def add(self, later: "StateSkew") -> None:
        """Adds the stages that follow."""
        self.stages += later.stages
        self.longest_ms += later.longest_ms
        self.median_ms += later.median_ms
        self.excess_ms += later.excess_ms
        for partition, times in later.hot.items():
            self.hot[partition] = self.hot.get(partition, 0) + times
        if len(self.hot) > MAX_HOT:
            most = sorted(self.hot.items(), key=lambda item: -item[1])[:MAX_HOT]
            self.hot = dict(most)


@dataclass(slots=True)
class StreamSample:
    """Consecutive batches of a query, taken together; sums are exact, None is unknown.

    Attributes:
        started, ended: The trigger of the first and the end of the last batch, in milliseconds since the epoch.
        batches: How many they are.
        empty: How many of them read no rows: Spark runs those to move a watermark or to end a timer.
        duration_ms, longest_ms: The sum and the largest of their durations.
        phases_ms: Sums of the parts of their work, by Spark's names: addBatch, queryPlanning.
        rows, rows_out: Rows that they read and wrote.
        source_rows: Rows that they read of each source, in the order of the progress.
        first_watermark, watermark: The watermark of the first and of the last of them.
        newest: The highest event time that they read.
        lag: Records by topic that were not read after the last of them.
        lag_seconds: Seconds by topic from the newest record that was read to the end of the last of them.
        overruns: By intervals of triggers in milliseconds: how many batches took longer, and how much longer.
        state: The stateful operators, by their position and name: `0 stateStoreSave`.
        skew: The stages with state.
        pause: The longest time between two of them, from the end of one to the trigger of the next.
        violations: Violations of expectations by their rows; None if none was checked.
    """

    started: int
    ended: int
    batches: int
    empty: int
    duration_ms: int
    longest_ms: int
    phases_ms: dict[str, int]
    rows: int | None
    rows_out: int | None
    source_rows: list[int | None]
    first_watermark: int | None
    watermark: int | None
    newest: int | None
    lag: dict[str, int] | None
    lag_seconds: dict[str, float]
    overruns: dict[int, tuple[int, int]]
    state: dict[str, StateSample]
    skew: StateSkew
    pause: tuple[int, int] | None = None
    violations: int | None = None

    @classmethod
    def of(cls, progress: Progress, overruns: Mapping[int, tuple[int, int]], skew: StateSkew | None) -> "StreamSample":
        """The sample of one batch."""
        duration = progress.duration_ms or 0
        return cls(
            started=progress.started,
            ended=progress.ended,
            batches=1,
            empty=int(progress.rows_read == 0),
            duration_ms=duration,
            longest_ms=duration,
            phases_ms=progress.phases_ms,
            rows=progress.rows_read,
            rows_out=progress.rows_written,
            source_rows=[source.rows for source in progress.sources],
            first_watermark=progress.watermark,
            watermark=progress.watermark,
            newest=progress.newest_event,
            lag=progress.lag,
            lag_seconds=progress.lag_seconds,
            overruns=dict(overruns),
            state={f"{number} {state.name}": StateSample.of(state) for number, state in enumerate(progress.state)},
            skew=skew or StateSkew(),
            violations=progress.violations,
        )

    def add(self, later: "StreamSample") -> None:
        """Adds the batches that follow."""
        pauses = filter(None, (self.pause, (self.ended, later.started), later.pause))
        self.pause = max(pauses, key=lambda pause: pause[1] - pause[0])
        self.ended, self.batches, self.empty = later.ended, self.batches + later.batches, self.empty + later.empty
        self.duration_ms += later.duration_ms
        self.longest_ms = max(self.longest_ms, later.longest_ms)
        for name, ms in later.phases_ms.items():
            self.phases_ms[name] = self.phases_ms.get(name, 0) + ms
        self.rows = sum_of_known((self.rows, later.rows))
        self.rows_out = sum_of_known((self.rows_out, later.rows_out))
        self._add_sources(later.source_rows)
        self.violations = sum_of_known((self.violations, later.violations))
        self.watermark, self.lag, self.lag_seconds = later.watermark, later.lag, later.lag_seconds
        if later.newest is not None:
            self.newest = later.newest if self.newest is None else max(self.newest, later.newest)
        for interval, (batches, ms) in later.overruns.items():
            before = self.overruns.get(interval, (0, 0))
            self.overruns[interval] = before[0] + batches, before[1] + ms
        for name, state in later.state.items():
            if name in self.state:
                self.state[name].add(state)
            else:
                self.state[name] = replace(state)
        self.skew.add(later.skew)

    def _add_sources(self, later: list[int | None]) -> None:
        if len(later) == len(self.source_rows):
            self.source_rows = list(map(sum_of_known, zip(self.source_rows, later, strict=True)))
        else:  # the program has changed between two runs
            self.source_rows = list(later)


def together(samples: Sequence[StreamSample]) -> StreamSample | None:
    """One sample of all batches of some samples; None without any."""
    if not samples:
        return None
    whole = _copied(samples[0])
    for sample in samples[1:]:
        whole.add(sample)
    return whole


def _copied(sample: StreamSample) -> StreamSample:
    return replace(
        sample,
        phases_ms=dict(sample.phases_ms),
        overruns=dict(sample.overruns),
        state={name: replace(state) for name, state in sample.state.items()},
        skew=replace(sample.skew, hot=dict(sample.skew.hot)),
    )


class Samples:
    """The samples of a query, in the order of time: of one batch each, and of ever more as their number grows.

    Attributes:
        all: The samples; the last one may still grow.
        batches: How many batches a sample has when it is full.
    """

    def __init__(self, samples: Sequence[StreamSample] = (), *, batches: int = 1) -> None:
        """Starts without batches, or with the samples of earlier ones."""
        self.all = list(samples)
        self.batches = batches

    def add(self, batch: StreamSample) -> None:
        """Adds the sample of the next batch."""
        if self.all and self.all[-1].batches < self.batches:
            self.all[-1].add(batch)
            return
        if len(self.all) >= 2 * MAX_SAMPLES:
            self._merge()
        self.all.append(_copied(batch))

    def _merge(self) -> None:
        """Halves the number of samples."""
        for one, other in zip(self.all[::2], self.all[1::2], strict=True):
            one.add(other)
        self.all, self.batches = self.all[::2], 2 * self.batches

"""The load of the host of a driver over time, as something beside Spark has measured it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal, NamedTuple

Resource = Literal["cpu", "io", "memory"]


class LoadSample(NamedTuple):
    """The load of a host at a moment.

    Attributes:
        time_ms: The moment; milliseconds since the epoch.
        runnable: Threads that ran or waited for a processor.
        stalled_us: For how long some thread waited for a resource, in microseconds since the host started; without the
            resources for which the kernel does not count it.
        python_ms: For how long threads of Python workers of the observed command were on a processor or waited for one
            since it started; only of those on this host below the driver, as in local mode. None if unknown.
    """

    time_ms: int
    runnable: int
    stalled_us: Mapping[Resource, int]
    python_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The samples of a host, in the order of time; `processors` is how many it has."""

    processors: int
    samples: Sequence[LoadSample]

    def runnable(self, started: int, ended: int) -> float | None:
        """The mean number of threads that ran or waited for a processor; None without a sample in this time."""
        taken = [sample.runnable for sample in self.samples if started <= sample.time_ms <= ended]
        return mean(taken) if taken else None

    def pressure(self, resource: Resource, started: int, ended: int) -> float | None:
        """The share of the time in which some thread waited for a resource, from 0 to 1; None if unknown.

        Source: the kernel's pressure stall information, `some` of `/proc/pressure/*`.
        """
        stalled = [
            (sample.time_ms, sample.stalled_us[resource])
            for sample in self.samples
            if started <= sample.time_ms <= ended and resource in sample.stalled_us
        ]
        if len(stalled) < 2 or stalled[-1][0] <= stalled[0][0]:
            return None
        (first, before), (last, after) = stalled[0], stalled[-1]
        return min(1.0, max(0.0, (after - before) / 1000 / (last - first)))

    def python_ms(self, started: int, ended: int) -> int | None:
        """How long Python workers were on a processor or waited for one in this time, at most; None if unknown."""
        before = [sample for sample in self.samples if sample.time_ms <= started]
        after = [sample for sample in self.samples if sample.time_ms >= ended]
        first, last = (before or self.samples[:1])[-1:], (after or self.samples[-1:])[:1]
        if not first or first[0].python_ms is None or last[0].python_ms is None:
            return None
        return last[0].python_ms - first[0].python_ms

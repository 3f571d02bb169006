"""Arithmetic on time intervals in milliseconds: gaps between them, their number over time, their total length."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.executors import Executor


class Interval(NamedTuple):
    """A start and an end that is not before it."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """From start to end."""
        return self.end - self.start


def of_tasks(stages: Iterable[StageAttempt]) -> Iterator[Interval]:
    """When each finished task ran."""
    for stage in stages:
        for launched, duration in zip(stage.launched, stage.durations_ms, strict=True):
            yield Interval(launched, launched + max(0, duration))


def gaps(busy: Iterable[Interval], within: Interval) -> list[Interval]:
    """The stretches within bounds that no interval covers, in order."""
    uncovered, reached = [], within.start
    for interval in sorted(busy):
        if interval.start > reached:
            uncovered.append(Interval(reached, min(interval.start, within.end)))
        reached = max(reached, interval.end)
        if reached >= within.end:
            break
    if reached < within.end:
        uncovered.append(Interval(reached, within.end))
    return [gap for gap in uncovered if gap.length > 0]


def levels(intervals: Iterable[tuple[Interval, int]], within: Interval, *, buckets: int) -> list[float]:
    """The mean sum of the weights of the intervals in each of equally long buckets.

    Each interval adds its weight at its start and subtracts it at its end, so that the work is linear in intervals
    plus buckets, however long the intervals are.
    """
    width = within.length / buckets
    if width <= 0:
        return []
    whole, part = [0.0] * (buckets + 1), [0.0] * (buckets + 1)
    for interval, weight in intervals:
        start, end = max(interval.start, within.start), min(interval.end, within.end)
        if end <= start:
            continue
        for time, sign in ((start, weight), (end, -weight)):
            bucket = min(buckets, int((time - within.start) / width))
            whole[bucket] += sign
            part[bucket] += sign * ((bucket + 1) * width - (time - within.start)) / width
    means, running = [], 0.0
    for bucket in range(buckets):
        means.append(max(0.0, running + part[bucket]))
        running += whole[bucket]
    return means


def of_cores(executors: Iterable[Executor], end: float) -> list[tuple[Interval, int]]:
    """When how many cores were available; an executor that was never removed stays to the end."""
    lifetimes = [(executor, end if executor.removed is None else executor.removed) for executor in executors]
    return [(Interval(executor.added, max(executor.added, gone)), executor.cores) for executor, gone in lifetimes]


def within(intervals: Iterable[tuple[Interval, int]], bounds: Interval) -> float:
    """The weighted length of intervals within bounds: core-milliseconds, if the weights are cores."""
    cut = ((max(each.start, bounds.start), min(each.end, bounds.end), weight) for each, weight in intervals)
    return sum(max(0.0, end - start) * weight for start, end, weight in cut)


def bounds(*times: Iterable[float | None]) -> Interval | None:
    """From the first to the last of the known times; None if no time is known."""
    known = [time for time in chain(*times) if time is not None]
    return Interval(min(known), max(known)) if known else None

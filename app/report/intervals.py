"""Stretches of time: where there is something, where there is nothing, how much at once. All in milliseconds."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from app.eventlog.executor import Executor
from app.eventlog.model import StageAttempt


class Interval(NamedTuple):
    """From a start to an end that is not before it."""

    start: float
    end: float

    @property
    def length(self) -> float:
        """How long it is."""
        return self.end - self.start


def of_tasks(stages: Iterable[StageAttempt]) -> Iterator[Interval]:
    """When each task that ended was at work."""
    for stage in stages:
        for launched, duration in zip(stage.launched, stage.durations_ms, strict=True):
            yield Interval(launched, launched + max(0, duration))


def gaps(busy: Iterable[Interval], within: Interval) -> list[Interval]:
    """The stretches of time within bounds that nothing covers, in order."""
    found, reached = [], within.start
    for interval in sorted(busy):
        if interval.start > reached:
            found.append(Interval(reached, min(interval.start, within.end)))
        reached = max(reached, interval.end)
        if reached >= within.end:
            break
    if reached < within.end:
        found.append(Interval(reached, within.end))
    return [gap for gap in found if gap.length > 0]


def levels(intervals: Iterable[tuple[Interval, int]], within: Interval, *, buckets: int) -> list[float]:
    """How much there is on average in each of equally long parts of a stretch; each interval counts as told.

    An interval adds at its start what it takes away at its end, so that the work is one step per interval and per
    bucket, however long the intervals are.
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
    found, running = [], 0.0
    for bucket in range(buckets):
        found.append(max(0.0, running + part[bucket]))
        running += whole[bucket]
    return found


def of_cores(executors: Iterable[Executor], end: float) -> list[tuple[Interval, int]]:
    """When which cores were there; what was never removed was there to the end."""
    kept = [(executor, end if executor.removed is None else executor.removed) for executor in executors]
    return [(Interval(executor.added, max(executor.added, gone)), executor.cores) for executor, gone in kept]


def within(intervals: Iterable[tuple[Interval, int]], bounds: Interval) -> float:
    """The weighted length of intervals inside bounds: core-milliseconds, if the weights are cores."""
    cut = ((max(each.start, bounds.start), min(each.end, bounds.end), weight) for each, weight in intervals)
    return sum(max(0.0, end - start) * weight for start, end, weight in cut)


def bounds(*times: Iterable[float | None]) -> Interval | None:
    """From the first to the last of the times that are known."""
    known = [time for time in chain(*times) if time is not None]
    return Interval(min(known), max(known)) if known else None

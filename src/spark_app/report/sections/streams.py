"""Streaming queries: rates, phases of their batches, lag, watermark and state over time, and when they were idle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any, Final

from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.stream_samples import StreamSample, together
from spark_app.report import charts, formatting, intervals, parts
from spark_app.report.charts import Chart, Step, Values
from spark_app.report.formatting import Mood, instant
from spark_app.report.intervals import Interval
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope
from spark_app.report.sections.timeline import ticks
from spark_app.report.values import quotient, whole
from spark_app.vocabulary.names import (
    ADD_BATCH,
    COMMIT_OFFSETS,
    GET_BATCH,
    LATEST_OFFSET,
    QUERY_PLANNING,
    WAL_COMMIT,
)
from spark_app.vocabulary.spark_progress import sum_of_known

STOPPED: Final = "stopped"
FAILED: Final = "failed"
MAX_TICKS: Final = 5
MAX_TOPICS: Final = 4
"""Lines of one chart that a reader can still distinguish: the topics that are furthest behind."""
WAITED_INTERVALS: Final = 1.5
"""A query without a batch for longer than this many intervals of its trigger has found nothing to read."""
WAITED_BATCHES: Final = 2.0
"""Where the trigger is unknown, or is faster than data comes: the same, in usual times from one batch to the next."""
PHASES: Final[dict[str, tuple[str, ...]]] = {
    "work": (ADD_BATCH,),
    "planning": (QUERY_PLANNING,),
    "offsets": (LATEST_OFFSET, GET_BATCH, "getEndOffset", "setOffsetRange"),
    "checkpoint": (WAL_COMMIT, COMMIT_OFFSETS, "commitBatch"),
}
"""The work of a batch, by Spark's names for its parts."""
_COLOURS: Final = ("stage", "step", "query", "job", "run")


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """Batches that a chart draws as one value, and when that value holds: not while the query was idle.

    `seconds` is how long their rows came in: for the last batch before a query was idle, as long as usual.
    """

    spans: tuple[Interval, ...]
    seconds: float
    sample: StreamSample


class Stream(parts.Stream, kw_only=True):
    """A streaming query of the document, with what only a page draws; `stops` and `idle` are left and width in percent.

    `total` are all its batches together; None for a query of which the log has none, as where its first one failed.
    """

    anchor: str
    query: StreamQuery
    total: StreamSample | None
    charts: list[Chart]
    idle: list[tuple[float, float]]
    stops: list[tuple[float, float]]

    @property
    def mood(self) -> Mood:
        """How its end looks."""
        return "bad" if self.status == FAILED else "good" if self.status == STOPPED else "unsure"

    @property
    def rate(self) -> float | None:
        """Rows per second of work."""
        return None if self.total is None else quotient(self.total.rows, self.total.duration_ms / 1000)

    @property
    def topics(self) -> list[tuple[str, int | None, float | None]]:
        """Topics whose lag is known, in records or in milliseconds, after the last batch."""
        if self.total is None:
            return []
        records, ms = self.total.lag or {}, _lag_ms(self.total)
        return [(topic, records.get(topic), ms.get(topic)) for topic in sorted(records.keys() | ms.keys())]

    def state(self, name: str) -> int | None:
        """A number of the state after the last batch, or a sum over all batches, over all operators."""
        return None if self.total is None else _state(self.total, name)


@dataclass(frozen=True, slots=True)
class Streams:
    """The queries with the most batches, on one axis of time; `total` counts all, `ticks` are as in the timeline."""

    shown: list[Stream]
    total: int
    axis: Interval
    ticks: list[tuple[float, float]]


def streams(scope: Scope, limits: Limits) -> Streams:
    """The streaming queries of an application, or that of a run, which has its name or had batches for it."""
    queries = list(scope.app.streams.queries.values())
    if scope.run is not None:
        ids, record = {batch.key.query for batch in scope.batches}, scope.run.record
        name = None if record is None else record.pipeline
        queries = [query for query in queries if query.id in ids or (name is not None and query.name == name)]
    axis = _axis(scope, queries)
    most = sorted(queries, key=lambda query: (query.error is None, -_batches(query)))[: limits.streams]
    listed = [query for query in queries if query in most]
    shown = [_stream(scope, query, f"stream-{number}", axis, limits) for number, query in enumerate(listed)]
    return Streams(shown, len(queries), axis, ticks(axis.length, MAX_TICKS))


def _axis(scope: Scope, queries: Sequence[StreamQuery]) -> Interval:
    starts = [query.history.all[0].started if query.history.all else query.started for query in queries]
    return intervals.bounds(starts, [_end(scope, query) for query in queries]) or Interval(0, 0)


def _end(scope: Scope, query: StreamQuery) -> float:
    """When it ended; where the log does not say that, the application did, or its last event was."""
    last = query.history.all[-1].ended if query.history.all else 0
    return max(last, scope.app.last if query.ended is None else query.ended)


def _batches(query: StreamQuery) -> int:
    return sum(sample.batches for sample in query.history.all)


def _stream(scope: Scope, query: StreamQuery, anchor: str, axis: Interval, limits: Limits) -> Stream:
    least, pace = axis.length / limits.points, _pace(query.history.all)
    patience = max(least, WAITED_INTERVALS * (query.trigger.interval_ms or 0), WAITED_BATCHES * pace)
    points = list(_points(_merged(query.history.all, least), patience, pace))
    total, ended = together(query.history.all), _end(scope, query)
    stops = [Interval(*stop) for stop in query.stops]
    if query.ended is not None or scope.app.ended is not None:
        stops.append(Interval(ended, max(ended, axis.end)))
    spans = [span for point in points for span in point.spans]
    unused = intervals.gaps(spans, Interval(spans[0].start, axis.end)) if spans else []
    idle = [rest for gap in unused if gap.length > patience for rest in intervals.gaps(stops, gap)]
    return Stream(
        anchor=anchor,
        query=query,
        total=total,
        name=query.name or query.id,
        status=_status(scope, query),
        error=query.error,
        starts=query.runs,
        trigger_interval_ms=query.trigger.interval_ms,
        busy_ratio=None if total is None else quotient(total.duration_ms, ended - total.started),
        **({"batches": 0} if total is None else _numbers(total)),
        charts=[chart for chart in _charts(query, points, axis) if chart.series],
        idle=_placed(idle, axis),
        stops=_placed(stops, axis),
    )


def _numbers(total: StreamSample) -> dict[str, Any]:
    """What the document says of all batches together."""
    return {
        "batches": total.batches,
        "batches_without_rows": total.empty,
        "rows_read": total.rows,
        "rows_written": total.rows_out,
        "mean_batch_ms": whole(_mean(total)),
        "longest_batch_ms": total.longest_ms,
        "phases_ms": total.phases_ms,
        "watermark": instant(total.watermark),
        "lag_records": None if total.lag is None else sum(total.lag.values()),
        "lag_ms": whole(max(_lag_ms(total).values(), default=None)),
        "state_rows": _state(total, "rows"),
    }


def _status(scope: Scope, query: StreamQuery) -> str:
    if query.ended is not None:
        return FAILED if query.error else STOPPED
    return "no end in the log" if scope.app.ended is None else "ended with the application"


def _merged(samples: Sequence[StreamSample], least: float) -> Iterator[StreamSample]:
    """The samples, together where a chart could not show them apart; a time without batches stays between two."""
    group: list[StreamSample] = []
    for sample in samples:
        if group and (sample.started - group[-1].ended > least or group[-1].ended - group[0].started > least):
            yield from filter(None, [together(group)])
            group = []
        group.append(sample)
    yield from filter(None, [together(group)])


def _pace(samples: Sequence[StreamSample]) -> float:
    """The usual time from the start of a batch to that of the next, in milliseconds."""
    times = [(after.started - before.started) / before.batches for before, after in pairwise(samples)]
    return max(0.0, median(times)) if times else 0.0


def _points(samples: Iterator[StreamSample], patience: float, pace: float) -> Iterator[BatchPoint]:
    """When the value of each sample holds: to the next one, unless the query was idle in between."""
    listed = list(samples)
    following: list[float | None] = [*(sample.started for sample in listed[1:]), None]
    for sample, after in zip(listed, following, strict=False):
        ended = sample.ended if after is None or not 0 <= after - sample.ended <= patience else after
        whole = Interval(sample.started, max(sample.started + 1, ended))
        spans: tuple[Interval, ...] = (whole,)
        if sample.pause is not None and sample.pause[1] - sample.pause[0] > patience:
            spans = Interval(whole.start, sample.pause[0]), Interval(sample.pause[1], whole.end)
        seconds = max(sum(span.length for span in spans), pace * sample.batches) / 1000
        yield BatchPoint(spans, seconds, sample)


def _charts(query: StreamQuery, points: Sequence[BatchPoint], axis: Interval) -> Iterator[Chart]:
    rates = [
        Values("in", "query", _steps(points, lambda point: quotient(point.sample.rows, point.seconds))),
        Values("out", "stage", _steps(points, lambda point: quotient(point.sample.rows_out, point.seconds))),
    ]
    yield charts.lines("Rows per second", formatting.count, rates, axis)
    if any(point.sample.violations for point in points):
        violations = Values("violations", "job", _steps(points, lambda point: point.sample.violations))
        yield charts.areas("Violations of expectations", formatting.count, [violations], axis)
    title = "Time of a batch"
    yield charts.areas(title, formatting.duration, _phases(points), axis, limit=query.trigger.interval_ms)
    yield charts.lines("Lag in records", formatting.count, _by_topic(points, _lag_records), axis)
    yield charts.lines("Lag in time", formatting.duration, _by_topic(points, _lag_ms), axis)
    clock = [
        Values("newest event", "query", _levels(points, lambda point: _behind(point, point.sample.newest))),
        Values("watermark", "step", _levels(points, lambda point: _behind(point, point.sample.watermark))),
    ]
    yield charts.lines("Event time behind the clock", formatting.duration, clock, axis, has_origin=False)
    rows = Values("rows", "job", _levels(points, lambda point: _state(point.sample, "rows")))
    yield charts.areas("Rows in the state", formatting.count, [rows], axis)
    memory = Values("memory", "step", _levels(points, lambda point: _state(point.sample, "memory_bytes")))
    yield charts.areas("Memory of the state", formatting.size, [memory], axis)


def _steps(points: Sequence[BatchPoint], value: Callable[[BatchPoint], float | None]) -> list[Step]:
    """A value of the batches of each point; none where it is unknown."""
    known = [(point, number) for point in points if (number := value(point)) is not None]
    return [Step(*span, number) for point, number in known for span in point.spans]


def _levels(points: Sequence[BatchPoint], value: Callable[[BatchPoint], float | None]) -> list[Step]:
    """A value after the last batch of each point, which says nothing of the time before the query was idle."""
    return _steps([replace(point, spans=point.spans[-1:]) for point in points], value)


def _phases(points: Sequence[BatchPoint]) -> list[Values]:
    """The mean time of a batch by the parts of its work, on top of each other."""
    parts = [
        Values(name, colour, _steps(points, lambda point, phases=phases: _phase(point.sample, phases)))  # type: ignore[misc]
        for (name, phases), colour in zip(PHASES.items(), _COLOURS, strict=False)
    ]
    named = [phase for phases in PHASES.values() for phase in phases]
    rest = _steps(points, lambda point: max(0.0, _mean(point.sample) - _phase(point.sample, named)))
    return charts.stacked([*parts, Values("other", _COLOURS[-1], rest)])


def _phase(sample: StreamSample, phases: Sequence[str]) -> float:
    return sum(sample.phases_ms.get(phase, 0) for phase in phases) / sample.batches


def _mean(sample: StreamSample) -> float:
    return sample.duration_ms / sample.batches


def _by_topic(points: Sequence[BatchPoint], lag: Callable[[StreamSample], Mapping[str, float]]) -> list[Values]:
    """The lag of the topics that are furthest behind."""
    largest: dict[str, float] = {}
    for point in points:
        for topic, value in lag(point.sample).items():
            largest[topic] = max(value, largest.get(topic, 0))
    topics = sorted(largest, key=lambda topic: -largest[topic])[:MAX_TOPICS]
    return [
        Values(topic, colour, _levels(points, lambda point, topic=topic: lag(point.sample).get(topic)))  # type: ignore[misc]
        for topic, colour in zip(topics, _COLOURS, strict=False)
    ]


def _lag_records(sample: StreamSample) -> Mapping[str, float]:
    return sample.lag or {}


def _lag_ms(sample: StreamSample) -> Mapping[str, float]:
    return {topic: 1000 * seconds for topic, seconds in sample.lag_seconds.items()}


def _behind(point: BatchPoint, event_time: int | None) -> float | None:
    return None if event_time is None else max(0.0, point.sample.ended - event_time)


def _state(sample: StreamSample, name: str) -> int | None:
    return sum_of_known(getattr(state, name) for state in sample.state.values())


def _placed(times: Sequence[Interval], axis: Interval) -> list[tuple[float, float]]:
    """Left and width of times on the axis, in percent."""
    cut = [Interval(max(time.start, axis.start), min(time.end, axis.end)) for time in times]
    return [
        (round((time.start - axis.start) / axis.length * 100, 2), round(time.length / axis.length * 100, 2))
        for time in cut
        if time.length > 0 and axis.length > 0
    ]

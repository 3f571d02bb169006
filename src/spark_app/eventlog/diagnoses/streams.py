"""Rules about the batches of a streaming query: their length, their number, and what they leave behind."""

from dataclasses import dataclass, field
from typing import Final

from spark_app.eventlog.diagnoses.stream import StreamView, rising
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.stream_samples import StreamSample
from spark_app.formatting import count, duration
from spark_app.redaction import excerpt
from spark_app.telemetry.names import (
    ADD_BATCH,
    COMMIT_OFFSETS,
    GET_BATCH,
    LATEST_OFFSET,
    QUERY_PLANNING,
    WAL_COMMIT,
)
from spark_app.telemetry.spark_progress import sum_of_known

RISING: Final = 0.75
"""The share of steps upwards from which on a backlog is said to grow: single batches may catch up."""
GROWTH: Final = 2
"""How many times as long, and as large, the last quarter of batches is as the first one, of a slowing query."""
BUSY: Final = 0.9
"""The share of the time in which a batch ran, from which on a query has no time left."""
POLICY: Final = "spark.sql.streaming.multipleWatermarkPolicy"
MAX_SOURCE: Final = 80
_PHASES: Final = {
    LATEST_OFFSET: "asking the sources what is new: list fewer files (a folder for each day, cleanSource, "
    "maxFileAge), or look at what the source waits for",
    GET_BATCH: "getting the batch of the sources: see what they wait for",
    QUERY_PLANNING: "planning: shorten the plan (withColumn and union in loops, hundreds of columns, or of partitions "
    "of a static table), or read larger batches",
    WAL_COMMIT: "writing offsets to the checkpoint: put checkpointLocation on faster storage",
    COMMIT_OFFSETS: "writing commits to the checkpoint: put checkpointLocation on faster storage",
}
"""What the parts of a batch are that are no work, by Spark's names, and what to change."""


@rule(adds=("batches", "late_batches"))
def batch_longer_than_trigger(view: StreamView) -> Finding | None:
    """Batches that take longer than the interval of the trigger.

    Evidence: their number, the interval, the longest batch, the part that takes most.
    Why: the next batch starts late, and results come later than somebody asked for.
    Change: more cores, cheaper work, less at once (`maxOffsetsPerTrigger`, `maxFilesPerTrigger`), or a longer interval.
    Threshold: {late_batches_ratio} of the batches, and of fewer than `stream_batches` as many as of those: two
        (project; Spark logs a warning for each). No event of Spark has the interval. The property
        `spark.sparkApp.streaming.trigger` of their jobs has it: of the queries of this project, and of Python programs
        under `spark-app observe` and in the stack. Any other program can set it, for its session or its thread, before
        it starts a query. Otherwise the rule takes it from the starts of batches: those that follow a wait are at
        multiples of the interval. It needs ten of them; without, as for a query that is always late or has no interval,
        it reports nothing. The first batch of a run does not count.
    Cost: what these batches took longer.
    """
    trigger = view.query.trigger
    interval = trigger.interval_ms
    late, ms = view.total.overruns.get(interval or 0, (0, 0))
    batches = max(view.total.batches, view.limits.stream_batches)
    if interval is None or late < view.limits.late_batches_ratio * batches:
        return None
    part, seen = _largest(view.total), ", as the starts of its batches show" if trigger.is_inferred else ""
    return view.finding(
        "batch_longer_than_trigger",
        f"{count(late)} of {count(view.total.batches)} batches took longer than the {duration(interval)} "
        f"of its trigger{seen}, the longest {duration(view.total.longest_ms)}; {part} takes most",
        advice="Give it more cores, make its work cheaper, or read less at once (maxOffsetsPerTrigger, "
        "maxFilesPerTrigger), so that a batch takes less; or choose a longer trigger(processingTime=...).",
        numbers={"late_batches": late, "trigger_ms": interval, "longest_batch_ms": view.total.longest_ms},
        cost_ms=ms,
    )


def _largest(sample: StreamSample) -> str:
    """The part of the batches that takes most of their time."""
    return max(sample.phases_ms.items(), key=lambda item: item[1], default=(ADD_BATCH, 0))[0]


@rule(adds=("batches", "lag_growth_records"))
def falling_behind(view: StreamView) -> Finding | None:
    """Sources that get more than the query reads.

    Evidence: for Kafka the records that no batch has read yet, and their growth; otherwise batches that follow each
        other without a pause, and get longer and larger.
    Why: the results get older and older; Kafka deletes what waits longer than its retention.
    Change: more cores, cheaper work; a higher `maxOffsetsPerTrigger` or `maxFilesPerTrigger` where batches are short;
        `minPartitions` for more tasks than Kafka has partitions.
    Threshold: the lag grows by {behind_batches} batches (project) and three quarters of its steps go up; otherwise the
        last quarter of batches is twice as long and as large as the first, and batches run for 90 % of the time
        (project). A source of files does not log how many wait.
    Cost: the time for reading the growth of the lag; otherwise what the last quarter of batches took longer.
    """
    if len(view.samples) < view.limits.stream_batches:
        return None
    lags = [sum(sample.lag.values()) for sample in view.samples if sample.lag is not None]
    return _lagging(view, lags) if lags else _slowing(view)


def _lagging(view: StreamView, lags: list[int]) -> Finding | None:
    growth, rows, work_ms = lags[-1] - lags[0], view.mean_rows, view.total.duration_ms
    if not rows or not work_ms or growth < view.limits.behind_batches * rows or rising(lags) < RISING:
        return None
    speed = (view.total.rows or 0) / work_ms * 1000
    return view.finding(
        "falling_behind",
        f"its sources had {count(lags[-1])} records more than it had read, {count(growth)} more than "
        f"{duration(view.wall_ms)} earlier; a batch reads {count(round(rows))}",
        advice=_FASTER,
        numbers={
            "lag_records": lags[-1],
            "lag_growth_records": growth,
            "mean_batch_rows": rows,
            "mean_rows_per_second": speed,
        },
        cost_ms=growth / speed * 1000,
    )


def _slowing(view: StreamView) -> Finding | None:
    first, last = view.quarter(0), view.quarter(3)
    early, late = first.duration_ms / first.batches, last.duration_ms / last.batches
    rows, before = (last.rows or 0) / last.batches, (first.rows or 0) / first.batches
    is_busy = view.total.duration_ms >= BUSY * view.wall_ms
    if not before or not is_busy or late < GROWTH * early or rows < GROWTH * before:
        return None
    return view.finding(
        "falling_behind",
        f"its batches follow each other without a pause, and grew from {duration(early)} and {count(round(before))} "
        f"rows to {duration(late)} and {count(round(rows))} rows: more arrives than it can read",
        advice=_FASTER,
        numbers={"mean_first_batch_ms": early, "mean_last_batch_ms": late, "mean_last_batch_rows": rows},
        cost_ms=last.duration_ms - early * last.batches,
    )


_FASTER: Final = (
    "Give it more cores, make its work cheaper, or read more at once where batches are short (maxOffsetsPerTrigger, "
    "maxFilesPerTrigger, minPartitions for more tasks than Kafka has partitions)."
)


@rule(adds=("batches",))
def stalled_watermark(view: StreamView) -> Finding | None:
    """A watermark that stands still while batches read newer and newer rows.

    Evidence: the batches, how much newer the rows got, and the sources that brought none.
    Why: windows do not close, so that nothing is written in append mode, and state grows.
    Change: find out why the source is idle; `spark.sql.streaming.multipleWatermarkPolicy=max` follows the fastest
        source, and drops what the others bring later; or send heartbeats. Spark's watermark of one source is the
        highest event time in it less the delay, so that an idle partition of a topic does not hold it back, while an
        idle source of several does.
    Threshold: {stalled_batches} batches whose event times get newer by {stalled_event_ms} (project).
    Cost: not estimated.
    """
    stall = _longest_stall(view)
    if stall is None:
        return None
    idle = [number for number, rows in enumerate(stall.source_rows) if rows == 0]
    names = _sources(view, idle)
    policy = view.settings.get(POLICY, "min")
    why = f"; no rows came from {names}" if names else ""
    wanted = f"Find out why nothing comes from {names}. " if names else ""
    return view.finding(
        "stalled_watermark",
        f"its watermark did not move in {count(stall.batches)} batches with rows, while their event time went on by "
        f"{duration(stall.event_ms)}{why}",
        advice=f"{wanted}{POLICY} is {excerpt(policy, 20)}: with min, the slowest source holds the watermark of all; "
        "max takes the highest one, and drops what the others bring later. Or send heartbeats through idle sources.",
        numbers={"stalled_batches": stall.batches, "longest_stall_ms": stall.event_ms},
    )


@dataclass(slots=True)
class _Stall:
    """Batches with newer and newer rows and one watermark; times are those of events."""

    watermark: int | None
    first: int
    newest: int
    batches: int = 0
    source_rows: list[int | None] = field(default_factory=list)

    @property
    def event_ms(self) -> int:
        """How much newer the last rows were than the first ones."""
        return self.newest - self.first

    def add(self, sample: StreamSample, newest: int) -> None:
        """Adds batches with the same watermark."""
        self.batches += sample.batches - sample.empty
        self.newest = max(self.newest, newest)
        if len(self.source_rows) == len(sample.source_rows):
            self.source_rows = list(map(sum_of_known, zip(self.source_rows, sample.source_rows, strict=True)))
        else:
            self.source_rows = list(sample.source_rows)


def _longest_stall(view: StreamView) -> _Stall | None:
    """The longest time in which the watermark stood still; None where it was too short to matter."""
    stalls: list[_Stall] = []
    for sample in view.samples:
        if sample.newest is None:
            continue
        is_same = stalls and stalls[-1].watermark == sample.watermark and sample.first_watermark == sample.watermark
        if not is_same:
            stalls.append(_Stall(sample.watermark, sample.newest, sample.newest))
        stalls[-1].add(sample, sample.newest)
    longest = max(stalls, key=lambda stall: stall.event_ms, default=None)
    if longest is None or longest.event_ms < view.limits.stalled_event_ms:
        return None
    return longest if longest.batches >= view.limits.stalled_batches else None


def _sources(view: StreamView, numbers: list[int]) -> str:
    """The names of sources: `FileStreamSource[file:/landing/orders]`."""
    known = view.query.progress.sources if view.query.progress else []
    return ", ".join(excerpt(known[number].description, MAX_SOURCE) for number in numbers if number < len(known))


@rule(adds=("batches", "overhead_ms"))
def tiny_batches(view: StreamView) -> Finding | None:
    """Few rows in each of many batches.

    Evidence: rows of a batch, time from one to the next, and the time that went into offsets, plans and checkpoints.
    Why: each batch pays for these, and writes files of its own.
    Change: a longer `trigger(processingTime=...)`; a higher limit where one makes batches small; for Kafka
        `minOffsetsPerTrigger` with `maxTriggerDelay`. Results then come later: an info.
    Threshold: fewer than {tiny_batch_rows} rows on average, more often than every {tiny_batch_ms} (project).
    Cost: the time outside of the work, for the batches that would be saved if there were one in that time.
    """
    rows, every_ms = view.mean_rows, view.wall_ms / view.total.batches
    if rows is None or not view.is_tiny:
        return None
    cost = view.overhead_ms * (1 - every_ms / view.limits.tiny_batch_ms)
    interval = view.query.trigger.interval_ms
    known = "" if interval is None else f" (now {duration(interval)})"
    return view.finding(
        "tiny_batches",
        f"its {count(view.total.batches)} batches read {count(round(rows))} rows each, one every {duration(every_ms)}; "
        f"{duration(view.overhead_ms)} of {duration(view.total.duration_ms)} went into planning and the checkpoint",
        advice=f"Let a batch take more rows: a longer trigger(processingTime=...){known}, a higher "
        "maxOffsetsPerTrigger or maxFilesPerTrigger where they limit it, for Kafka minOffsetsPerTrigger with "
        "maxTriggerDelay. Results come later.",
        numbers={"mean_batch_rows": rows, "mean_interval_ms": every_ms, "overhead_ms": view.overhead_ms},
        cost_ms=cost,
        severity="info",
    )


@rule(adds=("batches", "work_ms", "overhead_ms"))
def batch_overhead(view: StreamView) -> Finding | None:
    """Batches that take longer to prepare and to note than to run.

    Evidence: both times, and the largest part by Spark's name (`latestOffset`, `getBatch`, `queryPlanning`,
        `walCommit`, `commitOffsets`).
    Why: the cluster waits for the driver.
    Change: by the part: fewer files to list or a faster source, a shorter plan, faster storage for
        `checkpointLocation`.
    Threshold: more than {overhead_ratio} times the work (`addBatch`), for batches that `tiny_batches` does not judge
        (project).
    Cost: the difference.
    """
    excess = view.overhead_ms - view.limits.overhead_ratio * view.work_ms
    if excess <= 0 or view.is_tiny:
        return None
    others = {name: ms for name, ms in view.total.phases_ms.items() if name != ADD_BATCH}
    part, ms = max(others.items(), key=lambda item: item[1])
    return view.finding(
        "batch_overhead",
        f"its batches worked for {duration(view.work_ms)}, and took {duration(view.overhead_ms)} more to plan and to "
        f"note; {part} alone took {duration(ms)}",
        advice=f"{part} is {_PHASES.get(part, 'a part of the batch outside of its work')}.",
        numbers={"work_ms": view.work_ms, "overhead_ms": view.overhead_ms, "largest_part_ms": ms},
        cost_ms=excess,
    )

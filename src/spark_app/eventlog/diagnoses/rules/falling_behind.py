"""Sources that get more than the query reads."""

from typing import Final

from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView, rising
from spark_app.eventlog.findings import Finding
from spark_app.formatting import count, duration

RISING: Final = 0.75
"""The share of steps upwards from which on a backlog is said to grow: single batches may catch up."""
GROWTH: Final = 2
"""How many times as long, and as large, the last quarter of batches is as the first one, of a slowing query."""
BUSY: Final = 0.9
"""The share of the time in which a batch ran, from which on a query has no time left."""


@rule(
    adds=("batches", "lag_growth_records"),
    is_symptom=True,
    limits={"behind_batches": Limit(3.0, "Falling behind: growth of the lag, in batches, at least.", gt=0)},
    alert=Alert(
        "SparkStreamBehind",
        "In the last hour of {application} a streaming query was slower than its trigger or its sources.",
    ),
)
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

"""Few rows in each of many batches."""

from spark_app.eventlog.diagnoses import limits
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import count, duration


@rule(
    adds=("batches", "overhead_ms"),
    limits={"tiny_batch_rows": limits.TINY_BATCH_ROWS, "tiny_batch_ms": limits.TINY_BATCH_MS},
)
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

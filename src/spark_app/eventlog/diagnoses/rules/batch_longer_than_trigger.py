"""Batches that take longer than the interval of the trigger."""

from typing import Final

from spark_app.eventlog.diagnoses import limits
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.stream_samples import StreamSample
from spark_app.formatting import count, duration
from spark_app.vocabulary.names import ADD_BATCH

COMPUTING_RATIO: Final = 0.5
"""The share of the run time of tasks in which they computed or waited for a processor, where the host is the cause."""


@rule(
    adds=("batches", "late_batches"),
    limits={
        "late_batches_ratio": Limit(0.2, "Batch longer than its trigger: share of such batches, at least.", gt=0, le=1),
        "cpu_unmeasured_ratio": limits.CPU_UNMEASURED_RATIO,
    },
    cause="late_batches",
    is_symptom=True,
    alert=Alert("SparkStreamBehind"),
    judges_few_batches=True,
)
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
        it reports nothing. The first batch of a run does not count. An info where the host explains it: its processors
        were so busy (`cpu_unmeasured_ratio`, as of `cpu_starvation`) that a batch takes less than the interval where it
        has them alone, and tasks computed, or waited for a processor, for most of their run time.
    Cost: what these batches took longer.
    """
    trigger = view.query.trigger
    interval = trigger.interval_ms
    late, ms = view.total.overruns.get(interval or 0, (0, 0))
    batches = max(view.total.batches, view.limits.stream_batches)
    if interval is None or late < view.limits.late_batches_ratio * batches:
        return None
    part, seen = _largest(view.total), ", as the starts of its batches show" if trigger.is_inferred else ""
    is_of_host = _is_of_host(view, interval)
    busy = f"; the host made computation {count(view.slowdown)} times as long" if is_of_host else ""
    return view.finding(
        "batch_longer_than_trigger",
        f"{count(late)} of {count(view.total.batches)} batches took longer than the {duration(interval)} "
        f"of its trigger{seen}, the longest {duration(view.total.longest_ms)}; {part} takes most{busy}",
        advice="Give it more cores, make its work cheaper, or read less at once (maxOffsetsPerTrigger, "
        "maxFilesPerTrigger), so that a batch takes less; or choose a longer trigger(processingTime=...).",
        numbers={"late_batches": late, "trigger_ms": interval, "longest_batch_ms": view.total.longest_ms},
        cost_ms=ms,
        severity="info" if is_of_host else "warning",
    )


def _is_of_host(view: StreamView, interval: int) -> bool:
    """Whether its batches are in time on a host that is not busy, on average: most of the time, tasks compute."""
    is_busy = view.slowdown * view.limits.cpu_unmeasured_ratio >= 1
    computed_ms = view.app.cpu_ns / 1e6 * view.slowdown
    is_computing = computed_ms > 0 and computed_ms >= COMPUTING_RATIO * view.app.run_ms
    return is_busy and is_computing and view.total.duration_ms / view.total.batches / view.slowdown <= interval


def _largest(sample: StreamSample) -> str:
    """The part of the batches that takes most of their time."""
    return max(sample.phases_ms.items(), key=lambda item: item[1], default=(ADD_BATCH, 0))[0]

"""In the stages with state, one task takes far longer than the others, batch after batch."""

from spark_app.eventlog.diagnoses import limits
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import duration, quantity, share


@rule(
    subject="data",
    adds=("batches", "state_stages"),
    limits={"skew_ratio": limits.SKEW_RATIO},
)
def skewed_state(view: StreamView) -> Finding | None:
    """In the stages with state, one task takes far longer than the others, batch after batch.

    Evidence: the longest and the median task, and the partition that is the longest most often.
    Why: the batch waits for it.
    Change: a salt in the key, and a second aggregate; or leave such keys out. Adaptive execution does not split
        partitions of state. `partition_skew` does not judge these stages.
    Threshold: `skew_ratio`, as for `partition_skew`, for the sums over at least `stream_batches` stages.
    Cost: the longest task less the median one of each stage, at most its idle time.
    """
    skew, limits = view.total.skew, view.limits
    if skew.stages < limits.stream_batches or skew.longest_ms <= limits.skew_ratio * skew.median_ms:
        return None
    partition, times = max(skew.hot.items(), key=lambda item: item[1])
    longest, median = skew.longest_ms / skew.stages, skew.median_ms / skew.stages
    return view.finding(
        "skewed_state",
        f"in {quantity(skew.stages, 'stage')} with state the longest task took {duration(longest)} on average, the "
        f"median one {duration(median)}; partition {partition} was the longest in {share(times / skew.stages)} of them",
        advice="One key, or a few, have most of the rows: add another column to the key (a salt, then combine the "
        "results), or filter such keys out before. Adaptive execution does not split partitions of state, and more of "
        "them do not divide a key.",
        numbers={"mean_longest_task_ms": longest, "mean_median_task_ms": median, "state_stages": skew.stages},
        cost_ms=skew.excess_ms,
    )

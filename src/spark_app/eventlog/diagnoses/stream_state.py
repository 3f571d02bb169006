"""Rules about the state of a streaming query: its growth, and its partitions."""

from itertools import pairwise
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding, rule
from spark_app.eventlog.model.stream_samples import StateSample
from spark_app.formatting import count, duration, quantity, share
from spark_app.redaction import excerpt

STEADY: Final = 0.5
"""The growth of the second half of the batches over that of the first, from which on it does not come to an end."""
PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ROCKSDB: Final = "RocksDBStateStoreProvider"
_PACKAGE: Final = "org.apache.spark.sql.execution.streaming.state."
_REMEDIES: Final = {
    "dedupe": "Call withWatermark and then dropDuplicatesWithinWatermark, or add the column of the watermark to the "
    "columns of dropDuplicates",
    "stateStoreSave": "Call withWatermark, and group by a window of its column too, so that old groups end",
    "symmetricHashJoin": "Call withWatermark on both sides, and join on a range of their event times too",
}
"""What lets Spark remove state, by the operator that holds it."""
_TIMER: Final = "Remove what is over: a time to live of the state, a timer or a timeout that clears it"


@rule(adds=("batches", "state_growth_rows"))
def growing_state(view: StreamView) -> Finding | None:
    """The state of an operator gains rows and loses none.

    Evidence: rows, growth, bytes in memory.
    Why: memory or disk runs out, and each batch and restart takes longer.
    Change: for `dropDuplicates` a watermark and its column, or `dropDuplicatesWithinWatermark`; for aggregates a
        watermark and a window; for joins watermarks and a range of time; for own state a timer or a time to live.
        RocksDB (`spark.sql.streaming.stateStore.providerClass`) keeps state out of the heap.
    Threshold: {state_growth_rows} rows in {state_batches} batches, and the second half grows at least half as much as
        the first (project): state with a limited number of keys stops to grow. With a watermark the rule waits until it
        has passed the first rows.
    Cost: not estimated.
    """
    growing = [finding for name in view.total.state if (finding := _growing(view, name)) is not None]
    return max(growing, key=lambda finding: finding.numbers["state_rows"], default=None)


def _growing(view: StreamView, name: str) -> Finding | None:
    states = [sample.state[name] for sample in view.samples if name in sample.state]
    rows = [state.rows for state in states if state.rows is not None]
    if view.total.batches < view.limits.state_batches or len(rows) < view.limits.stream_batches:
        return None
    growth, middle = rows[-1] - rows[0], rows[len(rows) // 2]
    is_steady = all(other >= one for one, other in pairwise(rows)) and rows[-1] - middle >= STEADY * (middle - rows[0])
    if growth < view.limits.state_growth_rows or not is_steady or view.total.state[name].removed != 0:
        return None
    first, watermark = view.samples[0].newest, view.total.watermark
    if watermark is not None and (first is None or watermark <= first):
        return None
    return _growth(view, name.partition(" ")[2], states, growth, has_watermark=watermark is not None)


def _growth(view: StreamView, operator: str, states: list[StateSample], growth: int, *, has_watermark: bool) -> Finding:
    why = "though the watermark has passed the first of them" if has_watermark else "since it has no watermark"
    is_in_heap = not view.settings.get(PROVIDER, "").endswith(_ROCKSDB)
    remedy = f" {PROVIDER}={_PACKAGE}{_ROCKSDB} keeps it on disk instead of in the heap." if is_in_heap else ""
    rows, memory = states[-1].rows or 0, states[-1].memory_bytes
    return view.finding(
        "growing_state",
        f"the state of {excerpt(operator)} grew by {count(growth)} rows to {count(rows)} in "
        f"{count(view.total.batches)} batches, and lost none, {why}",
        advice=f"{_REMEDIES.get(operator, _TIMER)}.{remedy}",
        numbers={"state_rows": rows, "state_growth_rows": growth}
        | ({} if memory is None else {"state_memory_bytes": memory}),
    )


@rule(subject="data", adds=("batches", "state_stages"))
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


@rule(adds=("batches", "commit_task_ms"))
def many_state_partitions(view: StreamView) -> Finding | None:
    """State in many more partitions than cores, with few rows in each.

    Evidence: partitions, cores, updated rows of a batch, time of commits.
    Why: each partition is opened, committed and uploaded in each batch, and costs memory.
    Change: a lower `spark.sql.shuffle.partitions` (200 by default), before the query first starts: the checkpoint fixes
        it, so that a change needs a new one. With RocksDB,
        `spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled` makes a commit cheaper. `tiny_tasks`
        does not judge these stages.
    Threshold: more than {state_partitions_ratio} for each core, with fewer than {state_partition_rows} updated rows of
        each in a batch (project).
    Cost: the time of the median task of each stage with state, which has few rows and so is the time to open and commit
        a partition, for the partitions beyond one for each core, divided by the cores. Its least is the time of tasks
        in commits alone.
    """
    states = [state for state in view.total.state.values() if state.partitions]
    slots = view.app.slots
    if not states or not slots:
        return None
    partitions = max(state.partitions or 0 for state in states)
    updated = sum(state.updated or 0 for state in states) / view.total.batches
    is_many = partitions > view.limits.state_partitions_ratio * slots
    if not is_many or updated / partitions >= view.limits.state_partition_rows:
        return None
    commit_ms = sum(state.commit_ms or 0 for state in states)
    committing = commit_ms / slots * (1 - slots / partitions)
    opening = view.total.skew.median_ms * (partitions / slots - 1)
    return view.finding(
        "many_state_partitions",
        f"its state has {count(partitions)} partitions on {count(slots)} slots, and a batch updates {count(updated)} "
        f"rows in all of them; its tasks took {duration(commit_ms)} to commit them",
        advice=f"Lower {settings_advice.now(view.settings, settings_advice.PARTITIONS)}. The number of partitions is "
        f"fixed when a query first starts, so that it needs a new checkpoint.{_changelog(view)}",
        numbers={
            "state_partitions": partitions,
            "slots": slots,
            "mean_updated_rows": updated,
            "commit_task_ms": commit_ms,
        },
        cost_ms=max(committing, opening),
    ).within((committing, max(committing, opening)))


def _changelog(view: StreamView) -> str:
    """The setting that makes commits cheaper; empty where it is on, or there is no RocksDB."""
    is_on = view.settings.get(CHANGELOG, "").strip().lower() == "true"
    if is_on or not view.settings.get(PROVIDER, "").endswith(_ROCKSDB):
        return ""
    return f" {CHANGELOG}=true commits changes instead of whole files."

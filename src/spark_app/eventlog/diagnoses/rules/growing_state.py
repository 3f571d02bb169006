"""The state of an operator gains rows and loses none."""

from itertools import pairwise
from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.stream_samples import StateSample
from spark_app.formatting import count
from spark_app.redaction import excerpt

STEADY: Final = 0.5
"""The growth of the second half of the batches over that of the first, from which on it does not come to an end."""
_PACKAGE: Final = "org.apache.spark.sql.execution.streaming.state."
_REMEDIES: Final = {
    "dedupe": "Call withWatermark and then dropDuplicatesWithinWatermark, or add the column of the watermark to the "
    "columns of dropDuplicates",
    "stateStoreSave": "Call withWatermark, and group by a window of its column too, so that old groups end",
    "symmetricHashJoin": "Call withWatermark on both sides, and join on a range of their event times too",
}
"""What lets Spark remove state, by the operator that holds it."""
_TIMER: Final = "Remove what is over: a time to live of the state, a timer or a timeout that clears it"


@rule(
    adds=("batches", "state_growth_rows"),
    limits={
        "state_batches": Limit(20, "Growing state: batches, at least.", ge=4),
        "state_growth_rows": Limit(100_000, "Growing state: rows gained, at least.", ge=1),
    },
    alert=Alert("SparkStreamStateGrowing"),
)
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
    is_in_heap = not view.settings.get(settings_advice.STATE_PROVIDER, "").endswith(settings_advice.ROCKSDB)
    setting = f"{settings_advice.STATE_PROVIDER}={_PACKAGE}{settings_advice.ROCKSDB}"
    remedy = f" {setting} keeps it on disk instead of in the heap." if is_in_heap else ""
    rows, memory = states[-1].rows or 0, states[-1].memory_bytes
    return view.finding(
        "growing_state",
        f"the state of {excerpt(operator)} grew by {count(growth)} rows to {count(rows)} in "
        f"{count(view.total.batches)} batches, and lost none, {why}",
        advice=f"{_REMEDIES.get(operator, _TIMER)}.{remedy}",
        numbers={"state_rows": rows, "state_growth_rows": growth}
        | ({} if memory is None else {"state_memory_bytes": memory}),
    )

"""How evenly the tasks of a stage with streaming state are loaded: each reads and writes one partition of the state."""

from statistics import median
from typing import Final

from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.stream_samples import StateSkew

_STATE: Final = "StateStore"
"""How the names of RDDs begin that write state: `StateStoreRDD`, `StateStoreAwareZipPartitionsRDD` of joins."""


def has_state(stage: StageAttempt) -> bool:
    """Whether the stage reads and writes the state of a streaming query."""
    return any(rdd.name.startswith(_STATE) for rdd in stage.info.rdds)


def skew_of(stage: StageAttempt) -> StateSkew | None:
    """The skew of a stage that has ended; None without state, or where its tasks cannot be compared."""
    if not has_state(stage) or not stage.slowest or len(stage.durations_ms) < 2:
        return None
    longest, middle, usage = stage.slowest[0].info, median(stage.durations_ms), stage.usage
    excess = max(0.0, longest.duration_ms - middle)
    if usage is not None and usage.unused_ms is not None:
        excess = min(excess, usage.unused_ms)
    return StateSkew(1, longest.duration_ms, middle, excess, {longest.index: 1})

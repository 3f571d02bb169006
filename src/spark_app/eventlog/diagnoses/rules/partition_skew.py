"""One task takes far longer than the others."""

from typing import Final

from spark_app.eventlog.diagnoses import limits, settings_advice, trials
from spark_app.eventlog.diagnoses.rule import Alert, Limit, rule
from spark_app.eventlog.diagnoses.stage import MAX_PLACE, StageView, duration_ms
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.entities import totals_of
from spark_app.eventlog.model.stream_skew import has_state
from spark_app.eventlog.model.task_numbers import Totals
from spark_app.eventlog.parse.events import TaskEnd
from spark_app.formatting import count, duration, size
from spark_app.redaction import excerpt


@rule(
    subject="data",
    explains=("gc_pressure", "spill", "huge_partitions"),
    limits={
        "skew_longest_ms": Limit(2000.0, "Partition skew: the longest task takes at least this.", ge=0),
        "skew_ratio": limits.SKEW_RATIO,
        "skew_data_ratio": Limit(
            2.0,
            "Partition skew: data of that task over the mean of the others; above this, data and not the host is the "
            "cause.",
            ge=1,
        ),
    },
    cause="skew",
    tries=(
        trials.ADAPTIVE,
        trials.SPLIT_SKEWED,
        trials.SMALLER_SKEWED,
    ),
    alert=Alert(
        "SparkPartitionSkew",
        "In the last hour of {application} a few tasks took far longer than the other tasks of their stage.",
    ),
)
def partition_skew(view: StageView) -> Finding | None:
    """One task takes far longer than the others.

    Evidence: the longest and the median task; the bytes and records of the longest task and the mean of the others.
    Why: all other cores wait for it.
    Change: the text names the cause. More data behind a shuffle means a hot key: salt it, aggregate first, filter out
        nulls; in a join adaptive execution splits it (`spark.sql.adaptive.enabled`,
        `spark.sql.adaptive.skewJoin.enabled`), and the text names the one that is off. `report --name-hot-keys` names
        the key, by a sample of the Parquet files or Delta tables that the query read. More data at the input means a
        large file that cannot be split. The same amount of data means a slow host, or rows that cost more: check the
        host, or set `spark.speculation=true`.
    Threshold: {skew_longest_ms} (project; DataFlint has 5 s) and more than {skew_ratio} times the median (Dr. Elephant:
        severe; DataFlint has 10); from {skew_data_ratio} (project) on, the data is the cause.
        Explained by it: `gc_pressure`, `spill` and `huge_partitions` of the same stages, which come behind it.
    Cost: the longest task minus the median, at most the idle time of the stage. A long task delays nothing while all
        other cores have work, and is then not reported.
    """
    longest, limits = view.longest, view.limits
    if longest is None or len(view.stage.durations_ms) < 2 or duration_ms(longest) < limits.skew_longest_ms:
        return None
    if has_state(view.stage):
        return None
    excess = duration_ms(longest) - view.median_ms
    cost = excess if view.idle_ms is None else min(excess, view.idle_ms)
    if duration_ms(longest) <= limits.skew_ratio * view.median_ms:
        return None
    numbers = {
        "longest_task_ms": duration_ms(longest),
        "median_task_ms": view.median_ms,
        "tasks": len(view.stage.durations_ms),
    }
    why, advice, evidence, cause = _cause(view, longest)
    text = f"its longest task took {duration(duration_ms(longest))}, the median {duration(view.median_ms)}; {why}"
    return view.finding("partition_skew", text, advice=advice, numbers=numbers | evidence, cost_ms=cost, cause=cause)


def _cause(view: StageView, longest: TaskEnd) -> tuple[str, str, dict[str, float], str]:
    """Why the longest task took long, what to change, the evidence, and the kind of cause."""
    own, others = totals_of([longest]), len(view.stage.shuffle_read_bytes) - 1
    where = excerpt(f"executor {longest.info.executor} on {longest.info.host}", MAX_PLACE)
    if others < 1 or not (_bytes(own) or _rows(own)):
        return "the log does not contain the data size of the tasks", _UNKNOWN.format(where=where), {}, "unknown"
    mean = (_bytes(view.stage.totals) - _bytes(own)) / others
    mean_rows = (_rows(view.stage.totals) - _rows(own)) / others
    numbers = {"longest_task_bytes": _bytes(own), "mean_other_bytes": mean}
    numbers |= {"longest_task_records": _rows(own), "mean_other_records": mean_rows}
    is_more = max(_bytes(own) / max(mean, 1), _rows(own) / max(mean_rows, 1)) >= view.limits.skew_data_ratio
    if not is_more:
        return (
            f"it was slower, with no more data than the others ({size(_bytes(own))})",
            _SLOW.format(where=where),
            numbers,
            "slow",
        )
    had = f"it had {size(_bytes(own))} and {count(_rows(own))} records"
    others_had = f"the others {size(mean)} and {count(mean_rows)} on average"
    if not view.is_shuffled:
        return f"{had}, {others_had}", _BIG_FILE, numbers, "input"
    split = settings_advice.split_skew(view.settings) if view.is_of_join else ""
    return f"{had}, {others_had}", f"{split}{_HOT_KEY}", numbers, "key"


_UNKNOWN: Final = "Check whether its partition held more work (repartition), or whether {where} is slow."
_SLOW: Final = (
    "Check load, disk and network of {where}; spark.speculation=true starts a copy of a slow task elsewhere. "
    "If some rows cost far more than others, repartition them."
)
_HOT_KEY: Final = "A few keys hold most rows: salt the key, aggregate first, or filter out nulls and default values."
_BIG_FILE: Final = (
    "One part of the input is far larger: split it by a lower spark.sql.files.maxPartitionBytes, write it in a "
    "format that can be split (no gzip text), or repartition after reading."
)


def _bytes(totals: Totals) -> int:
    return totals.input_bytes + totals.shuffle_read_bytes


def _rows(totals: Totals) -> int:
    return totals.input_records + totals.shuffle_read_records

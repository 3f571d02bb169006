"""State in many more partitions than cores, with few rows in each."""

from typing import Final

from spark_app.eventlog.diagnoses import settings_advice
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import count, duration

CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@rule(
    adds=("batches", "commit_task_ms"),
    limits={
        "state_partitions_ratio": Limit(4.0, "Many state partitions: partitions over slots, more than this.", gt=0),
        "state_partition_rows": Limit(
            1000.0,
            "Many state partitions: updated rows of a partition in a batch, fewer than this.",
            ge=1,
        ),
    },
    judges_few_batches=True,
)
def many_state_partitions(view: StreamView) -> Finding | None:
    """State in many more partitions than cores, with few rows in each.

    Evidence: partitions, cores, updated rows of a batch, time of commits.
    Why: each partition is opened, committed and uploaded in each batch, and costs memory.
    Change: a lower `spark.sql.shuffle.partitions` (200 by default), before the query first starts: the checkpoint fixes
        it, so that a change needs a new one. With RocksDB,
        `spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled` makes a commit cheaper. `tiny_tasks`
        does not judge these stages.
    Threshold: more than {state_partitions_ratio} for each core, with fewer than {state_partition_rows} updated rows of
        each in a batch (project). Of fewer batches than `stream_batches`, so many times as many partitions and as few
        rows as batches are missing: of five batches, twice as many.
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
    known = min(1.0, view.total.batches / view.limits.stream_batches)
    is_many = known * partitions > view.limits.state_partitions_ratio * slots
    if not is_many or updated / partitions >= known * view.limits.state_partition_rows:
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
    if is_on or not view.settings.get(settings_advice.STATE_PROVIDER, "").endswith(settings_advice.ROCKSDB):
        return ""
    return f" {CHANGELOG}=true commits changes instead of whole files."

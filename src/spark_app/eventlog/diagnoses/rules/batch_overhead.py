"""Batches that take longer to prepare and to note than to run."""

from typing import Final

from spark_app.eventlog.diagnoses import limits
from spark_app.eventlog.diagnoses.rule import Limit, rule
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.findings import Finding
from spark_app.formatting import duration
from spark_app.vocabulary.names import (
    ADD_BATCH,
    COMMIT_OFFSETS,
    GET_BATCH,
    LATEST_OFFSET,
    QUERY_PLANNING,
    WAL_COMMIT,
)

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


@rule(
    adds=("batches", "work_ms", "overhead_ms"),
    limits={
        "overhead_ratio": Limit(
            1.0,
            "Batch overhead: time of batches outside of their work over the work, more than this.",
            gt=0,
        ),
        "tiny_batch_rows": limits.TINY_BATCH_ROWS,
        "tiny_batch_ms": limits.TINY_BATCH_MS,
    },
)
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

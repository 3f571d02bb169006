"""Queries, or batches of a stream, that write many small files."""

from collections.abc import Iterator
from typing import Final

from spark_app.eventlog.diagnoses import limits, trials
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Alert, rule
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.operators import value
from spark_app.eventlog.model.plan_names import (
    WRITTEN_BYTES,
)
from spark_app.formatting import count, size
from spark_app.redaction import excerpt

WRITTEN_FILES: Final = "number of written files"
BYTES_OF_WRITES: Final = (WRITTEN_BYTES, "bytes of written output")


@rule(
    adds=("files", "written_bytes"),
    more_than=("files", "small_files"),
    limits={"small_files": limits.SMALL_FILES, "small_file_bytes": limits.SMALL_FILE_BYTES},
    tries=(trials.NO_LIMIT_OF_ROWS,),
    alert=Alert(
        "SparkSmallFiles",
        "In the last hour of {application} queries read or wrote many small files.",
        severity="info",
    ),
)
def small_files_written(view: QueryView) -> Iterator[Finding]:
    """Queries, or batches of a stream, that write many small files.

    Evidence: files and bytes, by Spark's metrics. Delta does not count its files in the plan: the rule then counts each
        task with output as one file, and the text says "at least".
    Why: every later read pays for them.
    Change: `coalesce(n)` or `repartition(n)` before the write, `repartition` by the partition columns for a partitioned
        table; for Delta `OPTIMIZE`, or the table property `delta.autoOptimize.optimizeWrite`.
    Threshold: as of `small_files_read`, for all files that are written to a folder, by queries that write at least two.
    Cost: not estimated; `small_files_read` reports it when a query reads the files.
    """
    counted = [operator for operator in view.operators if WRITTEN_FILES in operator.numbers]
    if counted:
        files, total = value(counted[0], WRITTEN_FILES) or 0, value(counted[0], *BYTES_OF_WRITES)
    else:
        totals = [stage.totals for stage in view.app.stages_of(view.query)]
        files, total = sum(each.output_tasks for each in totals), sum(each.output_bytes for each in totals)
    if total is None or files < 2 or total >= files * view.limits.small_file_bytes:
        return
    target = view.query.target.path or "" if counted and view.query.target else ""
    least, most = ("", "") if counted else ("at least ", "at most ")
    yield view.finding(
        "small_files_written",
        f"writes {least}{count(files)} files of {most}{size(total / files)} on average{_to(target)}",
        advice="Write fewer, larger files: coalesce(n) or repartition(n) before the write, and for a partitioned table "
        "repartition by its partition columns. For a Delta table: OPTIMIZE, or the table property "
        "delta.autoOptimize.optimizeWrite = true.",
        operator=counted[0] if counted else None,
        numbers={"files": files, "written_bytes": total, "mean_file_bytes": total / files},
        cause=target,
    )


def _to(target: str) -> str:
    return f" to {excerpt(target)}" if target else ""

"""Commits of Delta tables: retried on conflicts, and read from the log of the table without a Spark job."""

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta import exceptions
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_app.warehouse import hadoop_files

ATTEMPTS: Final = 10
"""Attempts of a commit that conflicts with others; each starts from the newest version."""
CONFLICTS: Final = (
    exceptions.DeltaConcurrentModificationException,
    exceptions.ConcurrentWriteException,
    exceptions.MetadataChangedException,
    exceptions.ProtocolChangedException,
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentTransactionException,
)
"""What Delta raises when another writer committed first; in Python none is a subclass of another."""


COMPACTION: Final = "OPTIMIZE"
"""Delta's name of the operation that joins files."""
MAINTENANCE: Final = frozenset({COMPACTION, "VACUUM START", "VACUUM END"})
"""Operations that change no row."""
TAG: Final = "spark.databricks.delta.commitInfo.userMetadata"
"""The setting with the `userMetadata` of the commits of a session."""
NO_ROWS: Final = "created without rows"
"""The `userMetadata` of a commit that creates a table before its first rows."""
PATH_EXISTS: Final = "DELTA_PATH_EXISTS"
"""What Delta raises when another writer has created the table that this one creates."""
_WRITTEN: Final = {
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated"),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": (),
    "OPTIMIZE": (),
}
"""The metrics of an operation that add up to the rows that it inserted or updated (Delta's `DeltaOperationMetrics`)."""


@dataclass(frozen=True)
class Commit:
    """One commit of a table, as its log entry describes it.

    Attributes:
        version: Version of the table that the commit created.
        rows: Rows that it inserted or updated, without those that it only copied to new files.
        records: Rows in the files that it added.
        bytes: Bytes of those files.
        files: Number of those files.
        nulls: Nulls per top-level column in those files.
        operation: Delta's name of the operation: WRITE, MERGE, OPTIMIZE.
        at: Instant of the commit.
        tag: What the writer calls itself in the `userMetadata`.
        made: The text of the fingerprint in the `userMetadata`: how the rows were made; empty without one.
    """

    version: int
    rows: int
    records: int
    bytes: int
    files: int
    nulls: Mapping[str, int]
    operation: str
    at: datetime.datetime
    tag: str | None
    made: str = ""

    def has_values(self, column: str) -> bool:
        """Whether a column has a value in any row, as far as the statistics of the commit tell."""
        return self.nulls.get(column, 0) < self.records


def commit_with_retry(
    spark: SparkSession,
    path: str,
    write: Callable[[str], None],
    *,
    author: str,
    note: Callable[[str], None],
    made: str = "",
) -> Commit:
    """Runs a write, again if another writer conflicts with it, and returns its commit.

    Args:
        spark: The session.
        path: The table.
        write: Writes with the given tag as the commit's `userMetadata`.
        author: A prefix of tags that no other writer uses.
        note: Is called with a message when another writer committed first.
        made: The text of the fingerprint of what is written, which follows the tag.
    """
    for attempt in range(1, ATTEMPTS + 1):
        before, tag = last_version(spark, path), f"{author}#{attempt}"
        try:
            write(metadata_of(tag, made))
        except (*CONFLICTS, AnalysisException) as error:
            is_conflict = isinstance(error, CONFLICTS) or error.getCondition() == PATH_EXISTS
            if not is_conflict or attempt == ATTEMPTS:
                raise
            note(f"another writer was faster at {path}: trying again")
            continue
        commit = next((commit for commit in history(spark, path, after=before) if commit.tag == tag), None)
        return commit or empty_commit(before)
    raise AssertionError("unreachable")


def write_beside_compactions(spark: SparkSession, path: str, write: Callable[[], object]) -> None:
    """Runs a write, again if meanwhile the table was only compacted, or vacuumed: no row has changed."""
    for attempt in range(1, ATTEMPTS + 1):
        before = last_version(spark, path)
        try:
            write()
        except CONFLICTS:
            commits = list(history(spark, path, after=before))
            if attempt == ATTEMPTS or any(commit.operation not in MAINTENANCE for commit in commits):
                raise
            continue
        return


def history(spark: SparkSession, path: str, *, after: int = -1) -> Iterator[Commit]:
    """The commits of a table newer than a version, newest first, read from its log without a Spark job."""
    for version in range(last_version(spark, path), after, -1):
        commit = _commit(spark, path, version)
        if commit is None:
            return
        yield commit


def created_at(spark: SparkSession, path: str) -> datetime.datetime | None:
    """When the first version of a table was committed; None where its log does not have that any more."""
    commit = _commit(spark, path, 0)
    return None if commit is None else commit.at


def last_version(spark: SparkSession, path: str) -> int:
    """The newest version in a table's log; -1 where there is no table."""
    names = hadoop_files.names_in(spark, f"{path}/_delta_log") or []
    return max((int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit()), default=-1)


def _commit(spark: SparkSession, path: str, version: int) -> Commit | None:
    text = hadoop_files.read_text(spark, f"{path}/_delta_log/{version:020d}.json")
    if text is None:
        return None
    actions = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    added = [action["add"] for action in actions if "add" in action]
    stats = [json.loads(add["stats"]) for add in added if add.get("stats")]
    records = sum(stat["numRecords"] for stat in stats)
    nulls: dict[str, int] = {}
    for stat in stats:
        for column, count in stat.get("nullCount", {}).items():
            if isinstance(count, int):
                nulls[column] = nulls.get(column, 0) + count
    return Commit(
        version=version,
        rows=_rows_written(info, records),
        records=records,
        bytes=sum(add["size"] for add in added),
        files=len(added),
        nulls=nulls,
        operation=info.get("operation", "unknown"),
        at=datetime.datetime.fromtimestamp(info.get("timestamp", 0) / 1000, datetime.UTC),
        tag=writer_of(info.get("userMetadata")),
        made=made_in(info.get("userMetadata")),
    )


def metadata_of(writer: str, made: str) -> str:
    """The `userMetadata` of a commit: who writes it, and the text of the fingerprint of what is written, if any."""
    return f"{writer} {made}" if made else writer


def writer_of(metadata: str | None) -> str | None:
    """Who wrote a commit, by its `userMetadata`."""
    return metadata if metadata is None else metadata.partition(" {")[0]


def made_in(metadata: str | None) -> str:
    """The text of the fingerprint in the `userMetadata` of a commit; empty without one."""
    _, brace, text = (metadata or "").partition(" {")
    return f"{brace[1:]}{text}"


def _rows_written(info: Mapping[str, Any], records: int) -> int:
    """The rows that a commit inserted or updated, by its metrics; without them, all rows in the files that it added."""
    metrics, operation = info.get("operationMetrics", {}), info.get("operation", "")
    names = _WRITTEN.get(operation, ("numOutputRows",))
    if not metrics.keys() >= {*names}:
        return records
    # `replaceWhere` counts what it keeps of a file as output, too.
    copied = 0 if operation in _WRITTEN else int(metrics.get("numCopiedRows", 0))
    return sum(int(metrics[name]) for name in names) - copied


def empty_commit(version: int) -> Commit:
    """The commit of a write that had nothing to do."""
    return Commit(version, 0, 0, 0, 0, {}, "none", datetime.datetime.now(datetime.UTC), None)

"""Commits of Delta tables: made against other writers, and read back from the table's own log without a Spark job."""

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta import exceptions
from pyspark.sql import SparkSession

from app import files

ATTEMPTS: Final = 10
"""How often a commit is tried against writers of the same table; each try starts from the newest version."""
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
"""What Delta raises when another writer was faster; in Python none of them is a kind of the first."""


@dataclass(frozen=True)
class Commit:
    """What one commit of a table states of itself.

    Attributes:
        version: Version of the table that the commit made.
        rows: Rows in the files that it added.
        bytes: Bytes of those files.
        files: Number of those files.
        nulls: Nulls per top-level column in those files.
        operation: What Delta calls it: WRITE, MERGE, OPTIMIZE.
        at: Instant of the commit.
        tag: What the writer noted with it (`userMetadata`).
    """

    version: int
    rows: int
    bytes: int
    files: int
    nulls: Mapping[str, int]
    operation: str
    at: datetime.datetime
    tag: str | None


@dataclass(frozen=True)
class Written:
    """What a write did: the table's own commit and what was observed on the way."""

    commit: Commit
    observed: Mapping[str, Any]


def committed(
    spark: SparkSession,
    path: str,
    write: Callable[[str], Mapping[str, Any]],
    *,
    author: str,
    note: Callable[[str], None],
) -> Written:
    """Runs a write until no other writer is in its way, and reads what its commit states.

    Args:
        spark: The session.
        path: The table.
        write: Writes with the given tag as the commit's `userMetadata`; returns what it observed.
        author: What makes the tags of this writer differ from all others.
        note: Told when another writer was faster.
    """
    for attempt in range(1, ATTEMPTS + 1):
        before, tag = last_version(spark, path), f"{author}#{attempt}"
        try:
            observed = write(tag)
        except CONFLICTS:
            if attempt == ATTEMPTS:
                raise
            note(f"another writer was faster at {path}: trying again")
            continue
        commit = next((commit for commit in newest_first(spark, path, after=before) if commit.tag == tag), None)
        return Written(commit or _nothing(before), observed)
    raise AssertionError("unreachable")


def newest_first(spark: SparkSession, path: str, *, after: int = -1) -> Iterator[Commit]:
    """The commits of a table newer than a version, newest first, read from its log without a Spark job."""
    for version in range(last_version(spark, path), after, -1):
        commit = _commit(spark, path, version)
        if commit is None:
            return
        yield commit


def last_version(spark: SparkSession, path: str) -> int:
    """The newest version in a table's log; -1 where there is no table."""
    names = files.names_in(spark, f"{path}/_delta_log") or []
    return max((int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit()), default=-1)


def _commit(spark: SparkSession, path: str, version: int) -> Commit | None:
    text = files.read_text(spark, f"{path}/_delta_log/{version:020d}.json")
    if text is None:
        return None
    actions = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    added = [action["add"] for action in actions if "add" in action]
    stats = [json.loads(add["stats"]) for add in added if add.get("stats")]
    nulls: dict[str, int] = {}
    for stat in stats:
        for column, count in stat.get("nullCount", {}).items():
            if isinstance(count, int):
                nulls[column] = nulls.get(column, 0) + count
    return Commit(
        version=version,
        rows=sum(stat["numRecords"] for stat in stats),
        bytes=sum(add["size"] for add in added),
        files=len(added),
        nulls=nulls,
        operation=info.get("operation", "unknown"),
        at=datetime.datetime.fromtimestamp(info.get("timestamp", 0) / 1000, datetime.UTC),
        tag=info.get("userMetadata"),
    )


def _nothing(version: int) -> Commit:
    """The commit of a write that had nothing to do."""
    return Commit(version, 0, 0, 0, {}, "none", datetime.datetime.now(datetime.UTC), None)

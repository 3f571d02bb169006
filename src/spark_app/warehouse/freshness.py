"""How fresh a Delta table is, here or elsewhere, by its transaction log alone: neither Spark nor a JVM starts."""

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Protocol, Self

import msgspec

_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_MAX_SINGLE_COMMITS: Final = 100
"""Commits that are read one by one, even if there is a checkpoint of them."""


class Files(Protocol):
    """A file or a folder, of which a `pathlib.Path` is one."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    def is_dir(self) -> bool:
        """Whether it is a folder."""

    def iterdir(self) -> Iterator[Self]:
        """What is in the folder."""

    def read_bytes(self) -> bytes:
        """The content of the file."""

    def __truediv__(self, name: str, /) -> Self:
        """What has a name in the folder."""


@dataclass(frozen=True)
class Freshness:
    """When a table was last published; None stands for what its log does not tell.

    Attributes:
        at: Instant of the newest commit that changed rows; compactions do not.
        day: The newest day that has rows; None for a table that is not partitioned by days.
    """

    at: datetime.datetime | None = None
    day: datetime.date | None = None


class _Info(msgspec.Struct):
    timestamp: int = 0


class _File(msgspec.Struct):
    path: str
    is_change: bool = msgspec.field(name="dataChange", default=True)
    partition: dict[str, str | None] | None = msgspec.field(name="partitionValues", default=None)
    deleted: dict[str, Any] | None = msgspec.field(name="deletionVector", default=None)


class _Action(msgspec.Struct):
    info: _Info | None = msgspec.field(name="commitInfo", default=None)
    add: _File | None = None
    remove: _File | None = None


_ACTION: Final = msgspec.json.Decoder(_Action)


def freshness(table: Files, day: str | None = None) -> Freshness | None:
    """How fresh a table is; None if it was never published.

    Args:
        table: Its folder.
        day: The column with the day that it is partitioned by.

    Raises:
        InputError: It is on another storage, which refuses or does not answer.
    """
    log = table / "_delta_log"
    try:
        names = [file.name for file in log.iterdir()] if log.is_dir() else []
        commits = versions(names)
        if not commits:
            return None
        published = _published_at(log, commits)
        if published is None and commits[0] == 0:  # it was created, and nothing was written
            return None
        return Freshness(published, _newest_day(log, commits, _checkpoint(names), day) if day else None)
    except (OSError, ValueError):  # a log that cannot be read
        return Freshness()


def versions(names: Iterable[str]) -> list[int]:
    """The versions whose commits are among the names of the files of a log, in their order."""
    return sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))


def whole_files(table: Files) -> list[str] | None:
    """The paths of the files of the newest version, from the folder of the table, as the log has them.

    None where the log does not have them all, or not readably, or where rows of a file are marked as deleted.
    """
    log = table / "_delta_log"
    try:
        names = [file.name for file in log.iterdir()]
        commits = versions(names)
        files = _files(log, commits, _checkpoint(names)) if commits else None
    except (OSError, ValueError):
        return None
    return None if files is None or any(file.deleted for file in files.values()) else [*files]


def _checkpoint(names: Sequence[str]) -> int:
    """The version of the newest checkpoint; -1 without any."""
    return max((int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))), default=-1)


def _published_at(log: Files, commits: Sequence[int]) -> datetime.datetime | None:
    for version in reversed(commits):
        actions = _actions(log, version)
        files = [file for action in actions if (file := action.add or action.remove)]
        if any(file.is_change for file in files):
            milliseconds = next((action.info.timestamp for action in actions if action.info), 0)
            return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC) if milliseconds else None
    return None


def _newest_day(log: Files, commits: Sequence[int], checkpoint: int, column: str) -> datetime.date | None:
    """The newest day of the files of the newest version; None where the log does not have them all, or not readably."""
    files = _files(log, commits, checkpoint)
    days = {text for file in (files or {}).values() if (text := (file.partition or {}).get(column))}
    return datetime.date.fromisoformat(max(days)) if days else None


def _files(log: Files, commits: Sequence[int], checkpoint: int) -> dict[str, _File] | None:
    """The files of the newest version by their paths; None where the log does not have them all, or not readably."""
    if commits[0] == 0 and len(commits) <= _MAX_SINGLE_COMMITS:
        checkpoint = -1
    needed = range(checkpoint + 1, commits[-1] + 1)
    if not {*needed} <= {*commits}:
        return None
    try:
        files = _checkpointed(log, checkpoint) if checkpoint >= 0 else {}
    except ImportError:
        return None
    for version in needed:
        actions = _actions(log, version)
        for action in actions:  # a file whose rows are marked as deleted is removed and added in one commit
            if action.remove:
                files.pop(action.remove.path, None)
        files |= {action.add.path: action.add for action in actions if action.add}
    return files


def _checkpointed(log: Files, version: int) -> dict[str, _File]:
    from pyarrow import parquet  # takes a moment, is not everywhere, and most tables are read without

    file = log / f"{version:020d}.checkpoint.parquet"
    adds = (
        parquet.ParquetFile(file if isinstance(file, Path) else BytesIO(file.read_bytes()))
        .read(columns=["add.path", "add.partitionValues", "add.deletionVector"])["add"]
        .to_pylist()
    )
    files = [add for add in adds if add and add["path"]]
    return {
        add["path"]: _File(add["path"], partition=dict(add["partitionValues"]), deleted=add.get("deletionVector"))
        for add in files
    }


def _actions(log: Files, version: int) -> list[_Action]:
    return [_ACTION.decode(line) for line in (log / f"{version:020d}.json").read_bytes().splitlines() if line]

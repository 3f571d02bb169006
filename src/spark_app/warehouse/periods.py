"""What each day of each table was made of: small files beside the tables, which `spark-app stale` reads without Spark.

`_periods/<table>/<day>.json` names the content of a day of a table, and that of all that it was made of. Who writes a
day replaces its file twice: before the commit it says that the day is being written, afterwards what is in it. So a
writer that was killed in between is seen, too.

A day of a state (`@daily.state`) also says where the state as of that day is: in a version of the table, or in an
older version and in what each day since has changed, in the table `_changes/<state>`.
"""

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
from pyspark.sql import SparkSession

from spark_app.local_files import local_path, write_atomic
from spark_app.warehouse import hadoop_files
from spark_app.warehouse.freshness import Files

T = TypeVar("T")
R = TypeVar("R")
PERIODS: Final = "_periods"
CHANGES: Final = "_changes"
RAW: Final = "raw files of "
ROWS: Final = "rows of "
ORIGINS: Final = (RAW, ROWS)
"""How the name of a source begins among what a day is made of: one with files, or another one."""
EFFECTS: Final = "effects.json"
NO_VERSION: Final = -1
"""Stands for the version of a table before its first one."""


def source_of(name: str) -> str | None:
    """The source that a name stands for, of what a day is made of; None for a table."""
    return next((name.removeprefix(each) for each in ORIGINS if name.startswith(each)), None)


class Period(msgspec.Struct, frozen=True):
    """A day of a table.

    Attributes:
        content: Names what is in it: the run that changed it last, and whose rows were accepted.
        reads: By what it was made of, the content of that.
        is_done: Whether it was written whole; False while a run writes it, and where one was killed.
        is_rejected: Whether the run that wrote it last rejected its rows.
        base: Of a state: the version of the table that has the state as of the day, or as of the day before `first`.
        first: Of a state: the first day whose changes come on top of that version; empty where it has all.
    """

    content: str = ""
    reads: Mapping[str, str] = {}
    is_done: bool = True
    is_rejected: bool = False
    base: int = NO_VERSION
    first: str = ""


class Effect(msgspec.Struct, frozen=True, array_like=True):
    """Days for which rows of a history are other ones since a run: from the first to the last, or without end."""

    first: str
    last: str
    content: str

    def covers(self, day: str) -> bool:
        """Whether it is about a day."""
        return self.first <= day and (not self.last or day <= self.last)


class _Storage(Protocol):
    threads: int

    def names(self, folder: str) -> list[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes) -> None: ...


class Periods:
    """The days of the tables of a warehouse."""

    def __init__(self, storage: _Storage) -> None:
        """Reads nothing yet."""
        self._storage = storage

    @property
    def threads(self) -> int:
        """How many requests at once its storage is worth."""
        return self._storage.threads

    def days(self, table: str) -> dict[datetime.date, Period]:
        """The known days of a table, in their order."""
        days = self.known_days(table)
        periods = in_threads(lambda day: self.period(table, day), days, threads=self.threads)
        return dict(zip(days, periods, strict=True))

    def known_days(self, table: str) -> list[datetime.date]:
        """The same days alone, by the names of their files."""
        return sorted(_day(name) for name in self._storage.names(f"{PERIODS}/{table}") if name[:1].isdigit())

    def period(self, table: str, day: datetime.date) -> Period:
        """A day of a table; of one that is not known, nothing is known."""
        text = self._storage.read(_name(table, day))
        try:
            return Period() if text is None else msgspec.json.decode(text, type=Period)
        except msgspec.DecodeError:  # its writer was killed
            return Period(is_done=False)

    def read_once(self) -> "Periods":
        """The same days, as they are when each file is read first: for who looks at all of them."""
        return Periods(_ReadOnce(self._storage))

    def put(self, table: str, day: datetime.date, period: Period) -> None:
        """Replaces what is known of a day of a table."""
        self._storage.write(_name(table, day), msgspec.json.encode(period))

    def effects(self, table: str) -> list[Effect]:
        """The changes of a history, the oldest first. Of a file that cannot be read, one of all days."""
        text = self._storage.read(f"{PERIODS}/{table}/{EFFECTS}")
        try:
            return [] if text is None else msgspec.json.decode(text, type=list[Effect])
        except msgspec.DecodeError:  # its writer was killed: what it said may be about any day
            return [Effect("", "", f"unknown since {hashlib.sha256(text or b'').hexdigest()[:12]}")]

    def add_effects(self, table: str, effects: Sequence[Effect]) -> None:
        """Adds changes of a history; older ones about the same days, or some of these, are forgotten."""
        kept = [old for old in self.effects(table) if not any(_within(old, new) for new in effects)]
        self._storage.write(f"{PERIODS}/{table}/{EFFECTS}", msgspec.json.encode([*kept, *effects]))

    def content(self, table: str, day: datetime.date, *, is_of_days: bool) -> str:
        """Names what a run of a day reads of a table; empty where that is not known.

        Args:
            table: The table.
            day: The day.
            is_of_days: Whether it is partitioned by days; else it is a state or a history.
        """
        if is_of_days:
            return self.period(table, day).content
        if effects := self.effects(table):
            return next((each.content for each in reversed(effects) if each.covers(day.isoformat())), "")
        names, own = self._storage.names(f"{PERIODS}/{table}"), f"{day}.json"
        last = max((name for name in names if "0" <= name <= own), default=None)
        return "" if last is None else f"{_day(last)} {self.period(table, _day(last)).content}"


def _name(table: str, day: datetime.date) -> str:
    return f"{PERIODS}/{table}/{day}.json"


def _day(name: str) -> datetime.date:
    return datetime.date.fromisoformat(name.removesuffix(".json"))


def _within(old: Effect, new: Effect) -> bool:
    return new.first <= old.first and (not new.last or (bool(old.last) and old.last <= new.last))


def in_threads(ask: Callable[[T], R], of: Sequence[T], *, threads: int) -> list[R]:
    """The answers about each of many, some at a time."""
    if threads == 1:
        return [ask(each) for each in of]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, of))


class StoredFiles:
    """A folder that is read without Spark, here or elsewhere; it cannot be written."""

    threads = 16

    def __init__(self, root: Files) -> None:
        """Asks for nothing yet."""
        self._root = root

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if there is no such folder."""
        path = self._root / folder
        return [each.name for each in path.iterdir()] if path.is_dir() else []

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where it does not exist."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Is not possible."""
        raise NotImplementedError(f"{name} is read without Spark, and not written: {len(content)} bytes")


class LocalStorage(StoredFiles):
    """A folder of this machine."""

    threads = 1

    def __init__(self, root: Path) -> None:
        """Creates nothing yet."""
        super().__init__(root)
        self._folder = root

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file."""
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._folder / name, content)


class HadoopStorage:
    """A folder that Spark can write."""

    threads = 16

    def __init__(self, spark: SparkSession, root: str) -> None:
        """Asks for nothing yet."""
        self._spark, self._root = spark, root

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if there is no such folder."""
        return hadoop_files.names_in(self._spark, f"{self._root}/{folder}") or []

    def read(self, name: str) -> bytes | None:
        """The content of a file; None where it does not exist."""
        text = hadoop_files.read_text(self._spark, f"{self._root}/{name}")
        return None if text is None else text.encode("utf-8")

    def write(self, name: str, content: bytes) -> None:
        """Replaces a file."""
        hadoop_files.write(self._spark, f"{self._root}/{name}", content)


class _ReadOnce:
    """Another storage, of which nothing is asked twice; it cannot be written."""

    def __init__(self, storage: _Storage) -> None:
        self.threads = storage.threads
        self.names, self.read = cache(storage.names), cache(storage.read)

    def write(self, name: str, content: bytes) -> None:
        raise NotImplementedError(f"{name} would have to be read again: {len(content)} bytes")


def periods_of(spark: SparkSession, root: str) -> Periods:
    """The days of the tables below a root folder, which may be on any file system."""
    local = local_path(root)
    return Periods(LocalStorage(local) if local is not None else HadoopStorage(spark, root))

"""An index of the stored run profiles, run records and reports: a SQLite file beside the profiles.

It is a cache, which may be deleted. Only files that have changed are read, some hundred at a time, and what is compared
with the index lies in tables, too: memory does not grow with the number of runs. Several processes may use one index.
"""

import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.errors import MachineError
from spark_app.eventlog.parse.log_tailer import application_of
from spark_app.local_files import ensure_dir
from spark_app.report.served import stored_runs
from spark_app.runs import liveness
from spark_app.runs.run_record import RECORD

NAME: Final = "runs.sqlite"
VERSION: Final = 1
"""The version of the tables; an index of another version is made anew."""
WAIT_SECONDS: Final = 30.0
"""How long a process waits for another one that writes the index."""
AT_ONCE: Final = 500
"""Files that are read between two commits."""
TABLES: Final = """
CREATE TABLE file (kind, path, modified, size, PRIMARY KEY (kind, path)) WITHOUT ROWID;
CREATE TABLE profile (
    path PRIMARY KEY, application, name, about, outcome, started, duration_ms, core_ms, gib_ms, is_comparable, labels,
    users, text
);
CREATE INDEX profile_of_application ON profile (application);
CREATE TABLE record (path PRIMARY KEY, application, id, name, about, outcome, started, duration_ms, text);
CREATE INDEX record_of_application ON record (application);
CREATE INDEX record_running ON record (path) WHERE outcome = 'running';
CREATE TABLE report (id PRIMARY KEY, name) WITHOUT ROWID;
CREATE TABLE run (
    application, id, name, about, outcome, started, duration_ms, core_ms, gib_ms, profile, labels, users, text
);
CREATE INDEX run_of_application ON run (application);
CREATE INDEX run_by_start ON run (started, id);
CREATE INDEX run_by_name ON run (name, started, id);
CREATE INDEX run_of_profile ON run (profile);
"""
LISTED: Final = """
CREATE TEMP TABLE present (kind, path, modified, size, PRIMARY KEY (kind, path)) WITHOUT ROWID;
CREATE TEMP TABLE named (id PRIMARY KEY, name) WITHOUT ROWID;
CREATE TEMP TABLE touched (application PRIMARY KEY) WITHOUT ROWID;
"""
CHANGED: Final = """
CREATE TEMP TABLE changed AS
SELECT kind, path, present.modified, present.size FROM present LEFT JOIN file USING (kind, path)
WHERE file.modified IS NOT present.modified OR file.size IS NOT present.size
UNION ALL
SELECT kind, path, NULL, NULL FROM file WHERE (kind, path) NOT IN (SELECT kind, path FROM present)
ORDER BY 3 DESC
"""
"""The files that are new, other or gone; the last written first, which are looked for first."""
OF_RECORDS: Final = """
INSERT INTO run
SELECT record.application, id, record.name, record.about, record.outcome, record.started, record.duration_ms,
    max(core_ms), gib_ms, iif(is_comparable, profile.path, NULL), coalesce(labels, '{}'),
    coalesce(users, '{"": 0}'), record.text || ' ' || coalesce(profile.text, '')
FROM record LEFT JOIN profile ON profile.application = record.application
    AND 1 = (SELECT count(*) FROM record AS each WHERE each.application = record.application)
WHERE record.application IN touched GROUP BY record.path
"""
OF_PROFILES: Final = """
INSERT INTO run
SELECT application, application, name, about, outcome, started, duration_ms, core_ms, gib_ms,
    iif(is_comparable, path, NULL), labels, users, text
FROM profile WHERE application IN touched
    AND 1 != (SELECT count(*) FROM record WHERE record.application = profile.application)
"""
"""An application with a single spark-app run is that run."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the files are that are indexed: run profiles, the folders of runs, and reports."""

    profiles: Path
    runs: Path
    reports: Path


class RunIndex:
    """The index of some folders."""

    def __init__(self, folders: Folders, read: Callable[[Path], bytes]) -> None:
        """Reads nothing yet. Where the folder of the profiles cannot be written, the index is a temporary file."""
        self._folders, self._read = folders, read
        self._file = folders.profiles / NAME
        if not _is_writable(folders.profiles):
            temporary = tempfile.mkdtemp(prefix="spark-app-")
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
            self._file = Path(temporary) / NAME

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """A connection to the index, which is made anew where it is damaged or of another version."""
        try:
            connection = _opened(self._file)
        except sqlite3.DatabaseError:
            self._file.unlink(missing_ok=True)
            connection = _opened(self._file)
        with closing(connection):
            yield connection

    def refresh(self) -> None:
        """Reads what has changed since the last time."""
        with self.connected() as index:
            index.executescript(LISTED)
            index.execute("BEGIN")
            index.executemany("INSERT INTO present VALUES ('profile', ?, ?, ?)", _profiles(self._folders.profiles))
            index.executemany("INSERT INTO present VALUES ('record', ?, ?, ?)", _records(self._folders.runs))
            index.executemany(
                "INSERT INTO named VALUES (?, ?) ON CONFLICT DO UPDATE SET name = max(name, excluded.name)",
                _reports(self._folders.reports),
            )
            index.execute(CHANGED)
            index.execute("COMMIT")
            self._name_reports(index)
            number = 0
            while chunk := index.execute("SELECT * FROM changed WHERE rowid > ? LIMIT ?", (number, AT_ONCE)).fetchall():
                number += len(chunk)
                self._take(index, chunk)
            self._mark_killed(index)

    def _take(self, index: sqlite3.Connection, chunk: list[tuple[str, str, int | None, int | None]]) -> None:
        """Replaces what the index has of some files."""
        with _transaction(index):
            for kind, path, modified, size in chunk:
                index.execute(f"INSERT OR IGNORE INTO touched SELECT application FROM {kind} WHERE path = ?", (path,))
                index.execute(f"DELETE FROM {kind} WHERE path = ?", (path,))
                index.execute("DELETE FROM file WHERE kind = ? AND path = ?", (kind, path))
                if modified is not None:
                    self._add(index, kind, path, modified, size)
            _list_touched(index)

    def _add(self, index: sqlite3.Connection, kind: str, path: str, modified: int, size: int | None) -> None:
        """Adds a file; one that cannot be decoded is not read again before it changes, and is no run."""
        folder = self._folders.profiles if kind == "profile" else self._folders.runs
        try:
            content = self._read(folder / path)
        except OSError:
            return
        index.execute("INSERT INTO file VALUES (?, ?, ?, ?)", (kind, path, modified, size))
        row = stored_runs.profile_row(content) if kind == "profile" else stored_runs.record_row(content)
        if row is not None:
            index.execute(f"INSERT INTO {kind} VALUES ({', '.join('?' * (len(row) + 1))})", (path, *row))
            index.execute("INSERT OR IGNORE INTO touched VALUES (?)", row[:1])

    def _name_reports(self, index: sqlite3.Connection) -> None:
        with _transaction(index):
            index.execute("DELETE FROM report WHERE (id, name) NOT IN (SELECT id, name FROM named)")
            index.execute("INSERT OR IGNORE INTO report SELECT id, name FROM named")

    def _mark_killed(self, index: sqlite3.Connection) -> None:
        """A record that says `running` although its process is gone is that of a killed run that nothing marked yet."""
        running = index.execute("SELECT path, application FROM record WHERE outcome = 'running'").fetchall()
        killed = [each for each in running if not liveness.is_running((self._folders.runs / each[0]).parent)]
        if killed:
            with _transaction(index):
                index.executemany("UPDATE record SET outcome = 'killed' WHERE path = ? AND application = ?", killed)
                index.executemany("INSERT OR IGNORE INTO touched VALUES (?)", [each[1:] for each in killed])
                _list_touched(index)


def _list_touched(index: sqlite3.Connection) -> None:
    """Makes the runs of the touched applications anew."""
    index.execute("DELETE FROM run WHERE application IN touched")
    index.execute(OF_RECORDS)
    index.execute(OF_PROFILES)
    index.execute("DELETE FROM touched")


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT_SECONDS, isolation_level=None)
    try:
        if _version(connection) != VERSION:
            with _transaction(connection):
                if _version(connection) != VERSION:  # no other process has made the tables meanwhile
                    _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _make_tables(connection: sqlite3.Connection) -> None:
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        connection.execute(f'DROP TABLE "{table}"')
    for statement in filter(str.strip, TABLES.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        yield


def _is_writable(folder: Path) -> bool:
    with suppress(MachineError):
        return os.access(ensure_dir(folder), os.W_OK)
    return False


def _profiles(folder: Path) -> Iterator[tuple[str, int, int]]:
    """The run profiles: path, last write and size of each."""
    for application in _entries(folder):
        for file in _entries(folder / application):
            if file.endswith(".json"):
                yield from _state(folder, f"{application}/{file}")


def _records(folder: Path) -> Iterator[tuple[str, int, int]]:
    for run in _entries(folder):
        yield from _state(folder, f"{run}/{RECORD}")


def _reports(folder: Path) -> Iterator[tuple[str, str]]:
    """The reports, by the run or the application that they are about."""
    for name in _entries(folder):
        if name.endswith(".html"):
            yield from {(application_of(name), name), (name.removesuffix(".html"), name)}


def _entries(folder: Path) -> Iterator[str]:
    """The names in a folder, without hidden ones; none where it is no folder."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if not entry.name.startswith("."))


def _state(folder: Path, path: str) -> Iterator[tuple[str, int, int]]:
    with suppress(OSError):
        status = os.stat(f"{folder}/{path}")  # noqa: PTH116 - of each of 100,000 files
        yield path, status.st_mtime_ns, status.st_size

"""An index of the stored run profiles, run records and reports: a SQLite file of this machine.

It is a cache, which may be deleted. Only files that have changed are read, some hundred at a time, and what is compared
with the index lies in tables, too: memory does not grow with the number of runs. Several processes may use one index.
"""

import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from spark_app.annexes.serve import stored_runs
from spark_app.annexes.serve.run_files import Kind, RunFiles, report_ids
from spark_app.errors import MachineError
from spark_app.local_files import ensure_dir

VERSION: Final = 2
"""The version of the tables; an index of another version is built anew."""
WAIT_SECONDS: Final = 30.0
"""How long a process waits for another one that writes the index."""
KINDS: Final[tuple[Kind, ...]] = ("profile", "record")
FILES_PER_COMMIT: Final = 500
"""Files that are read between two commits."""
TABLES: Final = """
CREATE TABLE file (kind, path, modified, size, PRIMARY KEY (kind, path)) WITHOUT ROWID;
CREATE TABLE profile (
    path PRIMARY KEY, application, name, about, outcome, started, duration_ms, core_ms, gib_ms, is_comparable, labels,
    users, findings, text
);
CREATE INDEX profile_of_application ON profile (application);
CREATE TABLE record (path PRIMARY KEY, application, id, name, about, outcome, started, duration_ms, text);
CREATE INDEX record_of_application ON record (application);
CREATE INDEX record_running ON record (path) WHERE outcome = 'running';
CREATE TABLE report (id PRIMARY KEY, name) WITHOUT ROWID;
CREATE TABLE run (
    application, id, name, about, outcome, started, duration_ms, core_ms, gib_ms, profile, labels, users, findings, text
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
NAMED: Final = "INSERT INTO named"
LATER: Final = "ON CONFLICT DO UPDATE SET name = max(name, excluded.name)"
"""Of the reports of a run, the one whose name comes last."""
OF_RECORDS: Final = """
INSERT INTO run
SELECT record.application, id, record.name, record.about, record.outcome, record.started, record.duration_ms,
    max(core_ms), gib_ms, iif(is_comparable, profile.path, NULL), coalesce(labels, '{}'),
    coalesce(users, '{"": 0}'), coalesce(findings, '[]'), record.text || ' ' || coalesce(profile.text, '')
FROM record LEFT JOIN profile ON profile.application = record.application
    AND 1 = (SELECT count(*) FROM record AS each WHERE each.application = record.application)
WHERE record.application IN touched GROUP BY record.path
"""
OF_PROFILES: Final = """
INSERT INTO run
SELECT application, application, name, about, outcome, started, duration_ms, core_ms, gib_ms,
    iif(is_comparable, path, NULL), labels, users, findings, text
FROM profile WHERE application IN touched
    AND 1 != (SELECT count(*) FROM record WHERE record.application = profile.application)
"""
"""An application with a single spark-app run is that run."""


class RunIndex:
    """The index of some files."""

    def __init__(self, files: RunFiles) -> None:
        """Reads nothing yet. Where the folder of the index cannot be written, it is a temporary file."""
        self._files, self._file = files, files.index
        if not _is_writable(self._file.parent):
            temporary = tempfile.mkdtemp(prefix="spark-app-")
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
            self._file = Path(temporary) / self._file.name

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """A connection to the index, which is built anew where it is damaged or of another version."""
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
            self._list(index, "profile")
            self._list(index, "record")
            self._list_reports(index)
            index.execute(CHANGED)
            index.execute("COMMIT")
            self._name_reports(index)
            number = 0
            while chunk := index.execute(
                "SELECT * FROM changed WHERE rowid > ? LIMIT ?", (number, FILES_PER_COMMIT)
            ).fetchall():
                number += len(chunk)
                self._take(index, chunk)
            self._mark_killed(index)

    def _list(self, index: sqlite3.Connection, kind: Kind) -> None:
        for folder, files in self._files.folders(kind):
            if files is None:
                index.execute(
                    "INSERT INTO present SELECT * FROM file WHERE kind = ? AND path GLOB ?", (kind, f"{folder}*")
                )
            else:
                index.executemany(f"INSERT INTO present VALUES ('{kind}', ?, ?, ?)", files)

    def _list_reports(self, index: sqlite3.Connection) -> None:
        """The reports, by the run or the application that they are about."""
        for folder, files in self._files.folders("report"):
            if files is None:
                index.execute(f"{NAMED} SELECT id, name FROM report WHERE name GLOB ? {LATER}", (f"{folder}*",))
            else:
                names = ((each, name) for name, _, _ in files for each in report_ids(name))
                index.executemany(f"{NAMED} VALUES (?, ?) {LATER}", names)

    def _take(self, index: sqlite3.Connection, chunk: list[tuple[Kind, str, int | None, int | None]]) -> None:
        """Replaces what the index has of some files."""
        contents = {
            kind: self._files.contents(
                kind, [path for each, path, modified, _ in chunk if each == kind and modified is not None]
            )
            for kind in KINDS
        }
        with _transaction(index):
            for kind, path, modified, size in chunk:
                index.execute(f"INSERT OR IGNORE INTO touched SELECT application FROM {kind} WHERE path = ?", (path,))
                index.execute(f"DELETE FROM {kind} WHERE path = ?", (path,))
                index.execute("DELETE FROM file WHERE kind = ? AND path = ?", (kind, path))
                content = contents[kind].get(path)
                if modified is not None and content is not None:
                    index.execute("INSERT INTO file VALUES (?, ?, ?, ?)", (kind, path, modified, size))
                    _add(index, kind, path, content)
            _list_touched(index)

    def _name_reports(self, index: sqlite3.Connection) -> None:
        with _transaction(index):
            index.execute("DELETE FROM report WHERE (id, name) NOT IN (SELECT id, name FROM named)")
            index.execute("INSERT OR IGNORE INTO report SELECT id, name FROM named")

    def _mark_killed(self, index: sqlite3.Connection) -> None:
        """A record that says `running` although its process is gone is that of a killed run that nothing marked yet."""
        running = index.execute("SELECT path, application FROM record WHERE outcome = 'running'").fetchall()
        killed = [each for each in running if self._files.is_killed(each[0])]
        if killed:
            with _transaction(index):
                index.executemany("UPDATE record SET outcome = 'killed' WHERE path = ? AND application = ?", killed)
                index.executemany("INSERT OR IGNORE INTO touched VALUES (?)", [each[1:] for each in killed])
                _list_touched(index)


def _add(index: sqlite3.Connection, kind: Kind, path: str, content: bytes) -> None:
    """Adds a file; one that cannot be decoded is not read again before it changes, and is no run."""
    row = stored_runs.profile_row(content) if kind == "profile" else stored_runs.record_row(content)
    if row is not None:
        index.execute(f"INSERT INTO {kind} VALUES ({', '.join('?' * (len(row) + 1))})", (path, *row))
        index.execute("INSERT OR IGNORE INTO touched VALUES (?)", row[:1])


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
                if _version(connection) != VERSION:  # no other process has created the tables since
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

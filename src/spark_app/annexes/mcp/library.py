"""The runs and event logs that the tools may read: those of two folders, by their names, and nothing else."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from spark_app.annexes.mcp.answers import Document
from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.parse.locations import LogPath, state
from spark_app.eventlog.parse.log_files import EventLog, logs_in
from spark_app.eventlog.parse.log_tailer import application_of, parts
from spark_app.eventlog.reader import head, read
from spark_app.observe.analysis import Analysis, analyze
from spark_app.report import report_source, run_store, values
from spark_app.report.formatting import instant, line
from spark_app.report.report_source import ReportSource
from spark_app.report.run_store import RECORDS
from spark_app.runs import run_record
from spark_app.runs.run_record import RECORD, RunRecord
from spark_app.settings import Settings
from spark_app.telemetry.run_files import STARTED

MAX_READ: Final = 3
"""Logs that are kept in memory after they were read: a run, one to compare it with, and one more."""
MAX_STORED: Final = 100
"""Runs of the run store that are listed: the last ones, whose records are read one by one."""
State = tuple[tuple[LogPath, int, float], ...]
"""The files of a log with their sizes and times; a growing log is read again."""


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """A run or an event log: when it was last written, and what is known of it without reading all of it."""

    name: str
    changed: float
    describe: Callable[[], Document]


class Library:
    """The runs of a configuration, and the event logs of a folder."""

    def __init__(self, settings: Settings, events: LogPath, thresholds: Thresholds) -> None:
        """Reads nothing yet."""
        self.settings, self.events, self.thresholds = settings, events, thresholds
        self._store = run_store.configured_store(settings)
        self._read: OrderedDict[LogPath, tuple[State, Analysis]] = OrderedDict()

    def entries(self) -> list[LibraryEntry]:
        """All runs and event logs, the newest first."""
        runs = ((folder, _changed(folder)) for folder in _runs(self.settings.runs_path))
        logs = ((log, log.modified()) for log in self._logs())
        entries = [
            *(LibraryEntry(folder.name, time, partial(_of_run, folder, time)) for folder, time in runs),
            *(LibraryEntry(log.key, time, partial(self._of_log, log, time)) for log, time in logs),
        ]
        entries += self._in_store({entry.name for entry in entries})
        return sorted(entries, key=lambda entry: entry.changed, reverse=True)

    def source(self, name: str) -> ReportSource:
        """The event log of a name that `entries` has, or of an application id, and the run in it that is meant.

        Raises:
            InputError: There is none.
        """
        for folder in _runs(self.settings.runs_path):
            if folder.name == name:
                return report_source.source(str(folder), self.settings)
        if self._store and (fetched := self._store.fetch_run(name)):
            return report_source.source(str(fetched), self.settings)
        logs = self._logs()
        named = [log for log in logs if log.key == name] or [log for log in logs if application_of(log.key) == name]
        if not named:
            where = f"{self.events} and {self.settings.runs_path}"
            raise InputError(f"no run or event log {line(name)!r} in {where}: list_runs lists them")
        return ReportSource(max(named, key=EventLog.modified).path, None)

    def analysis(self, log: LogPath) -> Analysis:
        """The analysis of a log; it is kept until the log has grown.

        Raises:
            InputError: The log cannot be read, or is none.
        """
        state = _state(log)
        known = self._read.pop(log, None)
        if known is None or known[0] != state:
            known = state, analyze(read(log), self.settings, self.thresholds)
        self._read[log] = known
        if len(self._read) > MAX_READ:
            self._read.popitem(last=False)
        return known[1]

    def _in_store(self, known: set[str]) -> Iterator[LibraryEntry]:
        """The last runs of other machines, by day."""
        store, left = self._store, MAX_STORED
        for day in store.days(RECORDS) if store else ():
            found = {Path(name).stem: info.modified for name, info in store.files(f"{RECORDS}/{day}")} if store else {}
            for name in sorted(found.keys() - known, reverse=True)[:left]:
                read_stored = partial(self._of_stored_run, name, f"{RECORDS}/{day}/{name}.json", found[name])
                yield LibraryEntry(name, found[name], read_stored)
            left -= min(left, len(found))
            if not left:
                return

    def _of_stored_run(self, name: str, key: str, changed: float) -> Document:
        try:
            record = run_record.decoded(self._store.read(key) if self._store else b"", key)
        except (InputError, FileNotFoundError) as error:
            return {"run": name, "kind": "spark-app run", "remark": line(error)}
        return _of_record(name, record, changed)

    def _logs(self) -> list[EventLog]:
        try:
            return list(logs_in(self.events).values())
        except FileNotFoundError:  # no application has run yet
            return []

    def _of_log(self, log: EventLog, changed: float) -> Document:
        app = head(log.path)
        if app is None or app.began is None:
            return {"run": log.key, "kind": "event log", "remark": "its beginning is no Spark event log"}
        profile = baselines.stored(self.settings.profiles_path, app, log.path)
        return {
            "run": log.key,
            "kind": "event log",
            "application": line(app.name or app.id),
            "application_id": line(app.id),
            "started": instant(app.began),
            "changed": instant(changed * 1000),
            "outcome": profile and profile.outcome,
            "duration_ms": profile and profile.duration_ms,
        }


def _runs(folder: Path) -> Iterator[Path]:
    """The folders of the runs."""
    return (path for path in (folder.iterdir() if folder.is_dir() else ()) if _changed(path))


def _changed(run: Path) -> float:
    """When the record of a run was last written, or the first of its spans; 0 for another folder."""
    return next((file.stat().st_mtime for file in (run / RECORD, run / STARTED) if file.is_file()), 0.0)


def _of_run(folder: Path, changed: float) -> Document:
    try:
        record = run_record.read(folder)
    except InputError as error:
        return {"run": folder.name, "kind": "spark-app run", "remark": line(error)}
    return _of_record(folder.name, record, changed)


def _of_record(name: str, record: RunRecord, changed: float) -> Document:
    return {
        "run": name,
        "kind": "spark-app run",
        "application": line(f"{record.pipeline} {record.slice}".rstrip()),
        "application_id": record.application_id,
        "started": record.started_at,
        "changed": instant(changed * 1000),
        "outcome": record.outcome,
        "duration_ms": None if record.outcome == "running" else values.whole(record.seconds * 1000),
    }


def _state(log: LogPath) -> State:
    return tuple((part.path, *state(part.path)) for part in parts(log))

"""Reports of the applications whose event logs are in a folder: written when they have ended, of all users.

An application of spark-app writes the reports of its runs itself, unless it was killed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_app.errors import InputError, message_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds, load_thresholds
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import EventLog, newest_first
from spark_app.eventlog.parse.log_tailer import application_of, is_finished
from spark_app.eventlog.reader import read
from spark_app.local_files import write_atomic
from spark_app.observe import retention, run_copies
from spark_app.observe.analysis import analyze
from spark_app.observe.retention import DAY_SECONDS
from spark_app.report import index, run_info
from spark_app.report.run_info import RunInfo
from spark_app.runs import liveness, run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings

LOOK_SECONDS: Final = 10.0
"""The interval at which a folder is looked at."""
KILLED: Final = ("running", "killed")
"""What the record says of a run whose process is gone: nothing may have marked it yet."""
ABANDONED_SECONDS: Final = 3600.0
"""Seconds without a write after which an application that has not closed its log has ended, too."""


UNFINISHED: Final = ".unfinished"
"""A file with the log that is being read: one that ended the process, for its memory, is not tried again and again."""


def start(folder: LogPath, settings: Settings, ending: threading.Event, *, note: Callable[[str], None]) -> None:
    """Writes reports on a thread, until it is to end."""
    reports = FolderReports(folder, settings, load_thresholds(settings.config), note=note)
    threading.Thread(target=reports.follow, args=(ending,), name="reports", daemon=True).start()


class FolderReports:
    """The reports of a folder of event logs. An application whose report is there gets no other."""

    def __init__(
        self, folder: LogPath, settings: Settings, thresholds: Thresholds, *, note: Callable[[str], None]
    ) -> None:
        """Reads nothing yet.

        Args:
            folder: The event logs.
            settings: Where reports and run profiles are.
            thresholds: Thresholds of the diagnoses.
            note: Is called with each line worth reading.
        """
        self._folder, self._settings, self._thresholds, self._note = folder, settings, thresholds, note
        self._done: set[str] = set()
        self._ended = dict[str, RunRecord]()
        self._unfinished = settings.reports_path / UNFINISHED
        with suppress(OSError):
            key = self._unfinished.read_text(encoding="utf-8")
            self._done.add(key)
            note(f"no report about {key}: the process that read it was ended; has it memory enough?")
        self._trouble: str | None = None
        self._unsent: set[str] = set()

    def follow(self, ending: threading.Event) -> None:
        """Writes reports until it is to end."""
        while not ending.is_set():
            self.look()
            ending.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Writes the reports that are missing; the oldest first: later applications are compared with it."""
        try:
            logs = newest_first(self._folder)
        except (InputError, OSError) as error:
            self._report_trouble(f"cannot read {self._folder}: {error}; it is looked at again")
            return
        self._report_trouble(None)
        new = [log for log in reversed(logs) if log.key not in self._done]
        runs = self._runs_by_application() if new else {}
        due = [log for log in new if self._has_ended(log, runs.get(application_of(log.key), []))]
        for log in due:
            self._write(log, runs.get(application_of(log.key), []))
        run_copies.send(self._settings, note=self._report_unsent)
        if due:
            retention.prune_daily(self._settings, note=self._note)

    def _runs_by_application(self) -> dict[str, list[RunRecord]]:
        """The runs of spark-app that have a record; one whose process is gone has ended, whatever its record says."""
        found = dict[str, list[RunRecord]]()
        for folder in _folders(self._settings.runs_path):
            record = self._ended.get(folder.name)
            if record is None:
                with suppress(OSError, InputError):
                    record = run_record.read(folder)
            if record is not None and record.application_id is not None:
                found.setdefault(record.application_id, []).append(record)
            if record is not None and record.outcome != "running":
                self._ended[folder.name] = record
        return found

    def _has_ended(self, log: EventLog, runs: list[RunRecord]) -> bool:
        """Whether an application has ended, and not so long ago that its report would be deleted again."""
        days, age = self._settings.retention.days, time.time() - log.modified()
        if days is not None and age > days * DAY_SECONDS:
            return False
        if any(liveness.is_running(run.folder) for run in runs):
            return False
        return age > ABANDONED_SECONDS or is_finished(log.path) or any(run.outcome in KILLED for run in runs)

    def _write(self, log: EventLog, runs: list[RunRecord]) -> None:
        """Writes reports, and the run profile that `serve` lists; what it cannot read is noted once."""
        self._done.add(log.key)
        name = index.file_name(application_of(log.key))
        about: dict[str, RunRecord | None] = {f"{run.run_id}.html": run for run in runs}
        about = about or {name: None}
        missing = {self._settings.reports_path / name: run for name, run in about.items()}
        missing = {output: run for output, run in missing.items() if not output.exists()}
        if not missing:
            return
        try:
            write_atomic(self._unfinished, log.key.encode())
            reading = read(log.path)
            analysis = analyze(reading, self._settings, self._thresholds)
            if not reading.forgotten:
                analysis.save_baseline(is_good=all(run.outcome == "succeeded" for run in runs) if runs else None)
            for output, run in missing.items():
                analysis.report(output, _info(run))
            index.write(self._settings.reports_path)
        except Exception as error:  # noqa: BLE001 - other applications get their reports
            self._note(f"no report about {log.path}: {message_of(error)}")
        self._unfinished.unlink(missing_ok=True)

    def _report_trouble(self, trouble: str | None) -> None:
        """Notes what hinders it when that begins."""
        if trouble is not None and trouble != self._trouble:
            self._note(trouble)
        self._trouble = trouble

    def _report_unsent(self, trouble: str) -> None:
        """Notes what hinders the copies to the run store, once for each reason."""
        reason = trouble.rpartition("; ")[0]
        if reason not in self._unsent:
            self._unsent.add(reason)
            self._note(trouble)


def _folders(runs: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (folder for folder in runs.iterdir() if not folder.name.startswith("."))


def _info(run: RunRecord | None) -> RunInfo | None:
    return None if run is None else run_info.read(run.folder)

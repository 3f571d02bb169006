"""Reports of the applications whose event logs are in a folder: written when they have ended, whoever ran them."""

import threading
import time
from collections.abc import Callable
from typing import Final

from spark_app.errors import InputError, message_of
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_files import EventLog, newest_first
from spark_app.eventlog.parse.log_tailer import application_of, is_finished
from spark_app.eventlog.reader import read
from spark_app.observe import retention, run_copies
from spark_app.observe.analysis import analyze
from spark_app.observe.retention import DAY_SECONDS
from spark_app.report import index
from spark_app.settings import Settings

LOOK_SECONDS: Final = 10.0
"""The interval at which a folder is looked at."""
ABANDONED_SECONDS: Final = 3600.0
"""Seconds without a write after which an application that has not closed its log has ended, too."""


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
        due = [log for log in reversed(logs) if log.key not in self._done and self._has_ended(log)]
        for log in due:
            self._write(log)
        run_copies.send(self._settings, note=self._report_unsent)
        if due:
            retention.prune_daily(self._settings, note=self._note)

    def _has_ended(self, log: EventLog) -> bool:
        """Whether an application has ended, and not so long ago that its report would be deleted again."""
        days, age = self._settings.retention.days, time.time() - log.modified()
        if days is not None and age > days * DAY_SECONDS:
            return False
        return age > ABANDONED_SECONDS or is_finished(log.path)

    def _write(self, log: EventLog) -> None:
        """Writes a report, and the run profile that `serve` lists; what it cannot read is noted once."""
        self._done.add(log.key)
        output = self._settings.reports_path / index.file_name(application_of(log.key))
        if output.exists():
            return
        try:
            reading = read(log.path)
            analysis = analyze(reading, self._settings, self._thresholds)
            if not reading.forgotten:
                analysis.save_baseline()
            analysis.report(output)
            index.write(self._settings.reports_path)
        except Exception as error:  # noqa: BLE001 - other applications get their reports
            self._note(f"no report about {log.path}: {message_of(error)}")

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

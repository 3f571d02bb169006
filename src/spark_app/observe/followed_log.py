"""The event log of queries while they run: read as Spark writes it, exported, and kept small."""

import threading
from pathlib import Path
from typing import Final

from spark_app.eventlog.bridge import eviction
from spark_app.eventlog.bridge.compaction import compact
from spark_app.eventlog.bridge.eviction import Eviction
from spark_app.eventlog.bridge.live_export import LiveExport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.labels import LabelSources
from spark_app.eventlog.model.application import Ended
from spark_app.eventlog.model.streams import Batch
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.reader import Reader, Reading
from spark_app.settings import Settings
from spark_app.telemetry.export import resource_attributes

MEGABYTE: Final = 1_000_000
POLL_SECONDS: Final = 1.0


class FollowedLog:
    """A thread that reads the log of an application from its start on, in bounded memory.

    A report at the end needs what it has read, and not the log. A failure of it costs the export and the report, never
    the queries.

    Attributes:
        batches: How many micro-batches have ended so far.
    """

    def __init__(self, log: Path, settings: Settings, thresholds: Thresholds) -> None:
        """Starts to read.

        Args:
            log: The folder of rolled files.
            settings: The configuration.
            thresholds: Thresholds of the diagnoses.
        """
        self._log, self.batches = log, 0
        self._reader = Reader(log, listen=self._take)
        self._eviction = Eviction(self._reader.app, kept=eviction.MAX_OF_STREAMS, strips_at_end=False)
        self._settings, self._thresholds = settings, thresholds
        self._export = _export(log, self._reader, settings, thresholds)
        self._trouble: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="event-log", daemon=True)
        self._thread.start()

    def finish(self, *, patience: float) -> tuple[Reading, str | None]:
        """Reads the rest of the log, and exports it.

        Args:
            patience: Seconds that the endpoint may take.

        Returns:
            What the log says; and what was not exported of it, or went wrong, in words.

        Raises:
            OSError: A file of the log cannot be read.
        """
        self._is_over.set()
        self._thread.join()
        self._read()
        unsent = (self._export.finish(patience) if self._export is not None else None) or self._trouble
        reader = self._reader
        reader.tailer.close()
        is_finished, forgotten = reader.tailer.is_finished, self._eviction.forgotten
        lines = reader.unreadable_lines
        return Reading(self._log, reader.app, reader.read_errors, lines, is_finished, forgotten), unsent

    def _follow(self) -> None:
        while not self._is_over.wait(POLL_SECONDS):
            try:
                self._read()
                self._compact()
            except Exception as error:  # noqa: BLE001 - a disk may be full for a while; `finish` says what went wrong last
                self._trouble = f"the event log was not followed all the time: {error}"

    def _read(self) -> None:
        for line in self._reader.tailer.new():
            self._reader.take(line)
        if self._export is not None:
            self._export.flush()

    def _compact(self) -> None:
        limit = self._settings.retention.stream_megabytes
        if limit is not None:
            read = self._reader.tailer.number
            compact(self._log, limit=int(limit * MEGABYTE), read=read, thresholds=self._thresholds)

    def _take(self, event: Event, ended: Ended | None) -> None:
        if self._export is not None:
            self._export.take(event, ended)
        self.batches += isinstance(ended, Batch)
        if ended is not None:
            self._eviction.after(ended)


def _export(log: Path, reader: Reader, settings: Settings, thresholds: Thresholds) -> LiveExport | None:
    """The export of the log; None where a bridge exports it, or nothing is to be exported."""
    if settings.event_log_exporter != "runner":
        return None
    labels = LabelSources.configured(settings, resource_attributes())
    export = LiveExport(log, reader.app, environment=settings.environment, thresholds=thresholds, labels=labels)
    return export if export.has_endpoint else None

"""The report of an application while it runs: its log is read on, and the page is rendered again if there is more."""

from collections.abc import Callable
from pathlib import Path

from spark_app.annexes.live import live_page
from spark_app.eventlog.bridge import eviction
from spark_app.eventlog.bridge.eviction import Eviction
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Ended
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_tailer import IN_PROGRESS
from spark_app.eventlog.reader import Reader, Reading
from spark_app.observe.analysis import analyze
from spark_app.report import run_info
from spark_app.settings import Settings

Find = Callable[[], LogPath | None]


class LiveReport:
    """The page of the application of a log; of another log, it begins anew."""

    def __init__(
        self,
        find: Find,
        settings: Settings,
        thresholds: Thresholds,
        *,
        run: Path | None = None,
        is_alive: bool | None = None,
    ) -> None:
        """Reads nothing yet.

        Args:
            find: Finds the log; None where it does not exist yet.
            settings: The configuration.
            thresholds: Thresholds of the diagnoses.
            run: The folder of the spark-app run that the page is about.
            is_alive: Whether the application runs, where the command that started it knows.
        """
        # Rendered each second: no request to the run store.
        self._find, self._settings, self._thresholds = find, settings.model_copy(update={"run_store": None}), thresholds
        self._run, self._is_alive = run, is_alive
        self._reader: Reader | None = None

    def __call__(self) -> bytes | None:
        """The page; None where the log has nothing new, or there is no application yet."""
        log = self._find()
        if log is None:
            return None
        if self._reader is None or _key(self._reader.tailer.log) != _key(log):
            self.close()
            self._reader = Reader(log, listen=self._forget)
            self._eviction = Eviction(self._reader.app, kept=eviction.MAX_OF_STREAMS, strips_at_end=False)
        reader, before = self._reader, self._reader.events
        for line in reader.tailer.new():
            reader.take(line)
        if reader.app.started is None and not reader.app.jobs:
            return None
        if reader.events == before:
            return None
        reader.app.is_alive = self._is_alive if reader.app.ended is None else None
        reading = Reading(
            log,
            reader.app,
            reader.read_errors,
            reader.unreadable_lines,
            reader.tailer.is_finished,
            self._eviction.forgotten,
        )
        run = run_info.read(self._run) if self._run else None
        return analyze(reading, self._settings, self._thresholds).page(run, live_page.FRAME)

    def _forget(self, _: Event, ended: Ended | None) -> None:
        """Keeps a page of streaming queries within bounds: they may run for months."""
        if ended is not None and self._reader is not None and self._reader.app.streams.queries:
            self._eviction.after(ended)

    def close(self) -> None:
        """Ends the reading."""
        if self._reader is not None:
            self._reader.tailer.close()


def _key(log: LogPath) -> str:
    """The name of a log, which is the same while it grows and when it is finished."""
    return log.name.removesuffix(IN_PROGRESS)

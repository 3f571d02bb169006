"""The report of an application while it runs: its log is read on, and the page is made again if there is more."""

from collections.abc import Callable
from pathlib import Path

from spark_app.eventlog.bridge import eviction
from spark_app.eventlog.bridge.eviction import Eviction
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Ended
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_tailer import IN_PROGRESS
from spark_app.eventlog.reader import Reader, Reading
from spark_app.observe.analysis import analyze
from spark_app.observe.driver_api import DriverApi
from spark_app.observe.event_log_injection import LAUNCH
from spark_app.observe.live_stacks import LiveStacks
from spark_app.report import run_info
from spark_app.report.sections.now import RunningStage
from spark_app.report.sections.stacks_now import Window
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
        stacks: LiveStacks | None = None,
    ) -> None:
        """Reads nothing yet.

        Args:
            find: Finds the log; None where there is none yet.
            settings: The configuration.
            thresholds: Thresholds of the diagnoses.
            run: The folder of the spark-app run that the page is about.
            is_alive: Whether the application runs, where whoever started it knows.
            stacks: The samples of stacks of its processes; None where none are taken.
        """
        # Rendered each second: no request to the run store.
        self._find, self._settings, self._thresholds = find, settings.model_copy(update={"run_store": None}), thresholds
        self._run, self._is_alive, self._stacks = run, is_alive, stacks
        self._window: Window | None = None
        self._reader: Reader | None = None
        self._driver, self._running = DriverApi(), list[RunningStage]()

    def __call__(self) -> bytes | None:
        """The page; None where neither the log nor the driver has anything new, or there is no application yet."""
        log = self._find()
        if log is None:
            return None
        if self._reader is None or _key(self._reader.tailer.log) != _key(log):
            self.close()
            self._driver, self._running = DriverApi(), []
            if self._stacks is not None:
                self._stacks.forget()
            self._reader = Reader(log, listen=self._forget)
            self._eviction = Eviction(self._reader.app, kept=eviction.KEPT_OF_STREAMS, strips_at_end=False)
        reader, before = self._reader, self._reader.events
        for line in reader.tailer.new():
            reader.take(line)
            if self._stacks is not None:
                self._stacks.take(line)
        if reader.app.started is None and not reader.app.jobs:
            return None
        known, self._running = self._running, self._driver.stages(reader.app)
        shown, self._window = self._window, self._samples()
        if reader.events == before and self._running == known and self._window is shown:
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
        run = run_info.of(self._run) if self._run else None
        return analyze(reading, self._settings, self._thresholds).live_page(run, self._running, self._window)

    def _samples(self) -> Window | None:
        """The samples of stacks of the last seconds."""
        if self._stacks is None or self._reader is None:
            return None
        app = self._reader.app
        return self._stacks.window(app, app.properties.get(LAUNCH, ""), self._running)

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

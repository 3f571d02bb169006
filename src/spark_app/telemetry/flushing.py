"""Flushes the open runs of a process every few seconds, so that a run of weeks is seen while it lasts."""

import threading
from collections.abc import Mapping
from typing import Final, Protocol

from spark_app.telemetry.errors import TelemetryErrors

FLUSH_SECONDS: Final = 4.0
"""Between two flushes, so that metrics are written and sent within 5 s, unless OTEL_METRIC_EXPORT_INTERVAL is set."""


def metric_export_seconds(variables: Mapping[str, str], *, default: float) -> float:
    """The time between two exports of metrics: OTEL_METRIC_EXPORT_INTERVAL, in milliseconds, or else a default."""
    text = variables.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    return int(text) / 1000 if text.isdecimal() and int(text) else default


class Flushable(Protocol):
    """Something that is flushed while it is open."""

    def flush(self) -> None:
        """Writes and sends what was recorded since the last time."""


class PeriodicFlush:
    """One daemon thread per process, which starts with the first run."""

    def __init__(self, *, errors: TelemetryErrors, seconds: float = FLUSH_SECONDS) -> None:
        """No run is open."""
        self._errors = errors
        self._seconds = seconds
        self._runs: list[Flushable] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, run: Flushable) -> None:
        """Flushes a run until it is removed."""
        with self._lock:
            self._runs.append(run)
            if self._thread is None:
                self._thread = threading.Thread(target=self._flush_open_runs, name="telemetry-flush", daemon=True)
                self._thread.start()

    def remove(self, run: Flushable) -> None:
        """Stops flushing a run, after a flush of it that is under way."""
        with self._lock:
            self._runs = [each for each in self._runs if each is not run]

    def close(self) -> None:
        """Ends the thread, without waiting for it."""
        self._closing.set()

    def _flush_open_runs(self) -> None:
        while not self._closing.wait(self._seconds):
            for run in tuple(self._runs):
                with self._lock:
                    if run in self._runs:
                        self._errors.guard("a run was not flushed", run.flush)

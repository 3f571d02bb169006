"""Exports a finished log from the program that reads it, if no bridge follows the log."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, ParamSpec

from spark_app.eventlog.bridge.event_processor import EventProcessor
from spark_app.eventlog.bridge.metrics import Aggregate
from spark_app.eventlog.bridge.service import Otlp
from spark_app.eventlog.bridge.span_queue import MAX_BATCH, MAX_BATCH_WEIGHT, OwnedSpan
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.reader import Listener
from spark_app.eventlog.spans import SparkSpan
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import otlp_client

STALLED_SECONDS: Final = 2.0
"""How long a later request may take, after the collector has accepted one."""
_LOOK_SECONDS: Final = 0.05
NOT_EXPORTED: Final = "Spark's spans are not exported"

P = ParamSpec("P")
IsWanted = Callable[[Application], bool]


class LogExport:
    """Exports applications over OTLP while their logs are read for something else, each log decoded once.

    Batches go out on a thread while the log is read. After a rejected or late request nothing more is exported, and
    reading goes on.
    """

    def __init__(
        self,
        *,
        environment: str,
        thresholds: Thresholds,
        labels: LabelSources = NO_LABELS,
        patience: float,
        errors: TelemetryErrors,
    ) -> None:
        """Opens the endpoints.

        Args:
            environment: The deployment environment of the applications.
            thresholds: Thresholds of the diagnoses.
            labels: Where the labels of applications are.
            patience: Seconds that the first request, with the first span, may take.
            errors: Collects what goes wrong.
        """
        self._client = otlp_client(errors=errors)
        self._otlp = Otlp(self._client, environment=environment)
        self._thresholds, self._labels, self._patience, self._errors = thresholds, labels, patience, errors
        self._logs: list[_ExportedLog] = []

    def listener(self, log: LogPath, app: Application, *, is_wanted: IsWanted = lambda _: True) -> Listener | None:
        """A listener that exports one log; None without an endpoint, or after an earlier log was not accepted.

        Args:
            log: The file, or the folder of rolled files.
            app: The application that takes the events of the log.
            is_wanted: Whether the application is exported; it is called once, before the first span.
        """
        if not (self._client.takes_spans or self._client.takes_metrics) or self.is_given_up:
            return None
        sending = _Sending(self._otlp, patience=self._patience, errors=self._errors)
        exported = _ExportedLog(log, app, sending, self._thresholds, self._labels, is_wanted=is_wanted)
        self._logs.append(exported)
        return exported

    @property
    def is_given_up(self) -> bool:
        """Whether a request was rejected or late."""
        return any(exported.is_given_up for exported in self._logs)

    def finish(self) -> bool:
        """Waits until the export has succeeded or stopped, and closes the endpoints, which cancels a late request.

        Returns:
            Whether the collector accepted everything.
        """
        accepted = [exported.finish() for exported in self._logs]
        self._client.close()
        return all(accepted)


class _ExportedLog:
    """The listener of one log. It raises nothing: an error ends the export of the log and is reported once."""

    def __init__(
        self,
        log: LogPath,
        app: Application,
        sending: "_Sending",
        thresholds: Thresholds,
        labels: LabelSources,
        *,
        is_wanted: IsWanted,
    ) -> None:
        self._processor = EventProcessor(app, on_span=self._put, thresholds=thresholds, labels=labels)
        self._sending, self._is_wanted = sending, is_wanted
        self._wants: bool | None = None
        self._has_ended = False

    @property
    def is_given_up(self) -> bool:
        return self._wants is not False and self._sending.is_given_up

    def take(self, event: Event, ended: Ended | None) -> None:
        if self._wants is not False and not self._sending.is_given_up:
            self._sending.guard(self._processor.take, event, ended)

    def end(self) -> None:
        if self._wants is not False and not self._sending.is_given_up:
            self._sending.guard(self._finish_processor)

    def finish(self) -> bool:
        is_accepted = self._wants is False or (self._has_ended and self._sending.wait())
        self._sending.close()
        return is_accepted

    def _finish_processor(self) -> None:
        self._processor.end()
        if self._wants:
            self._sending.finish(self._processor.aggregator.aggregate())
            self._has_ended = True

    def _put(self, application: str, span: SparkSpan) -> None:
        if self._wants is None:
            self._wants = self._is_wanted(self._processor.app)
        if self._wants:
            self._sending.put(application, span)


class _Sending:
    """Sends batches from a thread of its own, until one is rejected or late."""

    def __init__(self, otlp: Otlp, *, patience: float, errors: TelemetryErrors) -> None:
        self.is_done = False
        self._otlp, self._patience = otlp, patience
        self._batch: list[OwnedSpan] = []
        self._weight, self._allowed = (
            0,
            1,
        )  # the first span is a batch of its own, which shows whether a collector listens
        self._busy_since: float | None = None
        self._waiting: SimpleQueue[list[OwnedSpan] | Aggregate | None] = SimpleQueue()
        self._errors, self._has_failed = errors, False
        self._thread = threading.Thread(target=errors.guard, args=(NOT_EXPORTED, self._work), daemon=True)
        self._thread.start()

    @property
    def is_given_up(self) -> bool:
        """Whether a request was rejected or late."""
        since = self._busy_since
        is_late = since is not None and time.monotonic() > since + self._patience
        return not self.is_done and (is_late or self._has_failed or not self._thread.is_alive())

    def guard(self, action: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Runs an action; an exception is reported as a problem and ends the export."""
        if not self._errors.guard(NOT_EXPORTED, action, *args, **kwargs):
            self._has_failed = True

    def put(self, application: str, span: SparkSpan) -> None:
        """Queues a span for the next batch."""
        owned = OwnedSpan(application, span)
        self._batch.append(owned)
        self._weight += owned.weight
        if len(self._batch) == self._allowed or self._weight > MAX_BATCH_WEIGHT:
            self._flush()

    def finish(self, numbers: Aggregate) -> None:
        """Queues the remaining spans and then the totals."""
        self._flush()
        self._waiting.put(numbers)

    def wait(self) -> bool:
        """Waits until the export has succeeded or stopped; returns whether the collector accepted everything."""
        while not self.is_done and not self.is_given_up:
            self._thread.join(_LOOK_SECONDS)
        return self.is_done

    def close(self) -> None:
        """Ends the thread."""
        self._waiting.put(None)

    def _flush(self) -> None:
        if self._batch:
            self._waiting.put(self._batch)
        self._batch, self._weight, self._allowed = [], 0, MAX_BATCH

    def _work(self) -> None:
        while not self.is_done and (batch := self._waiting.get()) is not None:
            self._busy_since = time.monotonic()
            is_last = isinstance(batch, Aggregate)
            is_accepted = self._otlp.new_numbers(batch) if isinstance(batch, Aggregate) else self._otlp.spans(batch)
            if not is_accepted or self.is_given_up:
                return
            self._busy_since, self._patience, self.is_done = None, STALLED_SECONDS, is_last

"""Exports an application while the program that runs it reads its log, if no bridge follows the log."""

import time
from collections import deque
from typing import Final

from spark_app.eventlog.bridge.event_processor import EventProcessor
from spark_app.eventlog.bridge.metrics import Aggregate, merged
from spark_app.eventlog.bridge.one_shot import NOT_EXPORTED
from spark_app.eventlog.bridge.service import METRICS_SECONDS, Otlp
from spark_app.eventlog.bridge.span_queue import OwnedSpan, SpanQueue, SumSender
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.labels import NO_LABELS, LabelSources
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.parse.events import Event
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.span_ids import of_application
from spark_app.eventlog.spans import SparkSpan
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import otlp_client

MAX_HELD: Final = 1000
"""Spans below the application that wait for its end; its own span ends their trace. Older ones are left out."""


class LiveExport:
    """Exports one application from event to event, with threads of its own for the endpoint; it raises nothing.

    Micro-batches and what steps do leave at once. What is below the application itself waits for its end: if it is
    killed, no process would send their parent.
    """

    def __init__(
        self,
        log: LogPath,
        app: Application,
        *,
        environment: str,
        thresholds: Thresholds,
        labels: LabelSources = NO_LABELS,
    ) -> None:
        """Opens the endpoints.

        Args:
            log: The folder of rolled files.
            app: The application that takes the events of the log.
            environment: The deployment environment of the application.
            thresholds: Thresholds of the diagnoses.
            labels: Where the labels of the application are.
        """
        self._errors = TelemetryErrors()
        self._client = otlp_client(errors=self._errors)
        self._otlp = Otlp(self._client, environment=environment)
        self._app = app
        self._processor = EventProcessor(app, on_span=self._put, thresholds=thresholds, labels=labels)
        self._held: deque[OwnedSpan] = deque(maxlen=MAX_HELD)
        self._spans = SpanQueue(self._otlp.spans)
        self._numbers = SumSender[Aggregate](self._send_numbers, lambda one, other: merged([one, other]))
        self._measured = time.monotonic()

    @property
    def has_endpoint(self) -> bool:
        """Whether there is an endpoint for spans or metrics."""
        return self._client.takes_spans or self._client.takes_metrics

    def take(self, event: Event, ended: Ended | None) -> None:
        """Takes an event, and what ended with it, after the application took it."""
        self._errors.guard(NOT_EXPORTED, self._processor.take, event, ended)

    def flush(self) -> None:
        """Sends what waits; metrics every few seconds."""
        self._spans.flush()
        if time.monotonic() - self._measured >= METRICS_SECONDS:
            self._measured = time.monotonic()
            self._numbers.put(self._processor.aggregator.drained())

    def finish(self, seconds: float) -> str | None:
        """Takes the end of the log, and sends the rest within this time; returns what was not sent, in words."""
        deadline = time.monotonic() + seconds
        self._errors.guard(NOT_EXPORTED, self._processor.end)
        for owned in self._held:
            self._spans.put(owned)
        self._numbers.put(self._processor.aggregator.drained())
        if seconds > 0:
            self._spans.close(seconds)
            self._numbers.close(max(0.0, deadline - time.monotonic()))
        lost = self._spans.dropped + self._spans.queued
        return f"{NOT_EXPORTED}: the endpoint did not accept {lost} of them" if lost else None

    def _send_numbers(self, numbers: Aggregate) -> bool:
        """Whether counts are done with: those whose answer is missing may have arrived, and would count twice."""
        if self._client.takes_metrics and not self._client.accepts_metrics():
            return False
        self._otlp.new_numbers(numbers)
        return True

    def _put(self, application: str, span: SparkSpan) -> None:
        owned = OwnedSpan(application, span)
        if span.ids.trace_id == of_application(self._app).trace_id:
            self._held.append(owned)
        else:
            self._spans.put(owned)

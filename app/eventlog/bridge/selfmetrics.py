"""Figures about a bridge itself, on a port: `/metrics` for Prometheus, `/health` for whoever restarts it."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.errors import MachineError
from app.eventlog.bridge.followed import Counts

ALIVE_SECONDS: Final = 20.0
"""How long one turn of the loop may take: a line of many megabytes is decoded in one turn."""
_PREFIX: Final = "spark_bridge_"


@dataclass(slots=True)
class Standing:
    """Figures about a bridge, kept up to date by its loop and read by the server.

    Attributes:
        beat: When its loop last came round, in monotonic seconds.
        read: What was read of all logs since it started.
        spans_sent, spans_dropped, spans_waiting: Spans that were made of that.
        span_failures, metric_failures, state_failures: Requests not accepted; journals not written.
        logs_followed, logs_done: Logs that may still grow; logs that are finished or given up.
        unread_bytes: On disk, and not read yet.
        lag_seconds: For how long the oldest of these bytes have waited.
    """

    beat: float = field(default_factory=time.monotonic)
    read: Counts = field(default_factory=Counts)
    spans_sent: int = 0
    spans_dropped: int = 0
    spans_waiting: int = 0
    span_failures: int = 0
    metric_failures: int = 0
    state_failures: int = 0
    logs_followed: int = 0
    logs_done: int = 0
    unread_bytes: int = 0
    lag_seconds: float = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the loop goes round."""
        return time.monotonic() - self.beat < ALIVE_SECONDS


class SelfMetrics(Collector):
    """A server of the figures about a bridge, on a thread of its own."""

    def __init__(self, standing: Standing, folder: Path, *, host: str, port: int) -> None:
        """Begins to listen.

        Raises:
            MachineError: The port is taken, or the host is none of this machine.
        """
        self.standing, self._folder = standing, folder
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            self._server = _Server((host, port), _Handler)
        except OSError as error:
            text = f"cannot listen on {host}:{port}: {error.strerror}; choose with --metrics-host and --metrics-port"
            raise MachineError(text) from error
        self._server.standing, self._server.registry = standing, registry
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="self-metrics", daemon=True).start()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def collect(self) -> Iterator[Metric]:
        """Every figure as it is now; a figure that is not known is absent."""
        now = self.standing
        yield _counter("events", "Lines read of event logs that hold an event.", now.read.events)
        yield _counter("unreadable_lines", "Lines that hold none, or one that is broken.", now.read.unreadable_lines)
        yield _counter("lost_files", "Files of logs that went or broke before they were read.", now.read.lost_files)
        yield _counter("spans_sent", "Spans that the collector has accepted.", now.spans_sent)
        yield _counter("spans_dropped", "Spans that were lost: too many waited, or refused.", now.spans_dropped)
        yield _counter("tasks_suppressed", "Ordinary tasks, counted but not told as spans.", now.read.tasks_suppressed)
        yield _counter("spans_suppressed", "Spans of traces that are not sampled.", now.read.spans_suppressed)
        yield _counter("state_failures", "Times that the state could not be written.", now.state_failures)
        failures = CounterMetricFamily(
            f"{_PREFIX}export_failures", "Requests that the collector did not accept.", labels=["signal"]
        )
        failures.add_metric(["traces"], now.span_failures)
        failures.add_metric(["metrics"], now.metric_failures)
        yield failures
        yield _gauge("spans_waiting", "Spans that wait to be sent.", now.spans_waiting)
        yield _gauge("logs_followed", "Event logs that may still grow.", now.logs_followed)
        yield _gauge("logs_done", "Event logs that are finished, or silent for long.", now.logs_done)
        yield _gauge("unread_bytes", "Bytes of event logs on disk that were not read yet.", now.unread_bytes)
        yield _gauge("lag_seconds", "Age of the oldest of them.", now.lag_seconds)
        yield _gauge("silence_seconds", "Since its loop last came round.", time.monotonic() - now.beat)
        with suppress(OSError):  # the folder may not be there yet
            volume = shutil.disk_usage(self._folder)
            yield _gauge("volume_free_bytes", "Free bytes of the volume of the event logs.", volume.free)
            yield _gauge("volume_size_bytes", "Bytes that this volume holds.", volume.total)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{_PREFIX}{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{_PREFIX}{name}", text, value=value)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    standing: Standing
    registry: CollectorRegistry

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asks and goes away is no concern of the bridge."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        """Answers one question."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, generate_latest(self.server.registry), CONTENT_TYPE_LATEST)
            case "/health" if self.server.standing.is_alive:
                self._answer(200, b"alive\n")
            case "/health":
                self._answer(503, b"the bridge hangs\n")
            case _:
                self._answer(404, b"there is /metrics and /health\n")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Says nothing."""

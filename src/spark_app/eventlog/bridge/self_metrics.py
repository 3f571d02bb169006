"""The bridge serves its own metrics at `/metrics` for Prometheus, and `/health` for the process that restarts it."""

import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from spark_app.errors import MachineError
from spark_app.eventlog.bridge.certificate import CertifiedServer, ServerCertificate
from spark_app.eventlog.bridge.log_processor import ReadCounts
from spark_app.eventlog.parse.locations import LogPath
from spark_app.vocabulary import spark_names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.prometheus_names import label, series

ALIVE_SECONDS: Final = 20.0
"""How long one turn of the loop may take: a line of many megabytes is decoded in one turn."""


@dataclass(slots=True)
class BridgeStatus:
    """The figures of a bridge: its loop updates them, and its server reads them.

    Attributes:
        last_heartbeat: When the loop last ran, in monotonic seconds.
        is_standby: Whether it waits for another bridge to end.
        read: What the bridge has read of all logs since it started.
        spans_sent, spans_dropped, spans_waiting: Spans of these logs, by what became of them.
        span_failures, metric_failures, state_failures: Requests that the collector did not accept, and failed writes
            of the checkpoint.
        logs_followed, logs_done: Logs that may still grow; logs that are finished or abandoned.
        unread_bytes: Bytes on disk that the bridge has not read yet.
        lag_seconds: How long the oldest of these bytes have waited.
    """

    last_heartbeat: float = field(default_factory=time.monotonic)
    is_standby: bool = False
    read: ReadCounts = field(default_factory=ReadCounts)
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
        """Whether the loop has run lately."""
        return time.monotonic() - self.last_heartbeat < ALIVE_SECONDS


class SelfMetrics(Collector):
    """Serves the metrics of a bridge from a thread of its own."""

    def __init__(
        self, status: BridgeStatus, folder: LogPath, *, host: str, port: int, certificate: Path | None = None
    ) -> None:
        """Starts to listen, by HTTPS if there is a PEM file with a certificate.

        Its key is in the same file, or in `key.pem` beside it. What is renewed there is used from then on.

        Raises:
            MachineError: The port is in use, or this machine has no such address, or the file is no certificate.
        """
        held = None if certificate is None else ServerCertificate(certificate)
        self.status, self._folder = status, folder
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            self._server = _Server((host, port), _Handler)
        except OSError as error:
            text = (
                f"cannot listen on {host}:{port}: {error.strerror}; set others with --metrics-host and --metrics-port"
            )
            raise MachineError(text) from error
        if held is not None:
            self._server.certify(held)
        self._server.status, self._server.registry = status, registry
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="self-metrics", daemon=True).start()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def collect(self) -> Iterator[MetricFamily]:
        """The current value of every metric; a metric without a value is absent."""
        for metric, value in self._values().items():
            yield _family(metric, {(): value})
        failures = {"traces": self.status.span_failures, "metrics": self.status.metric_failures}
        yield _family(spark_names.BRIDGE_EXPORT_FAILURES, {(signal,): count for signal, count in failures.items()})

    def _values(self) -> dict[Metric, float]:
        status, read = self.status, self.status.read
        values: dict[Metric, float] = {
            spark_names.BRIDGE_EVENTS: read.events,
            spark_names.BRIDGE_UNREADABLE_LINES: read.unreadable_lines,
            spark_names.BRIDGE_FAILED_EVENTS: read.failed_events,
            spark_names.BRIDGE_LOST_FILES: read.lost_files,
            spark_names.BRIDGE_SPANS_SENT: status.spans_sent,
            spark_names.BRIDGE_SPANS_DROPPED: status.spans_dropped,
            spark_names.BRIDGE_TASKS_SUPPRESSED: read.tasks_suppressed,
            spark_names.BRIDGE_SPANS_SUPPRESSED: read.spans_suppressed,
            spark_names.BRIDGE_STATE_FAILURES: status.state_failures,
            spark_names.BRIDGE_SPANS_WAITING: status.spans_waiting,
            spark_names.BRIDGE_LOGS_FOLLOWED: status.logs_followed,
            spark_names.BRIDGE_LOGS_DONE: status.logs_done,
            spark_names.BRIDGE_UNREAD: status.unread_bytes,
            spark_names.BRIDGE_LAG: status.lag_seconds,
            spark_names.BRIDGE_SILENCE: time.monotonic() - status.last_heartbeat,
        }
        with suppress(OSError):  # the folder may not exist yet
            volume = shutil.disk_usage(str(self._folder))
            values |= {spark_names.BRIDGE_VOLUME_FREE: volume.free, spark_names.BRIDGE_VOLUME_SIZE: volume.total}
        return values


def _family(metric: Metric, samples: Mapping[tuple[str, ...], float]) -> MetricFamily:
    """A metric of the catalogue for `/metrics`, with its values by the values of its labels."""
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(series(metric), metric.meaning, labels=[label(attribute) for attribute in metric.labels])
    for labels, value in samples.items():
        family.add_metric(labels, value)
    return family


class _Server(CertifiedServer):
    status: BridgeStatus
    registry: CollectorRegistry


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_GET(self) -> None:
        """Answers one request."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, generate_latest(self.server.registry), CONTENT_TYPE_LATEST)
            case "/health" if self.server.status.is_alive:
                self._answer(200, b"standby\n" if self.server.status.is_standby else b"alive\n")
            case "/health":
                self._answer(503, b"the main loop of the bridge hangs\n")
            case _:
                self._answer(404, b"not found; this server has /metrics and /health\n")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Logs no requests."""

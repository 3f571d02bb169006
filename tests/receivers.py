"""A real OTLP receiver on loopback ports, over gRPC and HTTP, that can also behave badly."""

import contextlib
import gzip
import os
import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Mode = Literal["normal", "refusing", "hanging"]
Protocol = Literal["grpc", "http/protobuf"]
PROTOCOLS: Final[tuple[Protocol, ...]] = ("grpc", "http/protobuf")
_LOOPBACK: Final = "127.0.0.1"
_SERVICES: Final[tuple[tuple[Any, Any], ...]] = (
    (traces_grpc.add_TraceServiceServicer_to_server, traces.ExportTraceServiceResponse),
    (metrics_grpc.add_MetricsServiceServicer_to_server, metrics.ExportMetricsServiceResponse),
    (logs_grpc.add_LogsServiceServicer_to_server, logs.ExportLogsServiceResponse),
)


class Receiver:
    """What was received, in order of arrival, flattened.

    `wait` holds back answers while the mode is `hanging`.
    """

    def __init__(self, mode: Mode) -> None:
        """Nothing received yet."""
        self.mode = mode
        self.spans: list[Span] = []
        self.metrics: list[Metric] = []
        self.logs: list[LogRecord] = []
        self.resources: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.grpc_endpoint = ""
        self.http_endpoint = ""
        self.released = threading.Event()

    def endpoint(self, protocol: Protocol) -> str:
        """The URL for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
        return self.grpc_endpoint if protocol == "grpc" else self.http_endpoint

    def take(self, request: Any, headers: dict[str, str]) -> bool:
        """Whether a request is accepted."""
        self.headers.append(headers)
        if self.mode == "hanging":
            self.released.wait()
        if self.mode != "normal":
            return False
        match request:
            case traces.ExportTraceServiceRequest():
                found: list[Any] = list(request.resource_spans)
                self.spans += [span for each in found for scope in each.scope_spans for span in scope.spans]
            case metrics.ExportMetricsServiceRequest():
                found = list(request.resource_metrics)
                self.metrics += [metric for each in found for scope in each.scope_metrics for metric in scope.metrics]
            case _:
                found = list(request.resource_logs)
                self.logs += [record for each in found for scope in each.scope_logs for record in scope.log_records]
        self.resources += [attributes(each.resource) for each in found]
        return True


def attributes(holder: Any) -> dict[str, Any]:
    """The attributes of a span, point, log record or resource as plain values."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in holder.attributes}


@contextlib.contextmanager
def receiver(mode: Mode = "normal") -> Iterator[Receiver]:
    """A receiver that listens on two free ports until the block ends."""
    found = Receiver(mode)
    with _grpc_server(found), _http_server(found):
        try:
            yield found
        finally:
            found.released.set()


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server((_LOOPBACK, 0)) as server:
        yield int(server.getsockname()[1])


def dead_port() -> int:
    """A port that nobody listens on, nor will: no system gives one of these to whoever asks for any."""
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server((_LOOPBACK, random.randrange(15_000, 30_000))) as server,
        ):
            return int(server.getsockname()[1])


@contextlib.contextmanager
def _grpc_server(found: Receiver) -> Iterator[None]:
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # as in spark_app.telemetry.export: a JVM may start
    server = grpc.server(ThreadPoolExecutor(max_workers=6))
    for add_to_server, answer in _SERVICES:
        add_to_server(_Service(found, answer), server)
    found.grpc_endpoint = f"http://{_LOOPBACK}:{server.add_insecure_port(f'{_LOOPBACK}:0')}"
    server.start()
    try:
        yield
    finally:
        found.released.set()
        server.stop(grace=None).wait()


class _Service:
    def __init__(self, found: Receiver, answer: Any) -> None:
        self._found = found
        self._answer = answer

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the name is OTLP's
        """Takes one request."""
        if not self._found.take(request, dict(context.invocation_metadata())):
            context.abort(grpc.StatusCode.UNAVAILABLE, "refused")
        return self._answer()


@contextlib.contextmanager
def _http_server(found: Receiver) -> Iterator[None]:
    with _HttpServer(found) as server:
        found.http_endpoint = f"http://{_LOOPBACK}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            found.released.set()
            server.shutdown()
            thread.join()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, found: Receiver) -> None:
        super().__init__((_LOOPBACK, 0), _Handler)
        self.found = found

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away while it is kept waiting is what some tests want."""


class _Handler(BaseHTTPRequestHandler):
    _REQUESTS: Final[dict[str, Any]] = {
        "/v1/traces": traces.ExportTraceServiceRequest,
        "/v1/metrics": metrics.ExportMetricsServiceRequest,
        "/v1/logs": logs.ExportLogsServiceRequest,
    }
    server: _HttpServer

    def do_POST(self) -> None:
        """Takes one request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_taken = self.server.found.take(self._REQUESTS[self.path].FromString(body), headers)
        self.send_response(200 if is_taken else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Says nothing."""

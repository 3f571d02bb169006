"""Sends telemetry to an OTLP endpoint, if the standard `OTEL_*` variables name one, and never waits for it."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Literal

from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricsData
from opentelemetry.sdk.trace.export import SpanExporter

from app.settings import process_environment
from app.telemetry.problems import Problems

Signal = Literal["traces", "metrics", "logs"]
PROTOCOLS: Final = ("grpc", "http/protobuf")
_EXPORTERS: Final[Mapping[Signal, tuple[str, str]]] = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}
_QUEUED: Final = 100
_WINDOW_NANOSECONDS: Final = 1_000_000


@dataclass(frozen=True)
class Exporters:
    """Where each signal goes besides the run's files; None is nowhere."""

    spans: SpanExporter | None = None
    metrics: MetricExporter | None = None
    logs: LogRecordExporter | None = None

    def present(self) -> list[Any]:
        """Those that exist."""
        return [exporter for exporter in (self.spans, self.metrics, self.logs) if exporter is not None]


def network_exporters(environment: Mapping[str, str], *, problems: Problems) -> Exporters:
    """The exporters that the environment asks for: none at all unless it names an endpoint."""
    made: dict[Signal, Any] = {}
    for signal in _EXPORTERS:
        problems.guard(f"{signal} are not sent", _make, signal, environment, made)
    return Exporters(spans=made.get("traces"), metrics=made.get("metrics"), logs=made.get("logs"))


def names_an_endpoint(environment: Mapping[str, str]) -> bool:
    """Whether anything is to be sent anywhere."""
    protocols = {signal: _variable(environment, "PROTOCOL", signal) or "" for signal in _EXPORTERS}
    return any(_endpoint(environment, signal, protocol) for signal, protocol in protocols.items())


def _make(signal: Signal, environment: Mapping[str, str], made: dict[Signal, Any]) -> None:
    """Adds the exporter of one signal; header, timeout, compression and certificate variables are read by the SDK."""
    protocol = _variable(environment, "PROTOCOL", signal) or "http/protobuf"
    endpoint = _endpoint(environment, signal, protocol)
    if endpoint is None or environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip() == "none":
        return
    if protocol not in PROTOCOLS:
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; this program speaks {' and '.join(PROTOCOLS)}")
    made[signal] = _exporter(signal, protocol, endpoint)


def _variable(environment: Mapping[str, str], name: str, signal: Signal) -> str | None:
    """The signal's own variable, else the general one; an empty one counts as absent."""
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}", f"OTEL_EXPORTER_OTLP_{name}"):
        if environment.get(variable, "").strip():
            return environment[variable].strip()
    return None


def _endpoint(environment: Mapping[str, str], signal: Signal, protocol: str) -> str | None:
    own = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if own or not base:
        return own or None
    return base if protocol == "grpc" else f"{base.rstrip('/')}/v1/{signal}"


def _exporter(signal: Signal, protocol: str, endpoint: str) -> Any:
    """Imported only when it is needed: requests and grpc cost a quarter of a second."""
    transport = "grpc" if protocol == "grpc" else "http"
    if transport == "grpc":
        # Its C core writes to the terminal, if only about each process that is started meanwhile.
        process_environment().setdefault("GRPC_VERBOSITY", "NONE")
    module, name = _EXPORTERS[signal]
    return getattr(import_module(f"opentelemetry.exporter.otlp.proto.{transport}.{module}"), name)(endpoint=endpoint)


class MetricSender:
    """Hands metrics to an exporter on a daemon thread, in order."""

    def __init__(self, exporter: MetricExporter, *, problems: Problems) -> None:
        """Starts the thread."""
        self._exporter = exporter
        self._problems = problems
        self._waiting: queue.Queue[MetricsData | None] = queue.Queue(_QUEUED)
        self._thread = threading.Thread(target=self._work, name="metric-sender", daemon=True)
        self._thread.start()

    def send(self, metrics: MetricsData) -> None:
        """Queues what was measured; when too much waits already, it is dropped and that is told."""
        try:
            self._waiting.put_nowait(narrowed(metrics))
        except queue.Full:
            self._problems.tell("metrics are produced faster than the endpoint takes them; some were dropped")

    def finish(self) -> None:
        """Waits until all is sent."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (metrics := self._waiting.get()) is not None:
            self._problems.guard("metrics were not sent", self._exporter.export, metrics)


def narrowed(metrics: MetricsData) -> MetricsData:
    """Deltas said to have happened just before they were collected.

    All one-shot runs share one series. A collector that adds deltas up drops one that starts before the series did;
    the long window of a run does, when another run of the pipeline reported meanwhile or the collector was restarted.
    """
    return replace(metrics, resource_metrics=[_narrowed_resource(resource) for resource in metrics.resource_metrics])


def _narrowed_resource(resource: Any) -> Any:
    scopes = [
        replace(scope, metrics=[_narrowed_metric(metric) for metric in scope.metrics])
        for scope in resource.scope_metrics
    ]
    return replace(resource, scope_metrics=scopes)


def _narrowed_metric(metric: Any) -> Any:
    data = metric.data
    if not hasattr(data, "aggregation_temporality"):  # a gauge
        return metric
    points = [
        replace(point, start_time_unix_nano=max(point.start_time_unix_nano, point.time_unix_nano - _WINDOW_NANOSECONDS))
        for point in data.data_points
    ]
    return replace(metric, data=replace(data, data_points=points))


@dataclass
class Deadline:
    """A moment by which several things in turn must be done."""

    seconds: float
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._began + self.seconds - time.monotonic())


def all_done(calls: Sequence[Callable[[], object]], *, deadline: Deadline, problems: Problems) -> bool:
    """Whether all calls, made at once on daemon threads, ended by a deadline; those that did not are left behind."""
    threads = [
        threading.Thread(target=problems.guard, args=("telemetry was not flushed", call), daemon=True) for call in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(deadline.left)
    return not any(thread.is_alive() for thread in threads)

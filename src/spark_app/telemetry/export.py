"""Sends telemetry to the OTLP endpoint that the standard `OTEL_*` variables name, without waiting for it."""

import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Literal

from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.resources import OTELResourceDetector
from opentelemetry.sdk.trace.export import SpanExporter

from spark_app.settings import process_environment
from spark_app.telemetry.errors import TelemetryErrors

Signal = Literal["traces", "metrics", "logs"]
Claim = Callable[[], bool]
PROTOCOLS: Final = ("grpc", "http/protobuf")
_OF_SDK: Final = "opentelemetry.exporter.otlp.proto"
_EXPORTERS: Final[Mapping[Signal, tuple[str, str]]] = {
    "traces": (f"{_OF_SDK}.{{}}.trace_exporter", "OTLPSpanExporter"),
    "metrics": (f"{_OF_SDK}.{{}}.metric_exporter", "OTLPMetricExporter"),
    "logs": (f"{_OF_SDK}.{{}}._log_exporter", "OTLPLogExporter"),
}
"""Module, by its protocol, and class."""
_MAX_QUEUED: Final = 100
AWAY_SECONDS: Final = 10.0
"""How long an endpoint that did not answer is not asked again; what is recorded meanwhile is sent from files."""
_WINDOW_NANOSECONDS: Final = 1_000_000


@dataclass(frozen=True)
class Exporters:
    """Where each signal is sent; None for a signal that is not sent."""

    spans: SpanExporter | None = None
    metrics: MetricExporter | None = None
    logs: LogRecordExporter | None = None

    def present(self) -> list[Any]:
        """The exporters that exist."""
        return [exporter for exporter in (self.spans, self.metrics, self.logs) if exporter is not None]


def network_exporters(environment: Mapping[str, str], *, errors: TelemetryErrors) -> Exporters:
    """The exporters that the environment asks for: none at all unless it names an endpoint."""
    exporters: dict[Signal, Any] = {}
    for signal in _EXPORTERS:
        errors.guard(f"{signal} are not sent", _add_exporter, signal, environment, exporters)
    return Exporters(exporters.get("traces"), exporters.get("metrics"), exporters.get("logs"))


def resource_attributes() -> dict[str, str]:
    """What `OTEL_RESOURCE_ATTRIBUTES` says of this process and of all that it exports."""
    return {name: str(value) for name, value in OTELResourceDetector().detect().attributes.items()}


def names_an_endpoint(environment: Mapping[str, str]) -> bool:
    """Whether the variables name an endpoint for at least one signal."""
    protocols = {signal: _variable(environment, "PROTOCOL", signal) or "" for signal in _EXPORTERS}
    return any(_endpoint(environment, signal, protocol) for signal, protocol in protocols.items())


def _add_exporter(signal: Signal, environment: Mapping[str, str], exporters: dict[Signal, Any]) -> None:
    """Adds the exporter of one signal; the SDK reads the variables of headers, timeouts, compression and TLS."""
    protocol = _variable(environment, "PROTOCOL", signal) or "http/protobuf"
    endpoint = _endpoint(environment, signal, protocol)
    if endpoint is None or environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip() == "none":
        return
    if protocol not in PROTOCOLS:
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; supported are {' and '.join(PROTOCOLS)}")
    exporters[signal] = _exporter(signal, protocol, endpoint)


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
        _configure_grpc(process_environment())
    module, name = _EXPORTERS[signal]
    return getattr(import_module(module.format(transport)), name)(endpoint=endpoint)


def _configure_grpc(environment: MutableMapping[str, str]) -> None:
    """Keeps the C core of gRPC away from the terminal, and from processes that are started beside it.

    With its fork handlers, which are on by default, 1 to 2 % of the processes started with a `preexec_fn` die before
    they run: gRPC starts its threads again in the child while the child closes their files. PySpark starts its JVM so.
    """
    environment.setdefault("GRPC_VERBOSITY", "NONE")
    environment.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class MetricSender:
    """Hands metrics to an exporter on a daemon thread, in order."""

    def __init__(self, exporter: MetricExporter, *, errors: TelemetryErrors) -> None:
        """Starts the thread."""
        self._exporter = exporter
        self._errors = errors
        self._away_until = 0.0
        self._queue: queue.Queue[tuple[MetricsData, Claim | None] | None] = queue.Queue(_MAX_QUEUED)
        self._thread = threading.Thread(target=self._export_queued, name="metric-sender", daemon=True)
        self._thread.start()

    def send(self, metrics: MetricsData, claim: Claim | None = None) -> None:
        """Queues metrics; when the queue is full, they are not sent and an error is kept.

        Args:
            metrics: The points of one collection.
            claim: Notes that they are sent, and returns whether that is written; None where they are in no file. It is
                called only if the endpoint accepts requests: without it, they can be sent later.
        """
        try:
            self._queue.put_nowait((with_bases(metrics), claim))
        except queue.Full:
            self._errors.add("some metrics were not sent: the endpoint takes them slower than they are recorded")

    def finish(self) -> None:
        """Waits until the queue is empty."""
        self._queue.put(None)
        self._thread.join()

    def _export_queued(self) -> None:
        while (queued := self._queue.get()) is not None:
            self._errors.guard("metrics were not sent", self._export, *queued)

    def _export(self, metrics: MetricsData, claim: Claim | None) -> None:
        if claim is None or (self._is_accepting() and claim()):
            self._exporter.export(metrics)

    def _is_accepting(self) -> bool:
        """Whether the endpoint accepts requests; while it is away, it is asked now and then, and nothing waits."""
        if time.monotonic() < self._away_until:
            return False
        is_accepting = accepts_metrics(self._exporter)
        self._away_until = 0.0 if is_accepting else time.monotonic() + AWAY_SECONDS
        return is_accepting


def accepts_metrics(exporter: MetricExporter) -> bool:
    """Whether the endpoint accepts a request without metrics.

    A failed request may have arrived, and metrics that are sent twice count twice. So each is sent after an empty one,
    which OTLP says a server answers with success: while the endpoint is away, no metrics are sent that would be lost.
    """
    return exporter.export(MetricsData([])) is MetricExportResult.SUCCESS


def with_bases(metrics: MetricsData) -> MetricsData:
    """Deltas, each after a delta of 0 that is dated just before it; anything else is unchanged.

    All runs share one series, which a collector adds up. Prometheus computes an increase from two values within a
    range: the 0 repeats the count before the run just before the count after it, however long ago the last run was. The
    windows start just before the deltas were collected: a collector drops a delta that starts before its series did,
    which happens if another run of the pipeline reports at the same time or the collector is restarted.
    """
    return replace(metrics, resource_metrics=[_based_resource(resource) for resource in metrics.resource_metrics])


def _based_resource(resource: Any) -> Any:
    scopes = [
        replace(scope, metrics=[_based_metric(metric) for metric in scope.metrics]) for scope in resource.scope_metrics
    ]
    return replace(resource, scope_metrics=scopes)


def _based_metric(metric: Any) -> Any:
    data = metric.data
    if getattr(data, "aggregation_temporality", None) is not AggregationTemporality.DELTA:  # a gauge, or totals
        return metric
    points = [based for point in data.data_points for based in _based_points(point)]
    return replace(metric, data=replace(data, data_points=points))


def _based_points(point: Any) -> list[Any]:
    end = point.time_unix_nano
    point = replace(point, start_time_unix_nano=max(point.start_time_unix_nano, end - _WINDOW_NANOSECONDS))
    if not (point.count if isinstance(point, HistogramDataPoint) else point.value):
        return [point]
    nothing: dict[str, Any] = {"value": 0}
    if isinstance(point, HistogramDataPoint):
        buckets = [0] * len(point.bucket_counts)
        nothing = {"count": 0, "sum": 0.0, "min": math.inf, "max": -math.inf, "bucket_counts": buckets}
    start, end = end - 2 * _WINDOW_NANOSECONDS, end - _WINDOW_NANOSECONDS
    return [replace(point, start_time_unix_nano=start, time_unix_nano=end, exemplars=[], **nothing), point]


@dataclass
class Deadline:
    """A moment by which several calls, one after the other, must have returned."""

    seconds: float
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until then; 0 when it has passed."""
        return max(0.0, self._began + self.seconds - time.monotonic())


def all_done(calls: Sequence[Callable[[], object]], *, deadline: Deadline, errors: TelemetryErrors) -> bool:
    """Whether all calls, each on a daemon thread, returned by a deadline; nothing waits for the others."""
    threads = [
        threading.Thread(target=errors.guard, args=("telemetry was not flushed", call), daemon=True) for call in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(deadline.left)
    return not any(thread.is_alive() for thread in threads)

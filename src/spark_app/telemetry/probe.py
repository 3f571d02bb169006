"""One trace, one metric and one log line that are sent and looked up: a test of the route, not of a job."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Deadline, Exporters, Signal, all_done, network_exporters, with_bases
from spark_app.telemetry.instruments import Measurements
from spark_app.telemetry.logs import quiet_sdk
from spark_app.telemetry.setup import is_off
from spark_app.vocabulary import names

SEND_SECONDS: Final = 5.0
KINDS: Final[Mapping[Signal, str]] = {"traces": "spans", "metrics": "metrics", "logs": "logs"}
"""The signals, and the words for their records in the messages of the SDK."""
UNREACHED: Final = re.compile(r"host='([^']+)', port=(\d+)\).*\[Errno -?\d+\] ([^\"')]+)")
"""The part of a message of the SDK that urllib3 wrote because it could not connect."""
_TEXT: Final = "spark-app doctor checks that log lines arrive"
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Sent:
    """A probe that was sent.

    Attributes:
        trace_id: The id that the trace and the log line have.
        at: The Unix time of the metric's point.
        refused: The signals that the endpoint did not accept, and why.
    """

    trace_id: str
    at: float
    refused: Mapping[Signal, str] = field(default_factory=dict)


def send(variables: Mapping[str, str], *, endpoint: str, service_version: str, environment: str) -> Sent:
    """Sends a probe, and waits until the endpoint has accepted it or some seconds have passed.

    Args:
        variables: The environment; its standard variables take precedence.
        endpoint: The base URL to send to, by OTLP over HTTP, where they name none.
        service_version: Of this project.
        environment: `deployment.environment.name`.
    """
    if is_off(variables):
        return Sent("", time.time(), dict.fromkeys(KINDS, "OTEL_SDK_DISABLED is true"))
    probe = _Probe(_resource(service_version=service_version, environment=environment))
    errors, threads = TelemetryErrors(), {threading.get_ident()}
    errors.addFilter(lambda record: record.thread in threads)  # other telemetry of the process may still be sent
    quiet_sdk(errors)
    exporters = network_exporters(endpoint_variables(variables, endpoint), errors=errors)
    accepted: set[Signal] = set()
    calls = probe.calls(exporters)
    sends = [partial(_send, call, signal, threads=threads, accepted=accepted) for signal, call in calls.items()]
    all_done(sends, deadline=Deadline(SEND_SECONDS), errors=errors)
    refused = {
        signal: _why(signal, list(errors), is_sent=signal in calls) for signal in KINDS if signal not in accepted
    }
    all_done([each.shutdown for each in exporters.present()], deadline=Deadline(1.0), errors=errors)
    return Sent(probe.trace_id, probe.at, refused)


def endpoint_variables(variables: Mapping[str, str], endpoint: str) -> dict[str, str]:
    """The variables, with the given endpoint where they name none; an empty one counts as absent."""
    given = {name: value for name, value in variables.items() if value.strip()}
    defaults = {_ENDPOINT: endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    return given if _ENDPOINT in given else given | defaults


class _Probe:
    """A span, a log line within it, and a count of 1."""

    def __init__(self, resource: Resource) -> None:
        tracer = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False).get_tracer(names.SCOPE)
        self._span: Any = tracer.start_span(names.PROBE_SPAN.of("telemetry"))
        self.trace_id = trace.format_trace_id(self._span.get_span_context().trace_id)
        self._lines = _lines(resource, trace.set_span_in_context(self._span))
        self._span.end()
        measurements = Measurements(resource)
        measurements.record(names.PROBES, 1, {})
        metrics: Any = measurements.collect()
        (point,) = metrics.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
        self.at = point.time_unix_nano / 1e9
        self._metrics = metrics

    def calls(self, exporters: Exporters) -> dict[Signal, Callable[[], Any]]:
        """The calls that send each signal with an exporter."""
        calls: dict[Signal, Callable[[], Any]] = {}
        if exporters.spans is not None:
            calls["traces"] = partial(exporters.spans.export, [self._span])
        if exporters.metrics is not None:
            calls["metrics"] = partial(exporters.metrics.export, with_bases(self._metrics))
        if exporters.logs is not None:
            calls["logs"] = partial(exporters.logs.export, self._lines)
        return calls


def _resource(*, service_version: str, environment: str) -> Resource:
    """The same each time, whatever the environment says, so that all probes share one series."""
    return Resource(
        {
            names.SERVICE_NAME.name: names.PROBE_SERVICE_NAME,
            names.SERVICE_VERSION.name: service_version,
            names.SERVICE_INSTANCE_ID.name: names.BATCH_INSTANCE_ID,
            names.ENVIRONMENT.name: environment,
        }
    )


def _lines(resource: Resource, context: Any) -> Any:
    kept: Any = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    loggers = LoggerProvider(resource, shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(kept))
    record = LogRecord(
        timestamp=time.time_ns(),
        observed_timestamp=time.time_ns(),
        context=context,
        severity_number=SeverityNumber.INFO,
        severity_text="INFO",
        body=_TEXT,
    )
    loggers.get_logger(names.SCOPE).emit(record)
    return kept.get_finished_logs()


def _send(call: Callable[[], Any], signal: Signal, *, threads: set[int], accepted: set[Signal]) -> None:
    threads.add(threading.get_ident())
    if call().name == "SUCCESS":
        accepted.add(signal)


def _why(signal: Signal, errors: list[str], *, is_sent: bool) -> str:
    """Why a signal was not accepted: the first error about it; later ones are about retries."""
    lines = [line for line in errors if signal in line or KINDS[signal] in line]
    nothing = f"no answer within {SEND_SECONDS:.0f} s" if is_sent else f"OTEL_{signal.upper()}_EXPORTER is none"
    if not lines:
        return nothing
    refused = UNREACHED.search(lines[0])
    return f"{refused[1]}:{refused[2]} does not answer: {refused[3]}" if refused else lines[0]

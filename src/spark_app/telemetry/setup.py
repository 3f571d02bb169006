"""The only global state of telemetry: builds exporters once per process, and closes them in bounded time.

The standard `OTEL_*` variables decide what is sent: with `OTEL_EXPORTER_OTLP_ENDPOINT` (or that of one signal) it goes
there, by `OTEL_EXPORTER_OTLP_PROTOCOL` (`http/protobuf` by default, or `grpc`), else nowhere. The files of a run are
written in any case, unless `OTEL_SDK_DISABLED` is true.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from spark_app.settings import process_environment
from spark_app.telemetry import WRONG_VARIABLES, crash_recovery
from spark_app.telemetry.delivery import Deliveries, Kind, NotingLogExporter, NotingSpanExporter
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Deadline, Exporters, MetricSender, all_done, network_exporters
from spark_app.telemetry.flushing import FLUSH_SECONDS, PeriodicFlush, metric_export_seconds
from spark_app.telemetry.instruments import Measurements, resource_of_series
from spark_app.telemetry.logs import FileLogProcessor, Handler, Redirected, quiet_sdk
from spark_app.telemetry.process_export import ProcessExport
from spark_app.telemetry.run_files import SEGMENT_BYTES
from spark_app.telemetry.run_identity import RunIdentity
from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.telemetry.sampling import RecordAllSampler
from spark_app.vocabulary import names
from spark_app.vocabulary.names import Metric

CLOSE_SECONDS: Final = 2.5
_FLUSH_SECONDS: Final = 2.0
_REMEMBERED_RUNS: Final = 20
_started: "Telemetry | None" = None


def start(*, service_version: str, environment: str, application: str) -> "Telemetry":
    """The telemetry of this process, built by the first call; an error in it is kept, not raised."""
    global _started  # noqa: PLW0603 - this module is where the global state is
    if _started is None or _started.is_closed:
        errors, variables = TelemetryErrors(), process_environment()
        quiet_sdk(errors)
        for wrong in WRONG_VARIABLES:
            errors.add(wrong)
        _started = Telemetry(
            resource(service_version=service_version, environment=environment, application=application),
            exporters=Exporters() if is_off(variables) else network_exporters(variables, errors=errors),
            variables=variables,
            errors=errors,
            flush_seconds=metric_export_seconds(variables, default=FLUSH_SECONDS),
        )
    return _started


def resource(*, service_version: str, environment: str, application: str) -> Resource:
    """Who reports; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` override our values."""
    defaults = {
        names.SERVICE_NAME.name: names.DEFAULT_SERVICE_NAME,
        names.SERVICE_VERSION.name: service_version,
        names.SERVICE_INSTANCE_ID.name: names.BATCH_INSTANCE_ID,
        names.ENVIRONMENT.name: environment,
        names.APPLICATION.name: application,
    }
    return Resource.create(defaults).merge(OTELResourceDetector().detect())


def is_off(variables: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry is switched off altogether."""
    return variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


class Telemetry:
    """The telemetry of a process: its runs write files and send to one endpoint."""

    def __init__(
        self,
        resource: Resource,
        *,
        exporters: Exporters,
        variables: Mapping[str, str],
        errors: TelemetryErrors,
        flush_seconds: float = FLUSH_SECONDS,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Builds the providers; exporters are called on threads of their own.

        Args:
            resource: Who reports.
            exporters: Where telemetry is sent.
            variables: The environment.
            errors: Where failures are kept.
            flush_seconds: The time between two exports of the metrics of an open run.
            segment_bytes: The size at which a file of a run is rotated.
        """
        quiet_sdk(errors)
        self.is_closed = False
        self._errors = errors
        self._exporters = exporters
        self._runs: deque[RunTelemetry] = deque(maxlen=_REMEMBERED_RUNS)
        self._loggers = LoggerProvider(resource, shutdown_on_exit=False)
        self._deliveries = Deliveries(_kinds(exporters), errors=errors)
        self._sender: MetricSender | None = None
        self._batches: BatchSpanProcessor | None = None
        self._loggers.add_log_record_processor(FileLogProcessor())
        self._errors.guard("nothing is sent", self._connect)
        self._redirected = Redirected(Handler(self._loggers, errors=errors))
        self._process = ProcessExport(
            resource=resource,
            parent=TraceContextTextMapPropagator().extract(
                {names.TRACEPARENT: variables.get("TRACEPARENT", ""), "tracestate": variables.get("TRACESTATE", "")}
            ),
            sampler=RecordAllSampler(),
            spans=self._batches,
            metrics=self._sender,
            flushing=PeriodicFlush(errors=errors, seconds=flush_seconds),
            deliveries=self._deliveries,
            errors=errors,
            writes_files=not is_off(variables),
            segment_bytes=segment_bytes,
        )

    @property
    def errors(self) -> list[str]:
        """The telemetry errors of the process and of its last runs, without duplicates."""
        lines = [*self._errors, *(error for run in self._runs for error in run.errors)]
        return list(dict.fromkeys(lines))

    def run(self, identity: RunIdentity) -> RunTelemetry:
        """A run, to be entered by a with-statement; several may be open at a time, in one thread or in several."""
        run = RunTelemetry(identity, self._process)
        self._runs.append(run)
        return run

    def measure(self, pipeline: str, metric: Metric, value: float) -> None:
        """Sends one value of a metric about a pipeline, of which no run is open."""

        def send() -> None:
            measurements = Measurements(resource_of_series(self._process.resource, pipeline))
            measurements.record(metric, value, {names.PIPELINE: pipeline})
            self._process.export_metrics(measurements, None)

        self._errors.guard("a measurement is lost", send)

    def end_killed(self, folder: Path) -> crash_recovery.KilledRun | None:
        """Ends and sends the spans that a killed process left open in the folder of a run; None without any."""
        return crash_recovery.end(folder, self._queue, errors=self._errors)

    def _queue(self, spans: Sequence[ReadableSpan], metrics: MetricsData) -> bool:
        """Queues the end of a killed run like the telemetry of this process, without waiting for the endpoint."""
        if self._batches is not None:
            for span in spans:
                self._batches.on_end(span)
        if self._sender is not None:
            self._sender.send(metrics)
        return True

    def close(self) -> bool:
        """Sends what is queued and ends, within 2.5 seconds whatever the endpoint does; the rest is only in the files.

        Nothing is left that could delay the end of the process: threads are daemons, and there is no exit handler.

        Returns:
            False where the endpoint did not take everything in time: the caller should send it nothing more.
        """
        if self.is_closed:
            return True
        self.is_closed = True
        self._process.flushing.close()
        deadline = Deadline(CLOSE_SECONDS)
        flushes = [self._loggers.shutdown]
        if self._batches is not None:
            flushes.append(self._batches.shutdown)
        if self._sender is not None:
            flushes.append(self._sender.finish)
        is_flushed = all_done(flushes, deadline=Deadline(_FLUSH_SECONDS), errors=self._errors)
        if not is_flushed:
            self._errors.add("OTLP export timed out; the run folder has the rest, which `spark-app resend` sends")
        self._errors.is_listening = False  # from here on, the SDK logs only that its exporters were shut down
        all_done([each.shutdown for each in self._exporters.present()], deadline=deadline, errors=self._errors)
        if self._runs:
            self._errors.guard("late errors are not in the log of the run", self._runs[-1].log_late_errors)
        self._errors.guard("the logger is not restored", self._redirected.close)
        return is_flushed

    def _connect(self) -> None:
        if self._exporters.spans is not None:
            self._batches = BatchSpanProcessor(NotingSpanExporter(self._exporters.spans, self._deliveries))
        if self._exporters.logs is not None:
            exporter = NotingLogExporter(self._exporters.logs, self._deliveries)
            self._loggers.add_log_record_processor(BatchLogRecordProcessor(exporter))
        if self._exporters.metrics is not None:
            self._sender = MetricSender(self._exporters.metrics, errors=self._errors)


def _kinds(exporters: Exporters) -> list[Kind]:
    """What is sent."""
    sent: dict[Kind, object] = {"spans": exporters.spans, "metrics": exporters.metrics, "logs": exporters.logs}
    return [kind for kind, exporter in sent.items() if exporter is not None]

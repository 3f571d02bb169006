"""The only global state of telemetry: builds providers and exporters once per process, and ends them in bounded time.

The standard `OTEL_*` variables decide what is sent: with `OTEL_EXPORTER_OTLP_ENDPOINT` (or that of one signal) it goes
there, by `OTEL_EXPORTER_OTLP_PROTOCOL` (`http/protobuf` unless it says `grpc`), else nowhere. The files of a run are
written in any case, unless `OTEL_SDK_DISABLED` is true.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.settings import process_environment
from app.telemetry import WRONG_VARIABLES, killed, names
from app.telemetry.export import Deadline, Exporters, MetricSender, all_done, network_exporters
from app.telemetry.facts import RunFacts
from app.telemetry.files import Current, LocalLogs, LocalSpans
from app.telemetry.logs import Handler, Redirected, quiet_sdk
from app.telemetry.problems import Problems
from app.telemetry.runs import Run
from app.telemetry.sampling import KeptLocally
from app.telemetry.spans import Engine

CLOSE_SECONDS: Final = 2.5
_FLUSH_SECONDS: Final = 2.0
_started: "Telemetry | None" = None


def start(*, service_version: str, environment: str, application: str) -> "Telemetry":
    """The telemetry of this process, built by the first call; whatever is wrong with it is told, not raised."""
    global _started  # noqa: PLW0603 - this module is where the global state is
    if _started is None or _started.is_closed:
        problems, variables = Problems(), process_environment()
        quiet_sdk(problems)
        for wrong in WRONG_VARIABLES:
            problems.tell(wrong)
        _started = Telemetry(
            resource(service_version=service_version, environment=environment, application=application),
            exporters=Exporters() if is_off(variables) else network_exporters(variables, problems=problems),
            variables=variables,
            problems=problems,
        )
    return _started


def resource(*, service_version: str, environment: str, application: str) -> Resource:
    """Who reports; what `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say wins."""
    ours = {
        names.SERVICE_NAME.name: names.DEFAULT_SERVICE_NAME,
        names.SERVICE_VERSION.name: service_version,
        names.SERVICE_INSTANCE_ID.name: names.BATCH_INSTANCE_ID,
        names.ENVIRONMENT.name: environment,
        names.APPLICATION.name: application,
    }
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def is_off(variables: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry is switched off altogether."""
    return variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


class Telemetry:
    """Tells what runs do, to their folders and to the network."""

    def __init__(
        self, resource: Resource, *, exporters: Exporters, variables: Mapping[str, str], problems: Problems
    ) -> None:
        """Builds the providers; exporters get what they are given on threads of their own."""
        quiet_sdk(problems)
        self.is_closed = False
        self._problems = problems
        self._exporters = exporters
        self._current = Current(problems=problems)
        self._tracers = sdk_trace.TracerProvider(KeptLocally(), resource, shutdown_on_exit=False)
        self._loggers = LoggerProvider(resource, shutdown_on_exit=False)
        self._sender: MetricSender | None = None
        self._batches: BatchSpanProcessor | None = None
        self._tracers.add_span_processor(LocalSpans(self._current))
        self._loggers.add_log_record_processor(LocalLogs(self._current))
        self._problems.guard("nothing is sent", self._connect)
        self._redirected = Redirected(Handler(self._loggers, current=self._current, problems=problems))
        self._engine = Engine(
            tracer=self._tracers.get_tracer(names.SCOPE),
            parent=TraceContextTextMapPropagator().extract(
                {"traceparent": variables.get("TRACEPARENT", ""), "tracestate": variables.get("TRACESTATE", "")}
            ),
            resource=resource,
            sender=self._sender,
            current=self._current,
            problems=problems,
            writes_files=not is_off(variables),
        )

    @property
    def problems(self) -> list[str]:
        """What went wrong inside telemetry, each said once."""
        return list(self._problems)

    def run(self, facts: RunFacts) -> Run:
        """A run to be entered by a with-statement; one at a time in a process."""
        return Run(facts, self._engine)

    def end_killed(self, folder: Path) -> killed.Killed | None:
        """Ends and sends what a killed process has left open in the folder of a run; None where nothing was."""
        return killed.end(folder, self._hand_over, problems=self._problems)

    def _hand_over(self, spans: Sequence[ReadableSpan], metrics: MetricsData) -> bool:
        """Queues it; what becomes of it is what becomes of the telemetry of this process, and nothing waits for it."""
        if self._batches is not None:
            for span in spans:
                self._batches.on_end(span)
        if self._sender is not None:
            self._sender.send(metrics)
        return True

    def close(self) -> bool:
        """Sends what waits and ends, within 2.5 seconds whatever the endpoint does; what was not sent by then is lost.

        Nothing is left that could hold up the end of the process: threads are daemons, and there is no exit handler.

        Returns:
            False where the endpoint was still busy with it: it is of no use to send it more.
        """
        if self.is_closed:
            return True
        self.is_closed = True
        deadline = Deadline(CLOSE_SECONDS)
        flushes = [self._tracers.shutdown, self._loggers.shutdown]
        if self._sender is not None:
            flushes.append(self._sender.finish)
        is_flushed = all_done(flushes, deadline=Deadline(_FLUSH_SECONDS), problems=self._problems)
        if not is_flushed:
            self._problems.tell("the endpoint did not take all telemetry in time; the files of the run have it")
        self._problems.is_listening = False  # what the SDK says from here on is only that it was cut off
        all_done([each.shutdown for each in self._exporters.present()], deadline=deadline, problems=self._problems)
        self._problems.guard("the log lacks what went wrong at the end", self._current.report_late)
        self._problems.guard("logging is not as before", self._redirected.close)
        return is_flushed

    def _connect(self) -> None:
        if self._exporters.spans is not None:
            self._batches = BatchSpanProcessor(self._exporters.spans)
            self._tracers.add_span_processor(self._batches)
        if self._exporters.logs is not None:
            self._loggers.add_log_record_processor(BatchLogRecordProcessor(self._exporters.logs))
        if self._exporters.metrics is not None:
            self._sender = MetricSender(self._exporters.metrics, problems=self._problems)

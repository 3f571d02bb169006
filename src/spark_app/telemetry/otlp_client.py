"""Sends finished spans, metrics and log records, and returns whether the endpoint accepted them."""

from collections.abc import Callable, Sequence
from enum import Enum

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from spark_app.settings import process_environment
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters, accepts_metrics, network_exporters, with_bases
from spark_app.telemetry.logs import quiet_sdk
from spark_app.telemetry.setup import is_off


class OtlpClient:
    """The endpoint that the standard `OTEL_*` variables name; the caller waits for its answer.

    Attributes:
        takes_spans, takes_metrics, takes_logs: Whether there is an endpoint for them.
        takes_anything: Whether there is an endpoint for any of them.
    """

    def __init__(self, exporters: Exporters, *, errors: TelemetryErrors) -> None:
        """Failures are added to the errors, never raised."""
        self._exporters = exporters
        self._errors = errors
        self.takes_spans = exporters.spans is not None
        self.takes_metrics = exporters.metrics is not None
        self.takes_logs = exporters.logs is not None
        self.takes_anything = self.takes_spans or self.takes_metrics or self.takes_logs

    def send_spans(self, spans: Sequence[ReadableSpan]) -> bool:
        """Whether they were accepted; the exporter tries for as long as `OTEL_EXPORTER_OTLP_TIMEOUT` says."""
        exporter = self._exporters.spans
        return exporter is not None and self._send("spans", lambda: exporter.export(spans)) is SpanExportResult.SUCCESS

    def send_metrics(self, data: MetricsData) -> bool:
        """Whether they were accepted."""
        exporter = self._exporters.metrics
        return (
            exporter is not None
            and self._send("metrics", lambda: exporter.export(with_bases(data))) is MetricExportResult.SUCCESS
        )

    def send_logs(self, records: Sequence[ReadableLogRecord]) -> bool:
        """Whether they were accepted."""
        exporter = self._exporters.logs
        return (
            exporter is not None
            and self._send("log records", lambda: exporter.export(records)) is LogRecordExportResult.SUCCESS
        )

    def accepts_metrics(self) -> bool:
        """Whether the endpoint accepts a request without metrics."""
        exporter = self._exporters.metrics
        return exporter is not None and accepts_metrics(exporter)

    def send(self, spans: Sequence[ReadableSpan], data: MetricsData) -> bool:
        """Whether both were accepted; a signal that is empty or has no endpoint counts as accepted."""
        are_accepted = not self.takes_spans or not spans or self.send_spans(spans)
        return are_accepted and (not self.takes_metrics or self.send_metrics(data))

    def close(self) -> None:
        """Shuts the exporters down; a request under way is cancelled."""
        for exporter in self._exporters.present():
            self._errors.guard("an exporter did not end", exporter.shutdown)

    def _send(self, what: str, export: Callable[[], Enum]) -> Enum | None:
        """The answer, if there is one; the SDK logs the reason of a failure, the same one once a minute."""
        answers: list[Enum] = []
        self._errors.guard(f"{what} were not sent", lambda: answers.append(export()))
        if answers and answers[0].name != "SUCCESS":
            self._errors.add(f"{what} were not accepted by the endpoint")
        return answers[0] if answers else None


def otlp_client(*, errors: TelemetryErrors) -> OtlpClient:
    """The client of this process; without an endpoint in the variables, it sends nothing."""
    quiet_sdk(errors)  # first: the exporters log wrong headers when they are created
    variables = process_environment()
    exporters = Exporters() if is_off(variables) else network_exporters(variables, errors=errors)
    return OtlpClient(exporters, errors=errors)

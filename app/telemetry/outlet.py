"""Sends spans and metrics that are already made, and gives back whether they were accepted."""

from collections.abc import Callable, Sequence
from enum import Enum

from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from app.settings import process_environment
from app.telemetry.export import Exporters, narrowed, network_exporters
from app.telemetry.logs import quiet_sdk
from app.telemetry.problems import Problems
from app.telemetry.setup import is_off


class Outlet:
    """The endpoint that the standard `OTEL_*` variables name; whoever hands something over waits for its answer.

    Attributes:
        takes_spans, takes_metrics: Whether there is anywhere for them to go.
    """

    def __init__(self, exporters: Exporters, *, problems: Problems) -> None:
        """What goes wrong is told to `problems`, never raised."""
        self._exporters = exporters
        self._problems = problems
        self.takes_spans = exporters.spans is not None
        self.takes_metrics = exporters.metrics is not None

    def send_spans(self, spans: Sequence[ReadableSpan]) -> bool:
        """Whether they were accepted; the exporter tries for as long as `OTEL_EXPORTER_OTLP_TIMEOUT` says."""
        exporter = self._exporters.spans
        return exporter is not None and self._send("spans", lambda: exporter.export(spans)) is SpanExportResult.SUCCESS

    def send_metrics(self, data: MetricsData) -> bool:
        """Whether they were accepted."""
        exporter = self._exporters.metrics
        return (
            exporter is not None and self._send("metrics", lambda: exporter.export(data)) is MetricExportResult.SUCCESS
        )

    def send(self, spans: Sequence[ReadableSpan], data: MetricsData) -> bool:
        """Whether both were accepted, each if there is any, and anywhere for it to go."""
        are_told = not self.takes_spans or not spans or self.send_spans(spans)
        return are_told and (not self.takes_metrics or self.send_metrics(narrowed(data)))

    def close(self) -> None:
        """Gives up what is under way."""
        for exporter in self._exporters.present():
            self._problems.guard("an exporter did not end", exporter.shutdown)

    def _send(self, what: str, export: Callable[[], Enum]) -> Enum | None:
        """The answer, if there is one; the SDK tells why not, but the same reason only once a minute."""
        answers: list[Enum] = []
        self._problems.guard(f"{what} were not sent", lambda: answers.append(export()))
        if answers and answers[0].name != "SUCCESS":
            self._problems.tell(f"{what} were not accepted by the endpoint")
        return answers[0] if answers else None


def outlet(*, problems: Problems) -> Outlet:
    """The outlet of this process; one that takes nothing where no variable names an endpoint."""
    quiet_sdk(problems)  # first: it tells of wrong headers while exporters are made
    variables = process_environment()
    exporters = Exporters() if is_off(variables) else network_exporters(variables, problems=problems)
    return Outlet(exporters, problems=problems)

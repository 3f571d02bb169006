"""What a program exports of its own log while it runs counts once, whatever the endpoint answers."""

from pathlib import Path

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricExportResult, MetricsData

from spark_app.eventlog.bridge import live_export
from spark_app.eventlog.bridge.live_export import LiveExport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.application import Application
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import Exporters
from spark_app.telemetry.otlp_client import OtlpClient
from tests.polling import poll_until
from tests.unit.eventlog.log import events_of
from tests.unit.eventlog.logs import program
from tests.unit.telemetry.memory import KeptMetrics


class Failing(KeptMetrics):
    """An endpoint that does not answer one of its requests, which arrives all the same unless it is empty."""

    def __init__(self, *, unanswered: int) -> None:
        """Leaves the request of this number without an answer."""
        super().__init__()
        self.requests, self.unanswered = 0, unanswered

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **more: object) -> MetricExportResult:
        """Takes metrics."""
        super().export(metrics_data, timeout_millis, **more)
        self.requests += 1
        return MetricExportResult.FAILURE if self.requests == self.unanswered else MetricExportResult.SUCCESS


@pytest.mark.parametrize("unanswered", [1, 2])
def test_counts_arrive_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unanswered: int) -> None:
    """Those before which the endpoint is away go with the next; those whose answer is missing are not sent again."""
    endpoint = Failing(unanswered=unanswered)
    client = OtlpClient(Exporters(metrics=endpoint), errors=TelemetryErrors())
    monkeypatch.setattr(live_export, "otlp_client", lambda **_: client)
    monkeypatch.setattr(live_export, "METRICS_SECONDS", 0.0)
    app = Application("app-1")
    export = LiveExport(tmp_path, app, environment="test", thresholds=Thresholds())
    for event in events_of(program(3)):
        export.take(event, app.apply(event))
    export.flush()
    poll_until(lambda: endpoint.requests >= unanswered, "the first counts are not sent")
    export.finish(60)
    durations = [
        point.count
        for request in endpoint.kept
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "spark.task.duration"
        for point in metric.data.data_points
        if isinstance(point, HistogramDataPoint)
    ]
    assert sum(durations) == 3

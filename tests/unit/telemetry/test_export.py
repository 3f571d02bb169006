import time
from typing import Any

from opentelemetry.sdk.resources import Resource

from app.telemetry import names
from app.telemetry.export import MetricSender, narrowed
from app.telemetry.instruments import Measurements
from app.telemetry.problems import Problems
from tests.unit.telemetry.memory import KeptMetrics


def test_a_sent_delta_happened_in_its_last_millisecond() -> None:
    """Two runs of one pipeline at once share a series: windows that overlap would be dropped by the collector."""
    measurements = Measurements(Resource.get_empty())
    measurements.record(names.READ, 5, {names.PIPELINE: "x"})
    measurements.record(names.RUN_DURATION, 2.0, {names.PIPELINE: "x", names.OUTCOME: "failed"})
    measurements.record(names.LAST_SUCCESS, 7.0, {names.PIPELINE: "x"})
    first_measured = time.time_ns()
    while time.time_ns() < first_measured + 5_000_000:  # the window of a run is long; this one is 5 ms at least
        pass
    data = measurements.new()
    assert data is not None
    found = narrowed(data).resource_metrics[0].scope_metrics[0].metrics
    points: dict[str, Any] = {metric.name: next(iter(metric.data.data_points)) for metric in found}
    for name in (names.READ.name, names.RUN_DURATION.name):
        assert 0 <= points[name].time_unix_nano - points[name].start_time_unix_nano <= 1_000_000
    assert points[names.READ.name].value == 5
    assert points[names.RUN_DURATION.name].sum == 2.0
    assert points[names.LAST_SUCCESS.name].value == 7.0


def test_metrics_are_sent_in_order_and_all_of_them() -> None:
    """Finishing waits for what is queued."""
    exporter, measurements = KeptMetrics(), Measurements(Resource.get_empty())
    sender = MetricSender(exporter, problems=Problems())
    for rows in (1, 2, 3):
        measurements.record(names.READ, rows, {names.PIPELINE: "x"})
        data = measurements.new()
        assert data is not None
        sender.send(data)
    sender.finish()
    points = [each.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points for each in exporter.kept]
    assert [getattr(found[0], "value", None) for found in points] == [1, 2, 3]

import os
import subprocess
import sys
import time
from functools import partial
from typing import Any, Final

from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import MetricSender, with_bases
from spark_app.telemetry.instruments import Measurements
from spark_app.vocabulary import names
from tests.receivers import receiver
from tests.unit.telemetry.memory import KeptMetrics

SEND_AND_START: Final = """
import signal, subprocess, sys
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import network_exporters
variables = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": sys.argv[1], "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}
exporter = network_exporters(variables, errors=TelemetryErrors()).spans
span = ReadableSpan("one", SpanContext(1, 1, is_remote=False), start_time=1, end_time=2)
died = 0
for _ in range(300):
    exporter.export([span])
    died += subprocess.run(["true"], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)).returncode != 0
print(died, "died")
"""


def test_a_delta_follows_a_delta_of_0_that_is_dated_just_before_it() -> None:
    """Two runs of one pipeline share a series: windows are short, since the collector would drop those that overlap."""
    measurements = Measurements(Resource.get_empty())
    measurements.record(names.READ, 5, {names.PIPELINE: "x"})
    measurements.record(names.RUN_DURATION, 2.0, {names.PIPELINE: "x", names.OUTCOME: "failed"})
    measurements.record(names.LAST_SUCCESS, 7.0, {names.PIPELINE: "x"})
    first_measured = time.time_ns()
    while time.time_ns() < first_measured + 5_000_000:  # the window of a run is long; this one is 5 ms at least
        pass
    data = measurements.collect()
    assert data is not None
    metrics = with_bases(data).resource_metrics[0].scope_metrics[0].metrics
    points: dict[str, list[Any]] = {metric.name: list(metric.data.data_points) for metric in metrics}
    for name in (names.READ.name, names.RUN_DURATION.name):
        base, point = points[name]
        assert base.attributes == point.attributes
        assert point.time_unix_nano - point.start_time_unix_nano == 1_000_000
        assert base.time_unix_nano == point.start_time_unix_nano == base.start_time_unix_nano + 1_000_000
    assert [point.value for point in points[names.READ.name]] == [0, 5]
    assert [(point.count, point.sum) for point in points[names.RUN_DURATION.name]] == [(0, 0.0), (1, 2.0)]
    assert [point.value for point in points[names.LAST_SUCCESS.name]] == [7.0]


def test_what_is_no_growth_has_no_base() -> None:
    """A delta of 0 announces a series; totals and gauges are what they are."""
    measurements = Measurements(Resource.get_empty())
    measurements.record(names.READ, 0, {names.PIPELINE: "x"})
    data = measurements.collect()
    assert data is not None
    (metric,) = with_bases(data).resource_metrics[0].scope_metrics[0].metrics
    assert len(metric.data.data_points) == 1


def test_metrics_are_claimed_only_while_the_endpoint_accepts_requests() -> None:
    """What is not claimed can be sent later; an endpoint that is away is not asked for each collection."""
    exporter, claims = KeptMetrics(), list[int]()
    exporter.result = MetricExportResult.FAILURE
    sender = MetricSender(exporter, errors=TelemetryErrors())
    for number in range(3):
        sender.send(MetricsData([]), partial(claimed, claims, number))
    sender.finish()
    assert claims == []
    assert (exporter.asked, exporter.kept) == (1, [])


def claimed(claims: list[int], number: int) -> bool:
    """Notes a claim."""
    claims.append(number)
    return True


def test_all_metrics_are_sent_in_order() -> None:
    """`finish` waits for the queue."""
    exporter, measurements = KeptMetrics(), Measurements(Resource.get_empty())
    sender = MetricSender(exporter, errors=TelemetryErrors())
    for rows in (1, 2, 3):
        measurements.record(names.READ, rows, {names.PIPELINE: "x"})
        data = measurements.collect()
        assert data is not None
        sender.send(data)
    sender.finish()
    batches = [each.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points for each in exporter.kept]
    assert [getattr(points[-1], "value", None) for points in batches] == [1, 2, 3]


def test_processes_started_beside_grpc_do_not_die() -> None:
    """As PySpark starts its JVM, with a `preexec_fn`: with gRPC's fork handlers, 1 to 2 of 100 died before they ran."""
    with receiver() as collector:
        command = [sys.executable, "-c", SEND_AND_START, collector.endpoint("grpc")]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GRPC_")}
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert output.stdout == "0 died\n"
    assert len(collector.spans) == 300

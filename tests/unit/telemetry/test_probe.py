import logging
import threading
import time

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA

from spark_app.telemetry import probe
from spark_app.telemetry.probe import KINDS, Sent
from spark_app.vocabulary import names
from tests.answering import answering
from tests.receivers import attributes, dead_port, receiver

CONSTANT = {"service.name", "service.version", "service.instance.id", "deployment.environment.name"}


def sent(endpoint: str, **variables: str) -> Sent:
    """A probe that was sent."""
    return probe.send(variables, endpoint=endpoint, service_version="1.2.3", environment="test")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows a busy machine more time."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 60.0)


def test_a_trace_a_metric_and_a_log_line_are_sent() -> None:
    """One of each: trace and log line have the id of the probe, the point of the metric its time."""
    began = time.time()
    with receiver() as collector:
        result = sent(collector.http_endpoint)
    assert result.refused == {}
    (span,), (metric,), (line,) = collector.spans, collector.metrics, collector.logs
    assert {span.trace_id.hex(), line.trace_id.hex()} == {result.trace_id}
    assert line.span_id == span.span_id
    assert span.name == names.PROBE_SPAN.of("telemetry")
    base, point = metric.sum.data_points
    assert (metric.name, base.as_int, point.as_int) == (names.PROBES.name, 0, 1)
    assert point.time_unix_nano / 1e9 == result.at
    assert began <= result.at <= time.time()


def test_a_second_probe_adds_no_series() -> None:
    """The metric has no label, and the resource is the same each time."""
    with receiver() as collector:
        first, second = sent(collector.http_endpoint), sent(collector.http_endpoint, OTEL_SERVICE_NAME="other")
    assert first.trace_id != second.trace_id
    assert [attributes(point) for metric in collector.metrics for point in metric.sum.data_points] == 4 * [{}]
    assert [resource for resource in collector.resources if set(resource) != CONSTANT] == []
    assert {tuple(sorted(resource.items())) for resource in collector.resources} == {
        (
            ("deployment.environment.name", "test"),
            ("service.instance.id", "batch"),
            ("service.name", "spark-app-doctor"),
            ("service.version", "1.2.3"),
        )
    }


def test_the_count_is_a_delta() -> None:
    """As in every process: the collector adds them up."""
    with receiver() as collector:
        sent(collector.http_endpoint)
    (metric,) = collector.metrics
    assert metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_standard_variables_take_precedence(protocol: str) -> None:
    """The probe goes where the telemetry of jobs goes, by the same protocol."""
    with receiver() as collector:
        endpoint = collector.grpc_endpoint if protocol == "grpc" else collector.http_endpoint
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        result = sent(f"http://127.0.0.1:{dead_port()}", **variables)
    assert result.refused == {}
    assert (len(collector.spans), len(collector.metrics), len(collector.logs)) == (1, 1, 1)


def test_a_protocol_without_an_endpoint_does_not_change_the_default() -> None:
    """The endpoint of the configuration is for HTTP; an empty variable counts as absent."""
    with receiver() as collector:
        result = sent(collector.http_endpoint, OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_ENDPOINT=" ")
    assert result.refused == {}


def test_a_probe_is_sent_whatever_the_sampler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that is not sampled would look lost."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with receiver() as collector:
        sent(collector.http_endpoint)
    assert len(collector.spans) == 1


def refusals(result: Sent, reason: str) -> dict[str, bool]:
    """Whether each signal was refused for a reason."""
    return {signal: reason in result.refused.get(signal, "") for signal in KINDS}


def test_a_dead_endpoint_is_the_reason_of_each_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bounded time, with the reason of the connection and without the words of the SDK."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 1.0)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "90")
    began, port = time.monotonic(), dead_port()
    result = sent(f"http://127.0.0.1:{port}")
    assert time.monotonic() - began < 20
    assert result.refused == dict.fromkeys(KINDS, f"127.0.0.1:{port} does not answer: Connection refused")


@pytest.mark.parametrize("mode", ["refusing", "hanging"])
def test_an_endpoint_that_accepts_nothing_is_the_reason(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may refuse or not answer."""
    if mode == "refusing":  # it is asked again as long as there is time
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    else:
        monkeypatch.setattr(probe, "SEND_SECONDS", 0.5)
    with receiver() as collector:
        collector.mode = "refusing" if mode == "refusing" else "hanging"
        result = sent(collector.http_endpoint)
    reason = "Service Unavailable" if mode == "refusing" else "no answer within"
    assert refusals(result, reason) == dict.fromkeys(KINDS, True)


def test_errors_of_other_telemetry_are_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another exporter of the process may log at the same time: the SDK's log is one for all."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 0.5)
    ended = threading.Event()

    def log_on() -> None:
        while not ended.is_set():
            for signal in KINDS:
                logging.getLogger("opentelemetry.exporter.otlp").error("Failed to export %s batch: other", signal)

    other = threading.Thread(target=log_on)
    other.start()
    with receiver() as collector:
        collector.mode = "hanging"
        result = sent(collector.http_endpoint)
    ended.set()
    other.join()
    assert refusals(result, "no answer within") == dict.fromkeys(KINDS, True)


def test_another_program_at_the_endpoint_is_the_reason() -> None:
    """It answers 404, which is no success."""
    with answering({}) as collector:
        result = sent(collector.url)
    assert refusals(result, "Not Found") == dict.fromkeys(KINDS, True)


def test_a_disabled_signal_is_the_reason() -> None:
    """The other signals are sent."""
    with receiver() as collector:
        result = sent(collector.http_endpoint, OTEL_LOGS_EXPORTER="none")
    assert result.refused == {"logs": "OTEL_LOGS_EXPORTER is none"}
    assert (len(collector.spans), len(collector.metrics)) == (1, 1)


def test_disabled_telemetry_is_the_reason() -> None:
    """Nothing is sent, and the reason says so."""
    result = sent(f"http://127.0.0.1:{dead_port()}", OTEL_SDK_DISABLED="true")
    assert result.refused == dict.fromkeys(KINDS, "OTEL_SDK_DISABLED is true")

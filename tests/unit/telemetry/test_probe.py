import time

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA

from app.telemetry import names, probe
from app.telemetry.probe import KINDS, Sent
from tests.answering import answering
from tests.receivers import attributes, dead_port, receiver

CONSTANT = {"service.name", "service.version", "service.instance.id", "deployment.environment.name"}


def sent(endpoint: str, **variables: str) -> Sent:
    """A probe that was sent."""
    return probe.send(variables, endpoint=endpoint, service_version="1.2.3", environment="test")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for a busy machine: what is taken is waited for."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 60.0)


def test_a_trace_a_metric_and_a_log_line_are_sent() -> None:
    """One of each; trace and line have the id that is looked for, the metric's point the time."""
    began = time.time()
    with receiver() as found:
        told = sent(found.http_endpoint)
    assert told.refused == {}
    (span,), (metric,), (line,) = found.spans, found.metrics, found.logs
    assert {span.trace_id.hex(), line.trace_id.hex()} == {told.trace_id}
    assert line.span_id == span.span_id
    assert span.name == names.PROBE_SPAN.of("telemetry")
    (point,) = metric.sum.data_points
    assert (metric.name, point.as_int) == (names.PROBES.name, 1)
    assert point.time_unix_nano / 1e9 == told.at
    assert began <= told.at <= time.time()


def test_a_second_probe_makes_no_new_series() -> None:
    """No label, and a resource that is the same each time: whoever looks often fills nothing."""
    with receiver() as found:
        first, second = sent(found.http_endpoint), sent(found.http_endpoint, OTEL_SERVICE_NAME="other")
    assert first.trace_id != second.trace_id
    assert [attributes(point) for metric in found.metrics for point in metric.sum.data_points] == [{}, {}]
    assert [resource for resource in found.resources if set(resource) != CONSTANT] == []
    assert {tuple(sorted(resource.items())) for resource in found.resources} == {
        (
            ("deployment.environment.name", "test"),
            ("service.instance.id", "batch"),
            ("service.name", "spark-app-doctor"),
            ("service.version", "1.2.3"),
        )
    }


def test_the_count_is_a_delta() -> None:
    """As of any one-shot run: the collector adds them up."""
    with receiver() as found:
        sent(found.http_endpoint)
    (metric,) = found.metrics
    assert metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_standard_variables_win(protocol: str) -> None:
    """Who sends jobs' telemetry elsewhere wants the doctor to go there, by the same protocol."""
    with receiver() as found:
        endpoint = found.grpc_endpoint if protocol == "grpc" else found.http_endpoint
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        told = sent(f"http://127.0.0.1:{dead_port()}", **variables)
    assert told.refused == {}
    assert (len(found.spans), len(found.metrics), len(found.logs)) == (1, 1, 1)


def test_a_protocol_without_an_endpoint_does_not_turn_the_default_around() -> None:
    """The endpoint of the configuration is one for HTTP; an empty variable is none."""
    with receiver() as found:
        told = sent(found.http_endpoint, OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_ENDPOINT=" ")
    assert told.refused == {}


def test_a_trace_is_sent_whatever_is_sampled_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that is sampled away would look lost."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with receiver() as found:
        sent(found.http_endpoint)
    assert len(found.spans) == 1


def refusals(told: Sent, reason: str) -> dict[str, bool]:
    """Whether each signal was refused for a reason."""
    return {signal: reason in told.refused.get(signal, "") for signal in KINDS}


def test_nobody_at_the_endpoint_is_told_for_each_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bounded time, with what the connection said, and without what the SDK makes of it."""
    monkeypatch.setattr(probe, "SEND_SECONDS", 1.0)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "90")
    began, port = time.monotonic(), dead_port()
    told = sent(f"http://127.0.0.1:{port}")
    assert time.monotonic() - began < 20
    assert told.refused == dict.fromkeys(KINDS, f"127.0.0.1:{port} does not answer: Connection refused")


@pytest.mark.parametrize("mode", ["refusing", "hanging"])
def test_an_endpoint_that_takes_nothing_is_told(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it says no or says nothing."""
    if mode == "refusing":  # it is asked again as long as there is time
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    else:
        monkeypatch.setattr(probe, "SEND_SECONDS", 0.5)
    with receiver() as found:
        found.mode = "refusing" if mode == "refusing" else "hanging"
        told = sent(found.http_endpoint)
    reason = "Service Unavailable" if mode == "refusing" else "no answer within"
    assert refusals(told, reason) == dict.fromkeys(KINDS, True)


def test_another_program_at_the_endpoint_is_told() -> None:
    """It answers, at once, that it knows no such thing; that is no success."""
    with answering({}) as found:
        told = sent(found.url)
    assert refusals(told, "Not Found") == dict.fromkeys(KINDS, True)


def test_a_signal_that_is_switched_off_is_told() -> None:
    """The others are sent all the same."""
    with receiver() as found:
        told = sent(found.http_endpoint, OTEL_LOGS_EXPORTER="none")
    assert told.refused == {"logs": "OTEL_LOGS_EXPORTER is none"}
    assert (len(found.spans), len(found.metrics)) == (1, 1)


def test_telemetry_that_is_off_is_told() -> None:
    """Nothing can be sent then, and why is known."""
    told = sent(f"http://127.0.0.1:{dead_port()}", OTEL_SDK_DISABLED="true")
    assert told.refused == dict.fromkeys(KINDS, "OTEL_SDK_DISABLED is true")

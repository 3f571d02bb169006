"""What is handed over is accepted or not, and nothing is raised."""

import pytest
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.otlp_client import otlp_client
from tests.receivers import PROTOCOLS, Mode, Protocol, dead_port, receiver

SPAN = ReadableSpan("one", SpanContext(1, 1, is_remote=False), start_time=1, end_time=2)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Both protocols of OTLP."""
    protocol: Protocol = request.param
    return protocol


def set_variables(monkeypatch: pytest.MonkeyPatch, endpoint: str, protocol: Protocol) -> None:
    """Sets the variables of an endpoint with a timeout of one second."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


@pytest.mark.parametrize(("mode", "is_accepted"), [("normal", True), ("refusing", False)])
def test_the_result_is_the_answer_of_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mode: Mode, *, is_accepted: bool
) -> None:
    """Accepted or not, for spans and for metrics."""
    with receiver(mode) as collector:
        set_variables(monkeypatch, collector.endpoint(protocol), protocol)
        way = otlp_client(errors=TelemetryErrors())
        assert (way.takes_spans, way.takes_metrics) == (True, True)
        assert way.send_spans([SPAN]) is is_accepted
        assert way.send_metrics(MetricsData([])) is is_accepted
        way.close()
    assert [span.name for span in collector.spans] == (["one"] if is_accepted else [])


def test_a_dead_endpoint_is_an_error_and_does_not_raise(monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """The errors have the reason."""
    set_variables(monkeypatch, f"http://127.0.0.1:{dead_port()}", protocol)
    errors = TelemetryErrors()
    way = otlp_client(errors=errors)
    assert not way.send_spans([SPAN])
    assert not way.send_metrics(MetricsData([]))
    way.close()
    assert {"spans were not accepted by the endpoint", "metrics were not accepted by the endpoint"} <= set(errors)


def test_a_span_that_cannot_be_encoded_is_an_error_and_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    """The sending thread continues with the next item."""
    with receiver() as collector:
        set_variables(monkeypatch, collector.endpoint(protocol), protocol)
        errors = TelemetryErrors()
        way = otlp_client(errors=errors)
        assert not way.send_spans([ReadableSpan("no ids", None)])
        assert way.send_spans([SPAN])
        way.close()
    assert list(errors) != []


def test_nothing_is_sent_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where OpenTelemetry is disabled."""
    nowhere = otlp_client(errors=TelemetryErrors())
    assert (nowhere.takes_spans, nowhere.takes_metrics) == (False, False)
    assert not nowhere.send_spans([SPAN])
    assert not nowhere.send_metrics(MetricsData([]))
    set_variables(monkeypatch, f"http://127.0.0.1:{dead_port()}", "grpc")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    off = otlp_client(errors=TelemetryErrors())
    assert (off.takes_spans, off.takes_metrics) == (False, False)

"""What is handed over is accepted or not, and nothing is raised."""

import pytest
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from app.telemetry.outlet import outlet
from app.telemetry.problems import Problems
from tests.receivers import PROTOCOLS, Mode, Protocol, dead_port, receiver

SPAN = ReadableSpan("one", SpanContext(1, 1, is_remote=False), start_time=1, end_time=2)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Both ways to speak OTLP."""
    found: Protocol = request.param
    return found


def set_variables(monkeypatch: pytest.MonkeyPatch, endpoint: str, protocol: Protocol) -> None:
    """Those of an endpoint that is given up after a second."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


@pytest.mark.parametrize(("mode", "is_accepted"), [("normal", True), ("refusing", False)])
def test_the_answer_is_that_of_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mode: Mode, *, is_accepted: bool
) -> None:
    """Accepted or not, for spans and for metrics."""
    with receiver(mode) as found:
        set_variables(monkeypatch, found.endpoint(protocol), protocol)
        way = outlet(problems=Problems())
        assert (way.takes_spans, way.takes_metrics) == (True, True)
        assert way.send_spans([SPAN]) is is_accepted
        assert way.send_metrics(MetricsData([])) is is_accepted
        way.close()
    assert [span.name for span in found.spans] == (["one"] if is_accepted else [])


def test_a_dead_endpoint_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """The reason is kept for whoever asks."""
    set_variables(monkeypatch, f"http://127.0.0.1:{dead_port()}", protocol)
    problems = Problems()
    way = outlet(problems=problems)
    assert not way.send_spans([SPAN])
    assert not way.send_metrics(MetricsData([]))
    way.close()
    assert {"spans were not accepted by the endpoint", "metrics were not accepted by the endpoint"} <= set(problems)


def test_what_cannot_be_sent_at_all_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """The thread that sends goes on with what comes next."""
    with receiver() as found:
        set_variables(monkeypatch, found.endpoint(protocol), protocol)
        problems = Problems()
        way = outlet(problems=problems)
        assert not way.send_spans([ReadableSpan("no ids", None)])
        assert way.send_spans([SPAN])
        way.close()
    assert list(problems) != []


def test_without_an_endpoint_there_is_nowhere_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where OpenTelemetry is switched off."""
    nowhere = outlet(problems=Problems())
    assert (nowhere.takes_spans, nowhere.takes_metrics) == (False, False)
    assert not nowhere.send_spans([SPAN])
    assert not nowhere.send_metrics(MetricsData([]))
    set_variables(monkeypatch, f"http://127.0.0.1:{dead_port()}", "grpc")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    off = outlet(problems=Problems())
    assert (off.takes_spans, off.takes_metrics) == (False, False)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricsData

from spark_app.telemetry import setup
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.export import network_exporters
from tests.answering import answering
from tests.receivers import receiver
from tests.unit.telemetry.memory import process


@pytest.fixture
def started() -> Iterator[setup.Telemetry]:
    """The telemetry of this process."""
    telemetry = setup.start(service_version="1", environment="test", application="shop")
    yield telemetry
    telemetry.close()


def test_it_is_built_once(started: setup.Telemetry) -> None:
    """A second start returns the same telemetry; after `close`, a new one."""
    assert setup.start(service_version="1", environment="test", application="shop") is started
    started.close()
    other = setup.start(service_version="1", environment="test", application="shop")
    other.close()
    assert other is not started


def test_a_second_close_does_nothing(started: setup.Telemetry) -> None:
    """The second call does nothing, without an error."""
    started.close()
    started.close()
    assert started.errors == []


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME overrides the default name, and OTEL_RESOURCE_ATTRIBUTES adds and overrides attributes."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=production,team=data")
    attributes = setup.resource(service_version="1", environment="dev", application="shop").attributes
    assert (attributes["service.name"], attributes["deployment.environment.name"], attributes["team"]) == (
        "nightly",
        "production",
        "data",
    )


def sent(variables: dict[str, str]) -> list[str]:
    """The signals that are sent with some variables, in this order, each without an error."""
    errors = TelemetryErrors()
    exporters = network_exporters(variables, errors=errors)
    results: dict[str, Any] = {}
    if exporters.spans is not None:
        results["traces"] = exporters.spans.export([])
    if exporters.metrics is not None:
        results["metrics"] = exporters.metrics.export(MetricsData([]))
    if exporters.logs is not None:
        results["logs"] = exporters.logs.export([])
    for each in exporters.present():
        each.shutdown()
    assert (list(errors), {signal: result.name for signal, result in results.items()}) == (
        [],
        dict.fromkeys(results, "SUCCESS"),
    )
    return list(results)


def test_nothing_is_sent_unless_an_endpoint_is_named() -> None:
    """No variable, an empty one, or one about something else: no exporter, no thread, no import."""
    assert sent({}) == []
    assert sent({"OTEL_EXPORTER_OTLP_ENDPOINT": " ", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == []


def test_http_is_the_default_and_paths_are_added() -> None:
    """By the specification: http/protobuf, and the path of the signal after the common endpoint."""
    with answering({"/v1/": b""}) as endpoint:
        assert sent({"OTEL_EXPORTER_OTLP_ENDPOINT": f"{endpoint.url}/"}) == ["traces", "metrics", "logs"]
    assert list(endpoint.asked) == ["/v1/traces", "/v1/metrics", "/v1/logs"]


def test_a_signal_can_have_its_own_endpoint_and_protocol() -> None:
    """The endpoint of a signal is used unchanged; signals without any endpoint are not sent."""
    with answering({"/logs": b""}) as endpoint, receiver() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.grpc_endpoint,
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{endpoint.url}/logs",
        }
        assert sent(variables) == ["traces", "logs"]
    assert (list(endpoint.asked), len(collector.headers)) == (["/logs"], 1)


def test_a_signal_can_be_disabled() -> None:
    """OTEL_<SIGNAL>_EXPORTER=none disables one."""
    with answering({"/v1/": b""}) as endpoint:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.url, "OTEL_LOGS_EXPORTER": "none"}
        assert sent(variables) == ["traces", "metrics"]
    assert list(endpoint.asked) == ["/v1/traces", "/v1/metrics"]


def test_a_wrong_protocol_is_an_error() -> None:
    """Nothing is sent, and the error has the reason."""
    errors = TelemetryErrors()
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
    assert network_exporters(variables, errors=errors).present() == []
    assert next(iter(errors)) == (
        "traces are not sent: ValueError: OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json'; "
        "supported are grpc and http/protobuf"
    )


def test_log_records_of_the_sdk_are_errors_and_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK logs unknown values while it is set up: the terminal stays clean, the errors have them."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "no value")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "sometimes")
    ended = process("print(len(telemetry.errors))", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2\n", "")


def test_wrong_settings_of_the_sdk_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of length 0 cannot be created: nothing is sent, and the error has the reason."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    telemetry = setup.start(service_version="1", environment="test", application="shop")
    telemetry.close()
    assert telemetry.errors == ["nothing is sent: ValueError: max_queue_size must be a positive integer."]

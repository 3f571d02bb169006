from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricsData

from app.telemetry import setup
from app.telemetry.export import network_exporters
from app.telemetry.problems import Problems
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
    """A second start gives the same; after the end, a new one."""
    assert setup.start(service_version="1", environment="test", application="shop") is started
    started.close()
    other = setup.start(service_version="1", environment="test", application="shop")
    other.close()
    assert other is not started


def test_closing_twice_does_no_harm(started: setup.Telemetry) -> None:
    """The second time nothing happens, and nothing is told."""
    started.close()
    started.close()
    assert started.problems == []


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SERVICE_NAME wins over our name, and OTEL_RESOURCE_ATTRIBUTES adds and wins too."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=production,team=data")
    found = setup.resource(service_version="1", environment="dev", application="shop").attributes
    assert (found["service.name"], found["deployment.environment.name"], found["team"]) == (
        "nightly",
        "production",
        "data",
    )


def sent(variables: dict[str, str]) -> list[str]:
    """Sends every signal that some variables ask for to where they say, in this order; nothing may go wrong."""
    problems = Problems()
    exporters = network_exporters(variables, problems=problems)
    results: dict[str, Any] = {}
    if exporters.spans is not None:
        results["traces"] = exporters.spans.export([])
    if exporters.metrics is not None:
        results["metrics"] = exporters.metrics.export(MetricsData([]))
    if exporters.logs is not None:
        results["logs"] = exporters.logs.export([])
    for each in exporters.present():
        each.shutdown()
    assert (list(problems), {signal: result.name for signal, result in results.items()}) == (
        [],
        dict.fromkeys(results, "SUCCESS"),
    )
    return list(results)


def test_nothing_is_sent_unless_an_endpoint_is_named() -> None:
    """No variable, an empty one, or one about something else: no exporter, no thread, no import."""
    assert sent({}) == []
    assert sent({"OTEL_EXPORTER_OTLP_ENDPOINT": " ", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == []


def test_http_is_the_default_and_paths_are_added() -> None:
    """As the specification says for SDKs: http/protobuf, and the path of the signal after the common endpoint."""
    with answering({"/v1/": b""}) as endpoint:
        assert sent({"OTEL_EXPORTER_OTLP_ENDPOINT": f"{endpoint.url}/"}) == ["traces", "metrics", "logs"]
    assert list(endpoint.asked) == ["/v1/traces", "/v1/metrics", "/v1/logs"]


def test_a_signal_can_have_its_own_endpoint_and_protocol() -> None:
    """Its own endpoint is taken as it is; signals without any endpoint are not sent."""
    with answering({"/logs": b""}) as endpoint, receiver() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.grpc_endpoint,
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{endpoint.url}/logs",
        }
        assert sent(variables) == ["traces", "logs"]
    assert (list(endpoint.asked), len(collector.headers)) == (["/logs"], 1)


def test_a_signal_can_be_left_out() -> None:
    """OTEL_<SIGNAL>_EXPORTER=none is the standard way to say so."""
    with answering({"/v1/": b""}) as endpoint:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint.url, "OTEL_LOGS_EXPORTER": "none"}
        assert sent(variables) == ["traces", "metrics"]
    assert list(endpoint.asked) == ["/v1/traces", "/v1/metrics"]


def test_a_wrong_protocol_is_told_and_harms_nothing() -> None:
    """Telemetry never raises into a job: a wrong variable means that nothing is sent, and a line that says why."""
    problems = Problems()
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
    assert network_exporters(variables, problems=problems).present() == []
    assert next(iter(problems)) == (
        "traces are not sent: ValueError: OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json'; "
        "this program speaks grpc and http/protobuf"
    )


def test_what_the_sdk_thinks_of_the_variables_is_told_and_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK logs about values it does not know while it is set up: the terminal stays clean, the list has it."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "no value")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "sometimes")
    ended = process("print(len(telemetry.problems))", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "2\n", "")


def test_wrong_settings_of_the_sdk_are_told_and_harm_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of no length cannot be made: nothing is sent, and what the run keeps is kept."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    telemetry = setup.start(service_version="1", environment="test", application="shop")
    telemetry.close()
    assert telemetry.problems == ["nothing is sent: ValueError: max_queue_size must be a positive integer."]

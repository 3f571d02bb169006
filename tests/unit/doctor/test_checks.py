import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.doctor import checks
from spark_app.doctor.checks import Check, run_checks
from spark_app.eventlog.bridge.self_metrics import BridgeStatus, SelfMetrics
from spark_app.settings import Settings, load_settings
from spark_app.vocabulary import names
from tests.answering import Answering, Refusal, answering
from tests.receivers import Receiver, attributes, dead_port, receiver, silent_port

SIGNS: Final[dict[str, Any]] = {
    "/collector/health": {"status": "Server available"},
    "/jaeger/api/services": {"data": []},
    "/prometheus/-/ready": b"ready",
    "/alertmanager/-/ready": b"OK",
    "/elasticsearch/_cluster/health": {"status": "green"},
    "/grafana/api/health": {"database": "ok"},
    "/kibana/api/status": {"status": {"overall": {"level": "available"}}},
    "/spark_master/json/": {"status": "ALIVE", "aliveworkers": 2},
    "/spark_history/api/v1/version": {"spark": "4.2.0"},
    "/jupyter/api": {"version": "2.17.0"},
    "/reports/": b"<!doctype html>",
}
HOPS: Final = (
    "collector", "jaeger", "prometheus", "targets", "elasticsearch", "alertmanager", "grafana", "kibana",
    "spark_master", "spark_history", "jupyter", "kafka", "bridge", "reports",
)  # fmt: skip
BRIDGE: Final = {"up": 1.0, "spark_bridge_lag_seconds": 0.4, "spark_bridge_silence_seconds": 0.1}
PARTS: Final = ("trace", "metric", "log")
UNKNOWN: Final = frozenset[str]()
SERVICES: Final = frozenset(service for component in checks.COMPONENTS for service in component.services)


@dataclass
class Stack:
    """A stack of one collector and one program that answers as all back ends would, from what the collector took."""

    collector: Receiver
    answering: Answering
    settings: Settings

    def without(self, **changes: str | None) -> Settings:
        """The settings with back ends elsewhere, or left out."""
        return self.settings.model_copy(update={"backends": self.settings.backends.model_copy(update=changes)})

    def lose(self, path: str, answer: Any) -> None:
        """Has a back end forget what it was sent."""
        self.answering.answers[path] = answer

    def examined(
        self, settings: Settings | None = None, *, services: frozenset[str] = UNKNOWN, seconds: float = 0.1
    ) -> dict[str, Check]:
        """The checks by their hop; the services are those with a container."""
        return {check.component: check for check in run_checks(settings or self.settings, services, seconds=seconds)}


def target(job: str, health: str = "up", error: str = "") -> dict[str, Any]:
    """Something that is scraped."""
    return {"labels": {"job": job}, "scrapeUrl": f"http://{job}/metrics", "health": health, "lastError": error}


def bridge(**values: float) -> dict[str, Any]:
    """What Prometheus knows of the bridge."""
    labels = {"job": "spark-bridge", "instance": "spark-bridge:9464"}
    result = [{"metric": labels | {"__name__": name}, "value": [0, str(value)]} for name, value in values.items()]
    return {"data": {"result": result}}


def knowing(collector: Receiver) -> dict[str, Any]:
    """What back ends answer that have what a collector took, and nothing else."""

    def query(parameters: dict[str, str], _: Any) -> Any:
        """How the bridge is, or the time of the newest point, if it was asked for as a doctor asks."""
        if parameters["query"] == checks.BRIDGE:
            return bridge(**BRIDGE)
        assert parameters["query"] == 'timestamp(platform_probes_total{job="spark-app-doctor"})'
        points = [point for metric in collector.metrics for point in metric.sum.data_points]
        times = [int(point.time_unix_nano // 1e6) / 1e3 for point in points]
        return {"data": {"result": [{"metric": {}, "value": [0, str(time)]} for time in times[-1:]]}}

    def search(_: dict[str, str], body: Any) -> Any:
        wanted = body["query"]["term"]["trace_id"]
        return {"hits": {"hits": [{"_source": {}} for line in collector.logs if line.trace_id.hex() == wanted]}}

    def trace(path: str) -> Any:
        wanted = path.rsplit("/", 1)[1]
        spans: list[Any] = [{} for span in collector.spans if span.trace_id.hex() == wanted]
        return {"data": [{"spans": spans}]} if spans else Refusal(404, {"data": None})

    return {
        "/prometheus/api/v1/query": query,
        "/prometheus/api/v1/targets": {"data": {"activeTargets": [target("jaeger"), target("spark-master")]}},
        "/elasticsearch/logs-*/_search": search,
        "/jaeger/api/traces/": trace,
    }


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack that is well."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("spark_app.doctor.backends.TIMEOUT_SECONDS", 60.0)
    with receiver() as collector, answering(SIGNS | knowing(collector)) as program, silent_port() as kafka:
        settings = load_settings()
        urls = {name: f"{program.url}/{name}" for name in type(settings.backends).model_fields}
        backends = settings.backends.model_copy(
            update=urls | {"otlp": collector.http_endpoint, "kafka": f"127.0.0.1:{kafka}"}
        )
        yield Stack(collector, program, settings.model_copy(update={"backends": backends}))


def test_every_component_of_a_healthy_stack_is_ok(stack: Stack) -> None:
    """And each part of the probe arrives; there are no hints."""
    results = stack.examined(seconds=10)
    assert list(results) == [*HOPS, *PARTS]
    assert {name: check.finding for name, check in results.items() if check.state != "ok" or check.look_at} == {}
    assert results["targets"].finding.startswith("all 2 targets up")
    assert results["trace"].finding.startswith("in jaeger after ")


def test_a_container_asks_by_the_names_of_services(stack: Stack) -> None:
    """What has no name in its network was left out, or has stopped; another name that no host has is a mistake."""
    inside = {"grafana": "http://grafana.invalid:3000", "jaeger": stack.settings.backends.jaeger or ""}
    settings = stack.without(jaeger="http://localhost:1", kibana="http://kibana.invalid:5601")
    results = stack.examined(settings.model_copy(update={"backends_inside": inside}), seconds=10)
    assert {name: check.state for name, check in results.items() if check.state != "ok"} == {
        "grafana": "left out",
        "kibana": "down",
    }
    assert results["grafana"].finding == f"{checks.NO_CONTAINER} (http://grafana.invalid:3000)"


def test_the_probe_has_the_configured_environment(stack: Stack) -> None:
    """Under a service name of its own."""
    stack.examined(seconds=10)
    resource = stack.collector.resources[0]
    assert resource["service.name"] == names.PROBE_SERVICE_NAME
    assert resource["deployment.environment.name"] == stack.settings.environment
    assert [attributes(line) for line in stack.collector.logs] == [{}]


@pytest.mark.parametrize("hop", [hop for hop in HOPS if hop not in ("targets", "kafka", "bridge")])
def test_a_component_that_does_not_answer_is_down(stack: Stack, hop: str) -> None:
    """The others are not; the hint says where to look."""
    address = f"http://127.0.0.1:{dead_port()}"
    results = stack.examined(stack.without(**{hop: address}))
    assert (results[hop].state, results[hop].look_at) == ("down", checks.LOOK_AT[hop])
    assert results[hop].finding.startswith(address)
    others = {name: check.state for name, check in results.items() if name not in {hop, "targets", "bridge", *PARTS}}
    assert set(others.values()) == {"ok"}


def test_a_component_that_the_stack_was_started_without_is_left_out(stack: Stack) -> None:
    """One that has no container while others have: not down, and neither are its targets; one elsewhere is down."""
    settings = stack.without(**{hop: f"http://127.0.0.1:{dead_port()}" for hop in ("grafana", "kibana", "reports")})
    targets = [target("jaeger"), target("spark-worker-1", "down", "refused"), target("kibana", "down", "no such host")]
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": targets[:1] + targets[2:]}})
    results = stack.examined(settings, services=SERVICES - {"grafana", "kibana"}, seconds=10)
    states = {name: check.state for name, check in results.items() if check.state != "ok"}
    assert states == {"grafana": "left out", "kibana": "left out", "reports": "down"}
    assert results["kibana"].finding == "the stack runs without the service kibana"
    assert results["targets"].finding.startswith("all 1 targets up, left out: kibana (http")
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": targets}})
    services = (SERVICES | {"spark-worker-1"}) - {"kibana"}
    assert stack.examined(settings, services=services)["targets"].state == "down"
    elsewhere = stack.without(kibana="http://192.0.2.1.invalid:5601")
    assert stack.examined(elsewhere, services=SERVICES - {"kibana"})["kibana"].state == "down"


def test_nothing_is_looked_for_in_a_store_that_was_left_out(stack: Stack) -> None:
    """Nor waited for; without a collector nothing is sent, and nothing is lost."""
    began = time.monotonic()
    dead = f"http://127.0.0.1:{dead_port()}"
    results = stack.examined(stack.without(jaeger=dead), services=SERVICES - {"jaeger"}, seconds=60)
    assert time.monotonic() - began < 30
    assert results["trace"].finding == "sent; the stack runs without the service jaeger"
    assert {part: results[part].state for part in PARTS} == {"trace": "left out", "metric": "ok", "log": "ok"}
    results = stack.examined(stack.without(collector=dead, otlp=dead), services=SERVICES - {"otel-collector"})
    assert {results[part].finding for part in PARTS} == {"not sent: the stack runs without the service otel-collector"}
    results = stack.examined(stack.without(prometheus=dead), services=SERVICES - {"prometheus"})
    assert {results[hop].state for hop in ("prometheus", "targets", "bridge", "metric")} == {"left out"}


def test_passwords_in_urls_are_masked(stack: Stack) -> None:
    """Findings are pasted into tickets."""
    finding = stack.examined(stack.without(jaeger=f"http://me:hunter2@127.0.0.1:{dead_port()}"))["jaeger"].finding
    assert finding.startswith("http://(redacted)@127.0.0.1:")
    assert "hunter2" not in finding


def test_a_broker_that_does_not_listen_is_down(stack: Stack) -> None:
    """Its port refuses connections."""
    assert stack.examined(stack.without(kafka=f"127.0.0.1:{dead_port()}"))["kafka"].state == "down"


def test_a_target_that_is_down_has_its_error(stack: Stack) -> None:
    """A target that was not scraped yet is not up."""
    targets = [target("jaeger"), target("kafka", "unknown"), target("spark-worker", "down", "connection refused")]
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": targets}})
    assert stack.examined()["targets"].finding == (
        "1 of 3 targets up; kafka http://kafka/metrics is unknown: not scraped yet; "
        "spark-worker http://spark-worker/metrics is down: connection refused"
    )
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": []}})
    assert stack.examined()["targets"].finding == "0 of 0 targets up; nothing is scraped"


@pytest.mark.parametrize(
    ("known", "state", "expected"),
    [
        (BRIDGE, "ok", "up, 400 ms behind the newest event"),
        ({"up": 1.0}, "ok", "up"),
        ({"up": 0.0}, "down", "Prometheus cannot scrape it"),
        (BRIDGE | {"spark_bridge_silence_seconds": 21.0}, "down", "it hangs: its loop last ran 21.0 s ago"),
        ({}, "left out", "not scraped"),
    ],
)
def test_the_health_of_the_bridge_comes_from_prometheus(
    stack: Stack, known: dict[str, float], state: str, expected: str
) -> None:
    """If Prometheus scrapes no bridge, it is left out."""
    stack.lose("/prometheus/api/v1/query", bridge(**known))
    result = stack.examined()["bridge"]
    assert (result.state, result.finding) == (state, f"{expected} ({stack.settings.backends.prometheus})")


def test_the_bridge_is_queried_by_its_own_metric_names(tmp_path: Path) -> None:
    """Or the doctor would find nothing."""
    metrics = SelfMetrics(BridgeStatus(), tmp_path, host="127.0.0.1", port=0)
    names_of = {metric.name for metric in metrics.collect()}
    metrics.close()
    pattern = re.compile(checks.BRIDGE.split('"')[1])
    assert {name for name in names_of if pattern.fullmatch(name)} == set(BRIDGE) - {"up"}


@pytest.mark.parametrize(
    ("part", "store", "path", "answer"),
    [
        ("trace", "jaeger", "/jaeger/api/traces/", Refusal(404, {"data": None})),
        ("metric", "prometheus", "/prometheus/api/v1/query", {"data": {"result": []}}),
        ("log", "elasticsearch", "/elasticsearch/logs-*/_search", {"hits": {"hits": []}}),
    ],
)
def test_what_a_store_lacks_was_lost_after_the_collector(
    stack: Stack, part: str, store: str, path: str, answer: Any
) -> None:
    """The hint names its exporter and the store. The other parts arrive."""
    stack.lose(path, answer)
    results = stack.examined(seconds=1)
    assert results[part].state == "lost"
    assert results[part].finding.startswith(f"accepted by the collector, but not in {store} after 1.0 s")
    assert (results[part].look_at or "").startswith("docker logs otel-collector (exporter ")
    assert {results[other].state for other in PARTS if other != part} == {"ok"}


def test_an_older_point_is_not_the_probe(stack: Stack) -> None:
    """The series exists from earlier probes."""
    stack.lose("/prometheus/api/v1/query", {"data": {"result": [{"metric": {}, "value": [0, "1700000000"]}]}})
    assert stack.examined()["metric"].state == "lost"


def test_the_queue_of_the_collector_is_reported(stack: Stack) -> None:
    """A growing queue means that the store accepts nothing."""

    def query(parameters: dict[str, str], _: Any) -> Any:
        is_queue = parameters["query"] == 'sum(otelcol_exporter_queue_size{exporter="elasticsearch"})'
        return {"data": {"result": [{"metric": {}, "value": [0, "12"]}] if is_queue else []}}

    stack.lose("/prometheus/api/v1/query", query)
    stack.lose("/elasticsearch/logs-*/_search", {"hits": {"hits": []}})
    assert stack.examined()["log"].finding.endswith("; 12 batches are queued in the collector")


def test_the_hint_for_a_store_that_is_down_is_the_store(stack: Stack) -> None:
    """The cause is named once."""
    results = stack.examined(stack.without(elasticsearch=f"http://127.0.0.1:{dead_port()}"))
    assert results["log"].finding.endswith("not in elasticsearch after 100 ms, which is down")
    assert results["log"].look_at == "docker logs elasticsearch"
    assert results["log"].state == "lost"


def test_what_the_collector_refuses_is_not_waited_for(stack: Stack) -> None:
    """The hint is the collector."""
    stack.collector.mode = "refusing"
    began = time.monotonic()
    results = stack.examined(seconds=60)
    assert time.monotonic() - began < 30
    assert {results[part].state for part in PARTS} == {"lost"}
    assert results["trace"].finding.startswith("the collector did not accept it: ")
    assert "Service Unavailable" in results["trace"].finding
    assert results["trace"].look_at == "docker logs otel-collector"


def test_null_in_the_configuration_leaves_a_component_out(stack: Stack) -> None:
    """That is shown, and is no error."""
    fields = type(stack.settings.backends).model_fields
    results = stack.examined(stack.without(**dict.fromkeys(fields)))
    assert {check.state for check in results.values()} == {"left out"}
    assert results["kibana"].finding == "backends.kibana is null in the configuration"
    assert stack.collector.spans == []
    results = stack.examined(stack.without(jaeger=None), seconds=10)
    assert results["trace"].finding == "sent; backends.jaeger is null in the configuration"
    assert {results[part].state for part in ("metric", "log")} == {"ok"}


def test_the_standard_variable_overrides_the_endpoint_of_the_probe(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does for jobs."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", stack.collector.http_endpoint)
    results = stack.examined(stack.without(otlp=f"http://127.0.0.1:{dead_port()}"), seconds=10)
    assert {results[part].state for part in PARTS} == {"ok"}

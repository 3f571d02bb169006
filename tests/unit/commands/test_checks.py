import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from app.commands import checks
from app.commands.checks import Check, examined
from app.eventlog.bridge.selfmetrics import SelfMetrics, Standing
from app.settings import Settings, load_settings
from app.telemetry import names
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
    "/reports/": b"<!doctype html>",
}
HOPS: Final = (
    "collector", "jaeger", "prometheus", "targets", "elasticsearch", "alertmanager", "grafana", "kibana",
    "spark_master", "kafka", "bridge", "reports",
)  # fmt: skip
BRIDGE: Final = {"up": 1.0, "spark_bridge_lag_seconds": 0.4, "spark_bridge_silence_seconds": 0.1}
PARTS: Final = ("trace", "metric", "log")


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

    def examined(self, settings: Settings | None = None, *, seconds: float = 0.1) -> dict[str, Check]:
        """The checks by their hop."""
        return {check.hop: check for check in examined(settings or self.settings, seconds=seconds)}


def target(job: str, health: str = "up", error: str = "") -> dict[str, Any]:
    """Something that is scraped."""
    return {"labels": {"job": job}, "scrapeUrl": f"http://{job}/metrics", "health": health, "lastError": error}


def bridge(**values: float) -> dict[str, Any]:
    """What Prometheus knows of the bridge."""
    labels = {"job": "spark-bridge", "instance": "spark-bridge:9464"}
    result = [{"metric": labels | {"__name__": name}, "value": [0, str(value)]} for name, value in values.items()]
    return {"data": {"result": result}}


def knowing(found: Receiver) -> dict[str, Any]:
    """What back ends answer that have what a collector took, and nothing else."""

    def query(parameters: dict[str, str], _: Any) -> Any:
        """How the bridge is, or the time of the newest point, if it was asked for as a doctor asks."""
        if parameters["query"] == checks.BRIDGE:
            return bridge(**BRIDGE)
        assert parameters["query"] == 'timestamp(platform_probes_total{job="spark-app-doctor"})'
        points = [point for metric in found.metrics for point in metric.sum.data_points]
        times = [int(point.time_unix_nano // 1e6) / 1e3 for point in points]
        return {"data": {"result": [{"metric": {}, "value": [0, str(time)]} for time in times[-1:]]}}

    def search(_: dict[str, str], body: Any) -> Any:
        wanted = body["query"]["term"]["trace_id"]
        return {"hits": {"hits": [{"_source": {}} for line in found.logs if line.trace_id.hex() == wanted]}}

    def trace(path: str) -> Any:
        wanted = path.rsplit("/", 1)[1]
        spans: list[Any] = [{} for span in found.spans if span.trace_id.hex() == wanted]
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
    monkeypatch.setattr("app.backends.TIMEOUT_SECONDS", 60.0)
    with receiver() as collector, answering(SIGNS | knowing(collector)) as found, silent_port() as kafka:
        settings = load_settings()
        urls = {name: f"{found.url}/{name}" for name in type(settings.backends).model_fields}
        backends = settings.backends.model_copy(
            update=urls | {"otlp": collector.http_endpoint, "kafka": f"127.0.0.1:{kafka}"}
        )
        yield Stack(collector, found, settings.model_copy(update={"backends": backends}))


def test_a_stack_that_is_well_is_well_at_every_hop(stack: Stack) -> None:
    """Every program answers, and what is sent is found again; nothing is left to look at."""
    found = stack.examined(seconds=10)
    assert list(found) == [*HOPS, *PARTS]
    assert {name: check.found for name, check in found.items() if check.state != "ok" or check.look_at} == {}
    assert found["targets"].found.startswith("all 2 targets up")
    assert found["trace"].found.startswith("in jaeger after ")


def test_the_probe_tells_what_the_settings_say(stack: Stack) -> None:
    """Under a name of its own, from the environment that jobs tell too."""
    stack.examined(seconds=10)
    told = stack.collector.resources[0]
    assert told["service.name"] == names.PROBE_SERVICE_NAME
    assert told["deployment.environment.name"] == stack.settings.environment
    assert [attributes(line) for line in stack.collector.logs] == [{}]


@pytest.mark.parametrize("hop", [hop for hop in HOPS if hop not in ("targets", "kafka", "bridge")])
def test_a_program_that_is_away_is_down_and_the_others_are_not(stack: Stack, hop: str) -> None:
    """The line says where nobody answers, and what to look at."""
    address = f"http://127.0.0.1:{dead_port()}"
    found = stack.examined(stack.without(**{hop: address}))
    assert (found[hop].state, found[hop].look_at) == ("down", checks.LOOK_AT[hop])
    assert found[hop].found.startswith(address)
    others = {name: check.state for name, check in found.items() if name not in {hop, "targets", "bridge", *PARTS}}
    assert set(others.values()) == {"ok"}


def test_the_password_of_an_address_is_not_told(stack: Stack) -> None:
    """What the doctor finds is pasted into tickets."""
    found = stack.examined(stack.without(jaeger=f"http://me:hunter2@127.0.0.1:{dead_port()}"))["jaeger"].found
    assert found.startswith("http://(redacted)@127.0.0.1:")
    assert "hunter2" not in found


def test_a_broker_that_is_away_is_down(stack: Stack) -> None:
    """Nobody listens on its port."""
    assert stack.examined(stack.without(kafka=f"127.0.0.1:{dead_port()}"))["kafka"].state == "down"


def test_a_target_that_is_down_is_named_with_its_error(stack: Stack) -> None:
    """Prometheus knows why it cannot scrape something; that it was not asked for yet is no reason to call it up."""
    targets = [target("jaeger"), target("kafka", "unknown"), target("spark-worker", "down", "connection refused")]
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": targets}})
    assert stack.examined()["targets"].found == (
        "1 of 3 targets up; kafka http://kafka/metrics is unknown: not scraped yet; "
        "spark-worker http://spark-worker/metrics is down: connection refused"
    )
    stack.lose("/prometheus/api/v1/targets", {"data": {"activeTargets": []}})
    assert stack.examined()["targets"].found == "0 of 0 targets up; nothing is scraped"


@pytest.mark.parametrize(
    ("known", "state", "told"),
    [
        (BRIDGE, "ok", "up, 0 s behind what is written"),
        ({"up": 1.0}, "ok", "up"),
        ({"up": 0.0}, "down", "it does not answer Prometheus"),
        (BRIDGE | {"spark_bridge_silence_seconds": 21.0}, "down", "it hangs: its loop last came round 21 s ago"),
        ({}, "left out", "not scraped"),
    ],
)
def test_the_bridge_is_as_prometheus_knows_it(stack: Stack, known: dict[str, float], state: str, told: str) -> None:
    """Its port is inside of the stack; where nothing scrapes one, there is none, and that is said."""
    stack.lose("/prometheus/api/v1/query", bridge(**known))
    found = stack.examined()["bridge"]
    assert (found.state, found.found) == (state, f"{told} ({stack.settings.backends.prometheus})")


def test_the_bridge_is_asked_for_by_the_names_that_it_tells(tmp_path: Path) -> None:
    """As those of its own metrics, or the doctor would find nothing."""
    told = SelfMetrics(Standing(), tmp_path, host="127.0.0.1", port=0)
    names_of = {metric.name for metric in told.collect()}
    told.close()
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
def test_what_a_store_does_not_have_is_lost_between_collector_and_store(
    stack: Stack, part: str, store: str, path: str, answer: Any
) -> None:
    """The collector took it; so its exporter and the store are to be looked at. The other parts arrive."""
    stack.lose(path, answer)
    found = stack.examined(seconds=1)
    assert found[part].state == "lost"
    assert found[part].found.startswith(f"the collector took it; it is not in {store} after 1 s")
    assert (found[part].look_at or "").startswith("docker logs otel-collector (exporter ")
    assert {found[other].state for other in PARTS if other != part} == {"ok"}


def test_a_point_that_is_older_than_the_probe_is_not_the_probe(stack: Stack) -> None:
    """The series is there from the last look; what counts is the point that was sent now."""
    stack.lose("/prometheus/api/v1/query", {"data": {"result": [{"metric": {}, "value": [0, "1700000000"]}]}})
    assert stack.examined()["metric"].state == "lost"


def test_what_waits_in_the_collector_is_told(stack: Stack) -> None:
    """A queue that grows says that the store does not take what it is sent."""

    def query(parameters: dict[str, str], _: Any) -> Any:
        is_queue = parameters["query"] == 'sum(otelcol_exporter_queue_size{exporter="elasticsearch"})'
        return {"data": {"result": [{"metric": {}, "value": [0, "12"]}] if is_queue else []}}

    stack.lose("/prometheus/api/v1/query", query)
    stack.lose("/elasticsearch/logs-*/_search", {"hits": {"hits": []}})
    assert stack.examined()["log"].found.endswith("; 12 batches wait in the collector")


def test_what_is_lost_in_a_store_that_is_down_leads_to_that_store(stack: Stack) -> None:
    """The cause is named once: the store."""
    found = stack.examined(stack.without(elasticsearch=f"http://127.0.0.1:{dead_port()}"))
    assert found["log"].found.endswith("is not in elasticsearch after 0 s, which is down")
    assert found["log"].look_at == "docker logs elasticsearch"
    assert found["log"].state == "lost"


def test_what_the_collector_does_not_take_is_lost_before_it(stack: Stack) -> None:
    """Nothing is waited for then, and the collector is what to look at."""
    stack.collector.mode = "refusing"
    began = time.monotonic()
    found = stack.examined(seconds=60)
    assert time.monotonic() - began < 30
    assert {found[part].state for part in PARTS} == {"lost"}
    assert found["trace"].found.startswith("the collector did not take it: ")
    assert "Service Unavailable" in found["trace"].found
    assert found["trace"].look_at == "docker logs otel-collector"


def test_what_is_null_is_left_out_and_said_to_be(stack: Stack) -> None:
    """Where an image cannot be had, or a program is not wanted, that is neither hidden nor an error."""
    fields = type(stack.settings.backends).model_fields
    found = stack.examined(stack.without(**dict.fromkeys(fields)))
    assert {check.state for check in found.values()} == {"left out"}
    assert found["kibana"].found == "backends.kibana is null in the configuration"
    assert stack.collector.spans == []
    found = stack.examined(stack.without(jaeger=None), seconds=10)
    assert found["trace"].found == "sent; backends.jaeger is null in the configuration"
    assert {found[part].state for part in ("metric", "log")} == {"ok"}


def test_the_variable_wins_over_the_configuration(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends jobs' telemetry elsewhere has the doctor send there."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", stack.collector.http_endpoint)
    found = stack.examined(stack.without(otlp=f"http://127.0.0.1:{dead_port()}"), seconds=10)
    assert {found[part].state for part in PARTS} == {"ok"}

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from app import backends
from app.backends import Elasticsearch, Jaeger, Prometheus, Target
from app.errors import MachineError
from tests.answering import Answering, Refusal, answering
from tests.receivers import dead_port, silent_port

ROOT: Final = Path(__file__).resolve().parents[2]
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
HEALTHS: Final[dict[str, tuple[Callable[[str], str], str, Any, str]]] = {
    "collector": (backends.collector_health, "/health", {"status": "Server available"}, "server available"),
    "jaeger": (lambda url: Jaeger(url).health(), "/api/services", {"data": ["a", "b"]}, "knows 2 services"),
    "new jaeger": (lambda url: Jaeger(url).health(), "/api/services", {"data": None}, "knows 0 services"),
    "prometheus": (lambda url: Prometheus(url).health(), "/-/ready", b"Prometheus Server is Ready.", "ready"),
    "elasticsearch": (lambda url: Elasticsearch(url).health(), "/_cluster/health", {"status": "green"}, "status green"),
    "alertmanager": (backends.alertmanager_health, "/-/ready", b"OK", "ready"),
    "grafana": (backends.grafana_health, "/api/health", {"database": "ok"}, "database ok"),
    "kibana": (backends.kibana_health, "/api/status", {"status": {"overall": {"level": "available"}}}, "available"),
    "spark": (backends.spark_health, "/json/", {"status": "ALIVE", "aliveworkers": 2}, "2 workers alive"),
    "reports": (backends.reports_health, "/", b"<!doctype html>", "served"),
}  # fmt: skip
UNWELL: Final[dict[str, tuple[Callable[[str], str], str, Any, str]]] = {
    "elasticsearch": (lambda url: Elasticsearch(url).health(), "/_cluster/health", {"status": "red"}, "is red"),
    "grafana": (backends.grafana_health, "/api/health", {"database": "failing"}, "its database: failing"),
    "kibana": (backends.kibana_health, "/api/status", {"status": {"overall": {"level": "degraded"}}}, "is degraded"),
    "standby": (backends.spark_health, "/json/", {"status": "STANDBY", "aliveworkers": 0}, "is STANDBY"),
    "no worker": (backends.spark_health, "/json/", {"status": "ALIVE", "aliveworkers": 0}, "has no worker"),
    "starting": (backends.alertmanager_health, "/-/ready", Refusal(503, b"not\nyet"), r"answers 503 .*: not yet"),
    "nothing": (backends.alertmanager_health, "/-/ready", Refusal(500, b""), r"answers 500 .*: nothing more"),
    "a web page": (backends.grafana_health, "/api/health", b"<html>", "something else than JSON with database"),
    "another program": (backends.kibana_health, "/api/status", {"status": "ok"}, "JSON with status.overall.level"),
    "a list": (backends.spark_health, "/json/", [], "JSON with status"),
}


@pytest.fixture
def program() -> Iterator[Answering]:
    """A program that is asked over HTTP."""
    with answering({}) as found:
        yield found


@pytest.mark.parametrize("name", HEALTHS)
def test_what_is_well_says_how_it_is(name: str, program: Answering) -> None:
    """Each program is asked where it tells its health."""
    health, path, answer, told = HEALTHS[name]
    program.answers[path] = answer
    assert health(program.url) == told


@pytest.mark.parametrize("name", UNWELL)
def test_what_is_not_well_is_one_line_with_its_address(name: str, program: Answering) -> None:
    """Whatever is answered instead, the line names who was asked and what is wrong."""
    health, path, answer, told = UNWELL[name]
    program.answers[path] = answer
    with pytest.raises(MachineError, match=told) as raised:
        health(program.url)
    assert str(raised.value).startswith(program.url)
    assert "\n" not in str(raised.value)


def test_who_is_not_there_is_said_not_to_answer() -> None:
    """A port that nobody listens on is told at once."""
    url = f"http://127.0.0.1:{dead_port()}"
    with pytest.raises(MachineError, match=f"^{url}/-/ready does not answer: Connection refused$"):
        Prometheus(url).health()


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes the connection and never answers costs a bounded time."""
    monkeypatch.setattr(backends, "TIMEOUT_SECONDS", 0.2)
    began = time.monotonic()
    with silent_port() as port, pytest.raises(MachineError, match=r"does not answer: nothing came within"):
        Prometheus(f"http://127.0.0.1:{port}").health()
    assert time.monotonic() - began < 30


def test_a_proxy_for_the_world_outside_is_passed_by(program: Answering) -> None:
    """The stack is where we are, whatever the environment of the process says of a proxy."""
    program.answers["/-/ready"] = b"OK"
    proxy = f"http://127.0.0.1:{dead_port()}"
    environment = os.environ | {"http_proxy": proxy, "HTTP_PROXY": proxy, "no_proxy": "", "NO_PROXY": ""}
    script = f"from app import backends; print(backends.alertmanager_health({program.url!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "ready\n", done.stderr


def test_a_broker_is_well_when_its_port_is_open() -> None:
    """And said not to answer when it is not; the line names its address."""
    with silent_port() as port:
        assert backends.kafka_health(f"127.0.0.1:{port}") == "its port is open"
    with pytest.raises(MachineError, match=rf"^127\.0\.0\.1:{port} does not answer: Connection refused$"):
        backends.kafka_health(f"127.0.0.1:{port}")


def test_the_spans_of_a_trace_are_found(program: Answering) -> None:
    """Those of one trace, and of no other."""
    program.answers[f"/api/traces/{TRACE}"] = {"data": [{"spans": [{"operationName": "a"}, {"operationName": "b"}]}]}
    assert [span["operationName"] for span in Jaeger(program.url).spans(TRACE)] == ["a", "b"]


@pytest.mark.parametrize("answer", [Refusal(404, {"data": None, "errors": [{"code": 404}]}), {"data": []}])
def test_a_trace_that_is_not_there_has_no_spans(program: Answering, answer: Any) -> None:
    """Jaeger says 404 then; that is an answer, not a failure."""
    program.answers[f"/api/traces/{TRACE}"] = answer
    assert Jaeger(program.url).spans(TRACE) == []


def test_a_query_gives_the_value_of_each_series(program: Answering) -> None:
    """By its labels, at the moment that was asked for."""
    series = [{"metric": {"b": "2", "a": "1"}, "value": [17.5, "3"]}, {"metric": {}, "value": [17.5, "NaN"]}]
    program.answers["/api/v1/query"] = {"data": {"result": series}}
    found = Prometheus(program.url).values('up{job="x"}', at=17.5)
    assert found[("a", "1"), ("b", "2")] == 3.0
    assert found[()] != found[()]
    assert program.asked["/api/v1/query"] == [({"query": 'up{job="x"}', "time": "17.500"}, None)]


def test_a_wrong_query_is_told_with_what_prometheus_says(program: Answering) -> None:
    """Its own words come along: they say where the expression is wrong."""
    program.answers["/api/v1/query"] = Refusal(400, {"error": "unclosed left parenthesis"})
    with pytest.raises(MachineError, match=r"answers 400 .*unclosed left parenthesis"):
        Prometheus(program.url).values("sum(")


def test_targets_come_with_what_is_wrong_with_them(program: Answering) -> None:
    """Job, address, health, and the error of the last scrape."""
    target = {"labels": {"job": "j"}, "scrapeUrl": "http://j:8888/metrics", "health": "down", "lastError": "EOF"}
    program.answers["/api/v1/targets"] = {"data": {"activeTargets": [target]}}
    assert Prometheus(program.url).targets() == [Target("j", "http://j:8888/metrics", "down", "EOF")]


def test_exemplars_are_the_traces_behind_some_series(program: Answering) -> None:
    """Their ids, once each; an exemplar without a trace is none."""
    exemplars = [{"labels": {"trace_id": TRACE}}, {"labels": {"trace_id": TRACE}}, {"labels": {}}]
    program.answers["/api/v1/query_exemplars"] = {"data": [{"exemplars": exemplars}, {"exemplars": []}]}
    assert Prometheus(program.url).exemplars("x_bucket", start=1, end=2) == {TRACE}
    assert program.asked["/api/v1/query_exemplars"][0][0] == {"query": "x_bucket", "start": "1.000", "end": "2.000"}


def test_the_log_lines_of_a_trace_are_found(program: Answering) -> None:
    """Every data stream of logs is searched for its id."""
    program.answers["/logs-*/_search"] = {"hits": {"hits": [{"_source": {"body": {"text": "hello"}}}]}}
    assert Elasticsearch(program.url).logs(TRACE) == [{"body": {"text": "hello"}}]
    ((_, body),) = program.asked["/logs-*/_search"]
    assert body["query"] == {"term": {"trace_id": TRACE}}

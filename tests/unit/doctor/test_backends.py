import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.doctor import backends
from spark_app.doctor.backends import Elasticsearch, Jaeger, Prometheus, Target
from spark_app.errors import MachineError
from tests.answering import Answering, Refusal, answering
from tests.receivers import dead_port, silent_port

ROOT: Final = Path(__file__).resolve().parents[2]
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
HEALTHS: Final[dict[str, tuple[Callable[[str], str], str, Any, str]]] = {
    "collector": (backends.collector_health, "/health", {"status": "Server available"}, "server available"),
    "jaeger": (lambda url: Jaeger(url).health(), "/api/services", {"data": ["a", "b"]}, "knows 2 services"),
    "new jaeger": (lambda url: Jaeger(url).health(), "/api/services", {"data": None}, "knows 0 services"),
    "prometheus": (backends.ready_health, "/-/ready", b"Prometheus Server is Ready.", "ready"),
    "elasticsearch": (lambda url: Elasticsearch(url).health(), "/_cluster/health", {"status": "green"}, "status green"),
    "alertmanager": (backends.ready_health, "/-/ready", b"OK", "ready"),
    "grafana": (backends.grafana_health, "/api/health", {"database": "ok"}, "database ok"),
    "kibana": (backends.kibana_health, "/api/status", {"status": {"overall": {"level": "available"}}}, "available"),
    "spark": (backends.spark_health, "/json/", {"status": "ALIVE", "aliveworkers": 2}, "2 alive workers"),
    "reports": (backends.reports_health, "/", b"<!doctype html>", "served"),
}  # fmt: skip
UNWELL: Final[dict[str, tuple[Callable[[str], str], str, Any, str]]] = {
    "elasticsearch": (lambda url: Elasticsearch(url).health(), "/_cluster/health", {"status": "red"}, "status red"),
    "grafana": (backends.grafana_health, "/api/health", {"database": "failing"}, "has database failing"),
    "kibana": (
        backends.kibana_health,
        "/api/status",
        {"status": {"overall": {"level": "degraded"}}},
        "has level degraded",
    ),
    "standby": (backends.spark_health, "/json/", {"status": "STANDBY", "aliveworkers": 0}, "is STANDBY"),
    "no worker": (backends.spark_health, "/json/", {"status": "ALIVE", "aliveworkers": 0}, "has no alive worker"),
    "starting": (backends.ready_health, "/-/ready", Refusal(503, b"not\nyet"), r"returned 503 .*: not yet"),
    "nothing": (backends.ready_health, "/-/ready", Refusal(500, b""), r"returned 500 .*: no body"),
    "a web page": (backends.grafana_health, "/api/health", b"<html>", "did not return JSON with database"),
    "another program": (backends.kibana_health, "/api/status", {"status": "ok"}, "JSON with status.overall.level"),
    "a list": (backends.spark_health, "/json/", [], "JSON with status"),
}


@pytest.fixture
def program() -> Iterator[Answering]:
    """A program that is asked over HTTP."""
    with answering({}) as program:
        yield program


@pytest.mark.parametrize("name", HEALTHS)
def test_a_healthy_backend_describes_its_state(name: str, program: Answering) -> None:
    """Each is asked at its health endpoint."""
    health, path, answer, expected = HEALTHS[name]
    program.answers[path] = answer
    assert health(program.url) == expected


@pytest.mark.parametrize("name", UNWELL)
def test_an_unhealthy_backend_is_one_line_with_its_url(name: str, program: Answering) -> None:
    """Whatever it returns instead."""
    health, path, answer, expected = UNWELL[name]
    program.answers[path] = answer
    with pytest.raises(MachineError, match=expected) as raised:
        health(program.url)
    assert str(raised.value).startswith(program.url)
    assert "\n" not in str(raised.value)


def test_a_refused_connection_is_reported() -> None:
    """At once."""
    url = f"http://127.0.0.1:{dead_port()}"
    with pytest.raises(MachineError, match=f"^{url}/-/ready does not answer: Connection refused$"):
        backends.ready_health(url)


def test_a_backend_that_never_answers_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a bounded time."""
    monkeypatch.setattr(backends, "TIMEOUT_SECONDS", 0.2)
    began = time.monotonic()
    with silent_port() as port, pytest.raises(MachineError, match=r"does not answer: no response within"):
        backends.ready_health(f"http://127.0.0.1:{port}")
    assert time.monotonic() - began < 30


def test_proxies_are_not_used(program: Answering) -> None:
    """Whatever the environment says of one."""
    program.answers["/-/ready"] = b"OK"
    proxy = f"http://127.0.0.1:{dead_port()}"
    environment = os.environ | {"http_proxy": proxy, "HTTP_PROXY": proxy, "no_proxy": "", "NO_PROXY": ""}
    script = f"from spark_app.doctor import backends; print(backends.ready_health({program.url!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "ready\n", done.stderr


def test_a_broker_is_healthy_if_its_port_is_open() -> None:
    """Else the line names its address."""
    with silent_port() as port:
        assert backends.kafka_health(f"127.0.0.1:{port}") == "port is open"
    with pytest.raises(MachineError, match=rf"^127\.0\.0\.1:{port} does not answer: Connection refused$"):
        backends.kafka_health(f"127.0.0.1:{port}")


def test_the_spans_of_a_trace_are_found(program: Answering) -> None:
    """Those of one trace, and of no other."""
    program.answers[f"/api/traces/{TRACE}"] = {"data": [{"spans": [{"operationName": "a"}, {"operationName": "b"}]}]}
    assert [span["operationName"] for span in Jaeger(program.url).spans(TRACE)] == ["a", "b"]


@pytest.mark.parametrize("answer", [Refusal(404, {"data": None, "errors": [{"code": 404}]}), {"data": []}])
def test_an_unknown_trace_has_no_spans(program: Answering, answer: Any) -> None:
    """Jaeger returns 404, which is no failure."""
    program.answers[f"/api/traces/{TRACE}"] = answer
    assert Jaeger(program.url).spans(TRACE) == []


def test_a_query_returns_the_value_of_each_series(program: Answering) -> None:
    """By its labels, at the given time."""
    series = [{"metric": {"b": "2", "a": "1"}, "value": [17.5, "3"]}, {"metric": {}, "value": [17.5, "NaN"]}]
    program.answers["/api/v1/query"] = {"data": {"result": series}}
    values = Prometheus(program.url).values('up{job="x"}', at=17.5)
    assert values[("a", "1"), ("b", "2")] == 3.0
    assert values[()] != values[()]
    assert program.asked["/api/v1/query"] == [({"query": 'up{job="x"}', "time": "17.500"}, None)]


def test_an_invalid_query_has_the_error_of_prometheus(program: Answering) -> None:
    """It says where the expression is wrong."""
    program.answers["/api/v1/query"] = Refusal(400, {"error": "unclosed left parenthesis"})
    with pytest.raises(MachineError, match=r"returned 400 .*unclosed left parenthesis"):
        Prometheus(program.url).values("sum(")


def test_targets_have_their_last_error(program: Answering) -> None:
    """With job, URL and health."""
    target = {"labels": {"job": "j"}, "scrapeUrl": "http://j:8888/metrics", "health": "down", "lastError": "EOF"}
    program.answers["/api/v1/targets"] = {"data": {"activeTargets": [target]}}
    assert Prometheus(program.url).targets() == [Target("j", "http://j:8888/metrics", "down", "EOF")]


def test_exemplars_are_distinct_trace_ids(program: Answering) -> None:
    """An exemplar without a trace is left out."""
    exemplars = [{"labels": {"trace_id": TRACE}}, {"labels": {"trace_id": TRACE}}, {"labels": {}}]
    program.answers["/api/v1/query_exemplars"] = {"data": [{"exemplars": exemplars}, {"exemplars": []}]}
    assert Prometheus(program.url).exemplars("x_bucket", start=1, end=2) == {TRACE}
    assert program.asked["/api/v1/query_exemplars"][0][0] == {"query": "x_bucket", "start": "1.000", "end": "2.000"}


def test_the_log_lines_of_a_trace_are_found(program: Answering) -> None:
    """In every data stream of logs."""
    program.answers["/logs-*/_search"] = {"hits": {"hits": [{"_source": {"body": {"text": "hello"}}}]}}
    assert Elasticsearch(program.url).logs(TRACE) == [{"body": {"text": "hello"}}]
    ((_, body),) = program.asked["/logs-*/_search"]
    assert body["query"] == {"term": {"trace_id": TRACE}}

"""Samples of stacks are sent as profiles if that is asked for, and what hinders it is one remark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_app.eventlog import reader, span_ids
from spark_app.eventlog.reader import Reading
from spark_app.observe import profile_export
from spark_app.settings import load_settings
from spark_app.stack_samples import stack_profile
from spark_app.stack_samples.samples import file_of
from tests.receivers import PROTOCOLS, Protocol, Receiver, dead_port, receiver
from tests.unit.eventlog import log
from tests.unit.stack_samples import made


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """An application with samples beside its log."""
    path = tmp_path / "app-1"
    lines = [log.started(), log.job(1, [0]), log.stage(0), log.task(1, 0), log.stage(0, end=2900)]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    made.beside(path)
    return reader.read(path)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Both protocols of OTLP."""
    protocol: Protocol = request.param
    return protocol


def asked_for(monkeypatch: pytest.MonkeyPatch, endpoint: str, protocol: Protocol) -> None:
    """Sets the variables of a process."""
    monkeypatch.setenv("OTEL_PROFILES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)


def remarks(reading: Reading, *, patience: float = 2.5) -> list[str]:
    """What is said when samples are sent."""
    found: list[str] = []
    profile_export.send([reading], load_settings(), patience=patience, note=found.append)
    return found


def test_samples_arrive_with_the_spans_of_their_stages(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, reading: Reading
) -> None:
    """Their time is that of the report; the resource is that of the spans; headers are those of the variables."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "key=secret")
    with receiver() as collector:
        asked_for(monkeypatch, collector.endpoint(protocol), protocol)
        assert remarks(reading) == []
    [request], stacks = collector.profiles, stack_profile.of_log(reading.log)
    assert stacks is not None
    samples = [
        sample
        for each in request.resource_profiles
        for scope in each.scope_profiles
        for profile in scope.profiles
        for sample in profile.samples
    ]
    assert sum(sum(sample.values) for sample in samples) == stacks.all.shown.ms * 1e6 > 0
    ids = span_ids.of_stage(reading.app, reading.app.stages[0, 0])
    assert {request.dictionary.link_table[sample.link_index].span_id for sample in samples} == {ids.span_id.to_bytes(8)}
    assert collector.resources[0]["spark.app.name"] == reading.app.name
    assert collector.headers[0]["key"] == "secret"


def test_nothing_is_sent_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, reading: Reading) -> None:
    """Nor without samples, nor where OpenTelemetry is off."""
    with receiver() as collector:
        asked_for(monkeypatch, collector.http_endpoint, "http/protobuf")
        for name, value in (("OTEL_PROFILES_EXPORTER", ""), ("OTEL_SDK_DISABLED", "true")):
            with monkeypatch.context() as changed:
                changed.setenv(name, value)
                assert remarks(reading) == []
        assert isinstance(reading.log, Path)
        file_of(reading.log).unlink()
        assert remarks(reading) == []
    assert collector.profiles == []


def test_an_endpoint_that_accepts_nothing_is_one_remark(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, reading: Reading
) -> None:
    """Whether it refuses, does not answer, or is not there; without patience it is not waited for."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    dead = f"http://127.0.0.1:{dead_port()}"
    with receiver("refusing") as refusing, receiver("hanging") as hanging:
        refused, unanswered = refusing.endpoint(protocol), hanging.endpoint(protocol)
        for endpoint, patience in ((refused, 2.5), (unanswered, 0.1), (dead, 2.5), (dead, 0.0)):
            asked_for(monkeypatch, endpoint, protocol)
            [remark] = remarks(reading, patience=patience)
            assert remark.startswith("stack samples were not sent as profiles: ")


def test_what_the_exporter_logs_of_a_request_that_arrives_is_no_remark(
    monkeypatch: pytest.MonkeyPatch, reading: Reading
) -> None:
    """It tries again what an endpoint refuses at first."""
    with receiver("refusing") as collector:
        asked_for(monkeypatch, collector.http_endpoint, "http/protobuf")
        monkeypatch.setattr(collector, "take", accepting_the_second(collector))
        assert remarks(reading) == []
    assert len(collector.profiles) == 1


def accepting_the_second(collector: Receiver) -> Callable[[Any, dict[str, str]], bool]:
    """Refuses the first request."""
    take = collector.take

    def later(request: Any, headers: dict[str, str]) -> bool:
        is_taken = take(request, headers)
        collector.mode = "normal"
        return is_taken

    return later


def test_samples_that_cannot_be_read_are_one_remark(monkeypatch: pytest.MonkeyPatch, reading: Reading) -> None:
    """So is a protocol that there is not."""
    asked_for(monkeypatch, "http://127.0.0.1:9", "http/protobuf")
    assert isinstance(reading.log, Path)
    file_of(reading.log).write_bytes(b"no zstd")
    [remark] = remarks(reading)
    assert "has no stack samples" in remark
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    [remark] = remarks(reading)
    assert "'http/json'" in remark

"""An event log is exported while it is read for something else: whole, and decoded once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.bridge import one_shot
from spark_app.eventlog.bridge.one_shot import LogExport
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.locations import LogPath
from spark_app.telemetry.errors import TelemetryErrors
from tests.polling import poll_until
from tests.receivers import PROTOCOLS, Protocol, Receiver, dead_port, receiver
from tests.unit.eventlog.made import Run, Stage, Task

STAGES: Final = 400
TASKS: Final = 20
ESTABLISHED: Final = "01"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that the environment names."""
    monkeypatch.setattr(one_shot, "STALLED_SECONDS", 60.0)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        yield receiving


def write_log(folder: Path, *, stages: int = STAGES) -> Path:
    """A log of many short stages."""
    work = [
        Stage(f"stage {number}", 100 * number, 100 * number + 90, [Task(0, 50)] * TASKS) for number in range(stages)
    ]
    log = folder / "eventlog_v2_app-1"
    log.mkdir()
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in Run(100 * stages, work).lines())
    (log / "events_1_app-1").write_bytes(lines)
    return log


def log_export(patience: float = 60.0) -> LogExport:
    """An export to the endpoint of the environment."""
    return LogExport(environment="test", thresholds=Thresholds(), patience=patience, errors=TelemetryErrors())


def connections(port: int) -> int:
    """How many connections to a port of this machine are open from the side of the client."""
    tables = [Path(f"/proc/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6")]
    held = [line.split() for table in tables for line in table.splitlines()[1:]]
    return sum(int(each[2].partition(":")[2], 16) == port and each[3] == ESTABLISHED for each in held)


def read_and_export(log: Path, export: LogExport, **wanted: Any) -> bool:
    """Whether everything was accepted; the application is read whole in any case."""

    def make_listener(path: LogPath, app: Any) -> Any:
        return export.listener(path, app, **wanted)

    reading = reader.read(log, make_listener=make_listener)
    assert reading.app.ended is not None
    assert reading.unreadable_lines == 0
    return export.finish()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_log_is_exported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """Each span arrives once, in many requests, and then all totals."""
    monkeypatch.setattr(one_shot, "STALLED_SECONDS", 60.0)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.endpoint(protocol))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        assert read_and_export(write_log(tmp_path), log_export())
    kinds = [span.name.split()[0] for span in receiving.spans]
    counts = {kind: kinds.count(kind) for kind in ("application", "sql", "job", "stage")}
    assert counts == {"application": 1, "sql": STAGES, "job": STAGES, "stage": STAGES}
    assert len({span.span_id for span in receiving.spans}) == len(kinds)
    (durations,) = [metric for metric in receiving.metrics if metric.name == "spark.task.duration"]
    assert sum(point.count for point in durations.histogram.data_points) == STAGES * TASKS


def test_each_line_is_decoded_once(tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that reports use and the exported spans come from one pass over the log."""
    decode, decoded = events.event, list[bytes]()

    def counted(line: bytes) -> events.Event | None:
        decoded.append(line)
        return decode(line)

    monkeypatch.setattr(events, "event", counted)
    log = write_log(tmp_path, stages=3)
    assert read_and_export(log, log_export())
    assert decoded == (log / "events_1_app-1").read_bytes().splitlines()
    assert {json.loads(line)["Event"] for line in decoded} >= {"SparkListenerTaskEnd"}
    assert len([span for span in collector.spans if span.name.startswith("stage")]) == 3


@pytest.mark.parametrize("mode", ["dead", "refusing", "hanging"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_endpoint_that_accepts_nothing_ends_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mode: str
) -> None:
    """The application is read to its end all the same, and no other log is exported."""
    with receiver("refusing" if mode == "refusing" else "hanging") as receiving:
        endpoint = f"http://127.0.0.1:{dead_port()}" if mode == "dead" else receiving.endpoint(protocol)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        export, log = log_export(patience=0.0), write_log(tmp_path)
        assert not read_and_export(log, export)
        poll_until(lambda: export.is_given_up, "the end of the export")
        assert export.listener(log, reader.read(log).app) is None


def test_an_unwanted_application_is_not_exported(tmp_path: Path, collector: Receiver) -> None:
    """Nothing of it is sent, and other applications still are."""
    log, export = write_log(tmp_path, stages=3), log_export()
    assert read_and_export(log, export, is_wanted=lambda _: False)
    assert (collector.spans, collector.metrics) == ([], [])
    assert not export.is_given_up


def test_the_connections_are_closed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that exports one log after another would keep those of each."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.grpc_endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        export, port = log_export(), int(receiving.grpc_endpoint.rpartition(":")[2])
        assert read_and_export(write_log(tmp_path, stages=3), export)
        poll_until(lambda: connections(port) == 0, lambda: f"the end of {connections(port)} connections")


def test_an_error_of_the_export_is_kept_and_raised_nowhere(tmp_path: Path, collector: Receiver) -> None:
    """The reading goes on, as if nobody listened."""

    def broken(_: Any) -> bool:
        raise LookupError("on purpose")

    assert not read_and_export(write_log(tmp_path, stages=3), log_export(), is_wanted=broken)

"""A finished log is sent whole to whoever takes it, and not even read to its end for nobody."""

import os
import threading
from pathlib import Path
from typing import Final

import msgspec
import pytest

from app.eventlog.bridge import once
from app.eventlog.diagnoses.thresholds import Thresholds
from app.telemetry.problems import Problems
from tests.receivers import PROTOCOLS, Protocol, dead_port, receiver
from tests.unit.eventlog.made import Run, Stage, Task

STAGES: Final = 400
TASKS: Final = 20


def made(folder: Path) -> Path:
    """A log of many short stages."""
    stages = [
        Stage(f"stage {number}", 100 * number, 100 * number + 90, [Task(0, 50)] * TASKS) for number in range(STAGES)
    ]
    log = folder / "eventlog_v2_app-1"
    log.mkdir()
    lines = b"".join(msgspec.json.encode(line) + b"\n" for line in Run(100 * STAGES, stages).lines())
    (log / "events_1_app-1").write_bytes(lines)
    return log


def told(log: Path, *, patience: float) -> bool:
    """Whether all of it was accepted."""
    return once.tell(log, environment="test", thresholds=Thresholds(), patience=patience, problems=Problems())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_log_is_sent_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    """In many requests: each span once, and then all numbers."""
    monkeypatch.setattr(once, "STALLED_SECONDS", 60.0)
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.endpoint(protocol))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        assert told(made(tmp_path), patience=60.0)
    kinds = [span.name.split()[0] for span in receiving.spans]
    assert {kind: kinds.count(kind) for kind in ("application", "sql", "job", "stage")} == {
        "application": 1,
        "sql": STAGES,
        "job": STAGES,
        "stage": STAGES,
    }
    assert len({span.span_id for span in receiving.spans}) == len(kinds)
    (durations,) = [metric for metric in receiving.metrics if metric.name == "spark.task.duration"]
    assert sum(point.count for point in durations.histogram.data_points) == STAGES * TASKS


@pytest.mark.parametrize("mode", ["dead", "refusing", "hanging"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_log_that_nobody_takes_is_not_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mode: str
) -> None:
    """Reading ends with the patience, as a log may be large: its next file is not even opened.

    That file is a pipe here, and whoever writes into a pipe waits until it is opened by a reader.
    """
    log, is_opened = made(tmp_path), threading.Event()
    pipe = log / "events_2_app-1"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb"):
            is_opened.set()

    writer = threading.Thread(target=write)
    writer.start()
    with receiver("refusing" if mode == "refusing" else "hanging") as receiving:
        endpoint = f"http://127.0.0.1:{dead_port()}" if mode == "dead" else receiving.endpoint(protocol)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        assert not told(log, patience=0.0)
    was_opened = is_opened.is_set()
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    writer.join()
    assert not was_opened

"""`spark-app resend` says what it sent, and what is left."""

import os
from pathlib import Path

import pytest

from spark_app.__main__ import run
from tests.receivers import dead_port, receiver
from tests.unit.telemetry.memory import leave_metrics


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs, with one whose metrics were not accepted, and none of the variables of who runs the tests."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    folder = tmp_path / "runs"
    folder.mkdir()
    leave_metrics(folder)
    return folder


@pytest.mark.usefixtures("runs")
def test_what_was_left_is_sent_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time there is nothing left."""
    with receiver() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.http_endpoint)
        assert run(["resend"]) == 0
        first = capsys.readouterr().out
        assert run(["resend"]) == 0
    assert first == "run-1: sent 0 spans, 2 collections of metrics and 0 log lines\n"
    assert capsys.readouterr().out.startswith("nothing to send: no run in ")
    read = [metric for metric in collector.metrics if metric.name == "pipeline.rows.read"]
    assert [point.as_int for metric in read for point in metric.sum.data_points] == [0, 0, 5]


def test_an_endpoint_that_is_still_away_leaves_everything(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is an error, which says so."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    assert run(["resend"]) == 2
    assert "the OTLP endpoint has not accepted everything: " in capsys.readouterr().err
    assert (runs / "run-1" / "delivery.jsonl").exists()


@pytest.mark.usefixtures("runs")
def test_it_needs_an_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the variable."""
    assert run(["resend"]) == 2
    assert capsys.readouterr().err == "error: no OTLP endpoint is configured: set OTEL_EXPORTER_OTLP_ENDPOINT\n"

"""What happens after the work of an application has ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.execution.application import conclude
from spark_app.settings import load_settings
from spark_app.telemetry.delivery import DELIVERY
from spark_app.telemetry.resend import resend_earlier
from tests.receivers import Receiver, dead_port, receiver
from tests.unit.telemetry.memory import InMemory, leave_metrics
from tests.unit.watching import Watching


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """The endpoint of this process."""
    with receiver() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.http_endpoint)
        yield collector


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The folder of runs, with one whose metrics were not accepted."""
    folder = tmp_path / "runs"
    folder.mkdir()
    leave_metrics(folder)
    return folder


def concluded(home: Path, exporter: Literal["runner", "bridge"] = "runner") -> list[str]:
    """The notes at the end of an application without runs, whose own telemetry is accepted."""
    settings = load_settings().model_copy(update={"home": home, "event_log_exporter": exporter})
    listener = Watching()
    conclude(settings, InMemory(home / "runs").telemetry, [], Thresholds(), listener=listener)
    return listener.notes


def rows_read(collector: Receiver) -> list[int]:
    """What arrived of the counter of rows."""
    read = [metric for metric in collector.metrics if metric.name == "pipeline.rows.read"]
    return [point.as_int for metric in read for point in metric.sum.data_points]


def test_the_next_run_sends_what_an_earlier_one_could_not_deliver(runs: Path, collector: Receiver) -> None:
    """Once: the one after it has nothing to send."""
    sent = "run-1 had not delivered everything: sent 0 spans, 2 collections of metrics and 0 log lines"
    assert concluded(runs.parent) == [sent]
    assert concluded(runs.parent) == []
    assert rows_read(collector) == [0, 0, 5]


def test_where_there_is_a_bridge_it_does_so(runs: Path, collector: Receiver) -> None:
    """Two processes would only wait for each other."""
    assert concluded(runs.parent, "bridge") == []
    assert collector.headers == []
    assert (runs / "run-1" / DELIVERY).exists()


def test_a_run_that_still_writes_is_left_alone(runs: Path, collector: Receiver) -> None:
    """Its process sends everything itself."""
    (runs / "run-1" / "metrics.jsonl").touch()
    assert concluded(runs.parent) == []
    assert collector.headers == []


@pytest.mark.parametrize("mode", ["hanging", "dead"])
def test_an_endpoint_that_is_away_leaves_everything_and_ends_soon(
    runs: Path, mode: Literal["hanging", "dead"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run waits for the given time at most, although a request may take an hour."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
    before = (runs / "run-1" / DELIVERY).read_bytes()
    with receiver("hanging") as hanging:
        address = hanging.http_endpoint if mode == "hanging" else f"http://127.0.0.1:{dead_port()}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        assert resend_earlier(runs, seconds=0.3) == {}
    assert (runs / "run-1" / DELIVERY).read_bytes() == before


def test_a_folder_that_cannot_be_read_is_of_no_interest(tmp_path: Path, collector: Receiver) -> None:
    """The run that has just ended has succeeded."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run-1").mkdir()
    (tmp_path / "runs" / "run-1" / DELIVERY).mkdir()
    assert resend_earlier(tmp_path / "runs") == {}
    assert collector.headers == []

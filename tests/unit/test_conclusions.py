"""After the runs of a command: Spark's spans are sent once, each run has a report, and nothing of it changes a run."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app import conclusions, records
from app.eventlog.comparison import history
from app.eventlog.diagnoses.thresholds import Thresholds
from app.records import RunRecord
from app.settings import Settings, load_settings
from app.telemetry.names import Outcome
from tests.receivers import Receiver, dead_port, receiver
from tests.unit.eventlog.made import Run
from tests.unit.run_records import run_record
from tests.unit.watching import Watching

LOG = next((Path(__file__).resolve().parents[1] / "eventlogs" / "4.2.0" / "rolled-zstd").glob("eventlog_v2_*"))
PATIENCE_SECONDS = 2.0


def settings(tmp_path: Path, **changes: Any) -> Settings:
    """Settings of a home of its own."""
    return load_settings().model_copy(update={"home": tmp_path, **changes})


def run(tmp_path: Path, log: Path = LOG) -> RunRecord:
    """A run that has ended, with its folder."""
    folder = tmp_path / "runs" / "r-1"
    folder.mkdir(parents=True)
    ended = run_record(folder, event_log=log.as_uri(), application_id=log.name.removeprefix("eventlog_v2_"))
    records.write(ended, note=pytest.fail)
    return ended


def concluded(tmp_path: Path, result: RunRecord, **changes: Any) -> tuple[RunRecord, list[str]]:
    """What is known of a run after the conclusion, and what was told."""
    results, told = [result], Watching()
    conclusions.conclude(settings(tmp_path, **changes), results, Thresholds(), watcher=told, patience=PATIENCE_SECONDS)
    return results[0], told.notes


def sent(receiving: Receiver) -> set[str]:
    """The kinds of the spans that arrived."""
    return {span.name.split()[0] for span in receiving.spans}


def test_each_run_has_a_report_that_the_list_leads_to(tmp_path: Path) -> None:
    """Its path is in the result and in the record."""
    told, notes = concluded(tmp_path, run(tmp_path))
    assert notes == []
    assert told.report == str(tmp_path / "reports" / "r-1.html")
    assert records.read(told.folder).report == told.report
    assert "r-1.html" in (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")


def test_where_reports_are_served_their_address_is_told(tmp_path: Path) -> None:
    """In place of the path."""
    told, _ = concluded(tmp_path, run(tmp_path), reports_url="http://localhost:8088/")
    assert told.report == "http://localhost:8088/r-1.html"


def test_the_runner_sends_what_the_log_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans down to tasks, and numbers as new counts."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        concluded(tmp_path, run(tmp_path))
    assert sent(receiving) >= {"application", "sql", "job", "stage", "task"}
    ids = [span.span_id for span in receiving.spans]
    assert len(ids) == len(set(ids))
    durations = [metric for metric in receiving.metrics if metric.name == "spark.task.duration"]
    assert durations
    assert {metric.histogram.aggregation_temporality for metric in durations} == {1}


def test_an_endpoint_that_was_given_up_is_sent_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No patience is left after it did not take the telemetry of the runs; the report is made all the same."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        results = [run(tmp_path)]
        conclusions.conclude(settings(tmp_path), results, Thresholds(), watcher=Watching(), patience=0)
    assert receiving.headers == []
    assert results[0].report


def test_where_a_bridge_sends_the_runner_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never both; the report is made all the same."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        told, _ = concluded(tmp_path, run(tmp_path), event_log_exporter="bridge")
    assert sent(receiving) == set()
    assert told.report


def test_a_dead_endpoint_costs_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be sent is not sent."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{dead_port()}")
    told, notes = concluded(tmp_path, run(tmp_path))
    assert notes == []
    assert told.report


@pytest.mark.parametrize("harm", ["gone", "no log", "no room"])
def test_what_cannot_be_reported_is_told_and_changes_nothing(tmp_path: Path, harm: str) -> None:
    """In one line; the run is as it was."""
    log = tmp_path / "eventlog_v2_x"
    if harm != "gone":
        log.mkdir()
        (log / "events_1_x").write_text("no event\n" if harm == "no log" else "", encoding="utf-8")
    if harm == "no room":
        shutil.copytree(LOG, log, dirs_exist_ok=True)
        (tmp_path / "reports").write_text("a file where a folder should be", encoding="utf-8")
    before = run(tmp_path, log)
    told, notes = concluded(tmp_path, before)
    assert told == before
    assert len(notes) == 1
    assert notes[0].startswith("no report: ")


def test_runs_without_an_event_log_are_left_as_they_are(tmp_path: Path) -> None:
    """Somebody has switched it off; that is no reason to say anything."""
    folder = tmp_path / "runs" / "r-1"
    folder.mkdir(parents=True)
    before = run_record(folder, event_log=None)
    assert concluded(tmp_path, before) == (before, [])


@pytest.mark.parametrize(("outcome", "is_good"), [("succeeded", True), ("rejected", False), ("failed", False)])
def test_only_good_runs_are_what_later_ones_are_measured_by(tmp_path: Path, *, outcome: Outcome, is_good: bool) -> None:
    """Spark ended well in each, but what was stopped at a gate, or failed, did other work."""
    log = tmp_path / "app-1"
    log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in Run(900, []).lines()))
    concluded(tmp_path, replace(run(tmp_path, log), outcome=outcome))
    (record,) = (tmp_path / "reports" / "records").glob("*/*.json")
    assert history.load(record).outcome == ("succeeded" if is_good else "failed")

"""After the runs of a command: Spark's spans are sent once, each run has a report, and nothing of it changes a run."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.observe import analysis
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings, load_settings
from spark_app.vocabulary.names import Outcome
from tests.receivers import Receiver, dead_port, receiver
from tests.unit.eventlog.made import Run
from tests.unit.run_records import example_record
from tests.unit.watching import Watching
from truth.declared import pairs

LOG = next((Path(__file__).resolve().parents[2] / "eventlogs" / "4.2.0" / "rolled-zstd").glob("eventlog_v2_*"))
PATIENCE_SECONDS = 2.0
BUSY_COUNTS = Thresholds(cost_ms=0, cost_ratio=0)
"""A busy host is a finding however little it cost."""


def settings(tmp_path: Path, **changes: Any) -> Settings:
    """Settings of a home of its own."""
    return load_settings().model_copy(update={"home": tmp_path, **changes})


def run(tmp_path: Path, log: Path = LOG) -> RunRecord:
    """A run that has ended, with its folder."""
    folder = tmp_path / "runs" / "r-1"
    folder.mkdir(parents=True)
    ended = example_record(folder, event_log=log.as_uri(), application_id=log.name.removeprefix("eventlog_v2_"))
    run_record.write(ended, note=pytest.fail)
    return ended


def concluded(tmp_path: Path, result: RunRecord, **changes: Any) -> tuple[RunRecord, list[str]]:
    """The result of a run after its analysis, and the notes."""
    results, watching = [result], Watching()
    analysis.finish(settings(tmp_path, **changes), results, Thresholds(), note=watching.note, patience=PATIENCE_SECONDS)
    return results[0], watching.notes


def sent(receiving: Receiver) -> set[str]:
    """The kinds of the spans that arrived."""
    return {span.name.split()[0] for span in receiving.spans}


def test_each_run_has_a_report_that_the_list_leads_to(tmp_path: Path) -> None:
    """Its path is in the result and in the record."""
    analysed, notes = concluded(tmp_path, run(tmp_path))
    assert notes == []
    assert analysed.report == str(tmp_path / "reports" / "r-1.html")
    assert run_record.read(analysed.folder).report == analysed.report
    assert "r-1.html" in (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")


def test_where_reports_are_served_their_address_is_told(tmp_path: Path) -> None:
    """In place of the path."""
    analysed, _ = concluded(tmp_path, run(tmp_path), reports_url="http://localhost:8088/")
    assert analysed.report == "http://localhost:8088/r-1.html"


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
        analysis.finish(settings(tmp_path), results, Thresholds(), note=Watching().note, patience=0)
    assert receiving.headers == []
    assert results[0].report


def test_where_a_bridge_sends_the_runner_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never both; the report is made all the same."""
    with receiver() as receiving:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiving.http_endpoint)
        analysed, _ = concluded(tmp_path, run(tmp_path), event_log_exporter="bridge")
    assert sent(receiving) == set()
    assert analysed.report


def test_a_dead_endpoint_costs_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be sent is not sent."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{dead_port()}")
    analysed, notes = concluded(tmp_path, run(tmp_path))
    assert notes == []
    assert analysed.report


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
    analysed, notes = concluded(tmp_path, before)
    assert analysed == before
    assert len(notes) == 1
    assert notes[0].startswith("no report: ")


def test_runs_without_an_event_log_are_left_as_they_are(tmp_path: Path) -> None:
    """Somebody has switched it off; that is no reason to say anything."""
    folder = tmp_path / "runs" / "r-1"
    folder.mkdir(parents=True)
    before = example_record(folder, event_log=None)
    assert concluded(tmp_path, before) == (before, [])


@pytest.mark.parametrize(("outcome", "is_good"), [("succeeded", True), ("rejected", False), ("failed", False)])
def test_only_good_runs_are_what_later_ones_are_measured_by(tmp_path: Path, *, outcome: Outcome, is_good: bool) -> None:
    """Spark ended well in each, but what was stopped at a gate, or failed, did other work."""
    log = tmp_path / "app-1"
    log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in Run(900, []).lines()))
    concluded(tmp_path, replace(run(tmp_path, log), outcome=outcome))
    (record,) = (tmp_path / "reports" / "records").glob("*/*.json")
    assert baselines.load(record).outcome == ("succeeded" if is_good else "failed")


def test_a_later_report_knows_what_the_host_did(tmp_path: Path) -> None:
    """Twelve threads wanted each of its two processors while the program ran, of which its log says nothing."""
    log = pairs()["recorded-too-few-tasks"].log("planted")
    observed, later = reader.read(log), reader.read(log)
    times = range(observed.app.began or 0, observed.app.last, 1000)
    observed.app.host_load = HostLoad(2, [LoadSample(time, 24, {"cpu": time * 900}) for time in times])
    first = analysis.analyze(observed, settings(tmp_path), BUSY_COUNTS)
    first.save_baseline()
    assert any("12 runnable threads for each processor" in finding.text for finding in first.findings)
    assert analysis.analyze(later, settings(tmp_path), BUSY_COUNTS).findings == first.findings

"""Machines share a store of runs on S3: what one has run, the others list, open, compare and explain."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.__main__ import run as command
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.serve import run_files
from spark_app.annexes.serve.pages import Pages
from spark_app.annexes.serve.runs import Chosen, Runs
from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.observe import analysis, run_copies
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings, load_settings
from tests import storages
from tests.receivers import dead_port
from tests.unit.eventlog.made import Run
from tests.unit.report import made
from tests.unit.run_records import example_record

PATIENCE_SECONDS: Final = 60.0
RUN: Final = "20240102T00000{}Z-etl.customers-2024-01-01-abc123"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 API."""
    with storages.s3() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> storages.Bucket:
    """An empty bucket, whose credentials this process has."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", storages.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", storages.SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return storages.Bucket(endpoint)


def machine(folder: Path, bucket: storages.Bucket, **changes: Any) -> Settings:
    """The settings of a machine that uses the store."""
    return load_settings().model_copy(update={"home": folder, "run_store": f"s3a://{bucket.name}/shop"} | changes)


def concluded(settings: Settings, number: int, log: Path, notes: list[str]) -> RunRecord:
    """A run on a machine that has ended, with its report."""
    folder = settings.runs_path / RUN.format(number)
    folder.mkdir(parents=True)
    ended = example_record(folder, event_log=log.as_uri(), application_id=log.name)
    run_record.write(ended, note=notes.append)
    results = [ended]
    analysis.finish(settings, results, Thresholds(), note=notes.append, patience=0)
    return results[0]


def logs(folder: Path) -> tuple[Path, Path]:
    """The event logs of a run and of a slower one of the same application."""
    folder.mkdir(exist_ok=True)
    before, now = (Run(seconds * 1000, [], id=f"app-{seconds}", at=seconds * 1_000_000) for seconds in (10, 40))
    return made.written(folder / before.id, before.lines()), made.written(folder / now.id, now.lines())


def test_what_one_machine_has_run_another_lists_and_explains(
    bucket: storages.Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its run with outcome and report; a later run there is compared with it; and its id is enough for a report."""
    before, now = logs(tmp_path / "logs")
    one, other = machine(tmp_path / "one", bucket), machine(tmp_path / "other", bucket)
    notes: list[str] = []
    concluded(one, 1, before, notes)
    concluded(other, 2, now, notes)
    assert notes == []
    report = (other.reports_path / f"{RUN.format(2)}.html").read_text(encoding="utf-8")
    assert "app-10" in report  # it is compared with that run
    laptop = machine(tmp_path / "laptop", bucket)
    runs = Runs(run_files.configured_files(laptop), patience=PATIENCE_SECONDS)
    assert runs.look()
    listed = runs.newest_first(Chosen(), most=10)
    assert {(run.id, run.outcome) for run in listed} == {(RUN.format(number), "succeeded") for number in (1, 2)}
    pages = Pages(runs, laptop.prices)
    assert all(pages(f"/reports/{run.report}", {}).body.startswith(b"<!doctype html>") for run in listed)
    monkeypatch.setenv("SPARK_APP_HOME", str(laptop.home))
    monkeypatch.setenv("SPARK_APP_RUN_STORE", str(laptop.run_store))
    assert command(["report", RUN.format(1)]) == 0
    assert RUN.format(1) in capsys.readouterr().out
    library = Library(laptop, laptop.events_path, Thresholds())
    assert [entry.name for entry in library.entries()] == [RUN.format(2), RUN.format(1)]
    assert library.entries()[0].describe()["application"] == "etl.customers 2024-01-01"
    assert library.source(RUN.format(2)).log == now


def test_a_store_that_cannot_be_reached_changes_no_run(
    bucket: storages.Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lines tell: that runs of others are not compared, and that the copies wait. The next run sends them."""
    before, now = logs(tmp_path / "logs")
    settings, notes = machine(tmp_path / "home", bucket), list[str]()
    with pytest.MonkeyPatch.context() as away:
        away.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{dead_port()}")
        began = time.monotonic()
        result = concluded(settings, 1, before, notes)
        assert time.monotonic() - began < 30
    assert result.outcome == "succeeded"
    assert result.report is not None
    assert Path(result.report).exists()
    [note] = notes
    assert "the run store has not got everything: cannot reach s3a://" in note
    concluded(settings, 2, now, notes)
    assert len(notes) == 1
    runs = Runs(run_files.configured_files(machine(tmp_path / "laptop", bucket)), patience=PATIENCE_SECONDS)
    assert runs.look()
    assert runs.count(Chosen()) == 2


def test_a_bucket_that_is_not_there_is_named(bucket: storages.Bucket, tmp_path: Path) -> None:
    """As what cannot be written."""
    before, _ = logs(tmp_path / "logs")
    notes: list[str] = []
    concluded(machine(tmp_path / "home", bucket, run_store="s3://nowhere/shop"), 1, before, notes)
    [note] = notes
    assert "cannot write s3://nowhere/shop/" in note
    assert "there is no bucket 'nowhere'" in note


def test_a_log_is_read_with_what_another_machine_learned_of_it(bucket: storages.Bucket, tmp_path: Path) -> None:
    """`observe` knows the exit code of a process, which no log has."""
    before, _ = logs(tmp_path / "logs")
    reading = reader.read(before)
    reading.app.process_exit_code = 137
    observed = analysis.analyze(reading, machine(tmp_path / "one", bucket), Thresholds())
    observed.save_baseline()
    run_copies.send(observed.settings, note=pytest.fail)
    elsewhere = analysis.analyze(reader.read(before), machine(tmp_path / "other", bucket), Thresholds())
    assert elsewhere.reading.app.process_exit_code == 137

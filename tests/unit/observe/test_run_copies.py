"""Copies for the store of runs: they arrive, or wait for the next command."""

import os
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_app.observe import run_copies
from spark_app.observe.run_copies import DAY_SECONDS
from spark_app.report.run_store import RunStore
from spark_app.runs import liveness, run_record
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings, load_settings
from tests.unit.eventlog.made import Run
from tests.unit.run_records import example_record

RUN = "20240102T000000Z-etl.customers-2024-01-01-abc123"
DAY = "2024-01-02"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home with a store beside it."""
    return load_settings().model_copy(update={"home": tmp_path / "home", "run_store": str(tmp_path / "store")})


def ended(settings: Settings, **changes: Any) -> RunRecord:
    """A run that has ended, with its files."""
    record = replace(example_record(settings.runs_path / RUN), **changes)
    run_record.write(record, note=pytest.fail)
    (record.folder / "spans.jsonl").write_text("spans")
    (record.folder / liveness.LIVENESS_LOCK).touch()
    return record


def stored(tmp_path: Path) -> set[str]:
    """The files of the store."""
    return {str(file.relative_to(tmp_path / "store")) for file in (tmp_path / "store").rglob("*") if file.is_file()}


def waiting(settings: Settings) -> list[str]:
    """What was not sent."""
    return [file.name for file in settings.reports_path.rglob("*") if file.is_file() and file.name != ".lock"]


def test_what_has_ended_is_in_the_store(settings: Settings, tmp_path: Path) -> None:
    """The record, the files of the run without its lock, the report and the profile, twice; nothing is left here."""
    record, report = ended(settings), tmp_path / f"{RUN}.html"
    report.write_text("report")
    run_copies.keep_runs(settings, [record], note=pytest.fail)
    run_copies.keep_report(settings, report, record.started_at.timestamp() * 1000)
    run_copies.keep_profile(settings, Run(1000, [], at=1_704_200_000_000).summary)
    run_copies.send(settings, note=pytest.fail)
    [of_list] = [file for file in stored(tmp_path) if file.startswith(f"profiles/{DAY}/")]
    assert stored(tmp_path) == {
        f"records/{DAY}/{RUN}.json",
        f"runs/{DAY}/{RUN}.zip",
        f"reports/{DAY}/{RUN}.html",
        of_list,
        of_list.replace(f"profiles/{DAY}", "applications"),
    }
    assert zipfile.ZipFile(tmp_path / "store" / "runs" / DAY / f"{RUN}.zip").namelist() == ["run.json", "spans.jsonl"]
    assert waiting(settings) == []


def test_a_store_that_is_away_delays_the_copies(settings: Settings, tmp_path: Path) -> None:
    """It is told in one line, and the next command sends what is left."""
    notes: list[str] = []
    (tmp_path / "store").write_text("no folder")
    run_copies.keep_runs(settings, [ended(settings)], note=pytest.fail)
    run_copies.send(settings, note=notes.append)
    [note] = notes
    assert "the next command sends the 2 files" in note
    assert "\n" not in note
    (tmp_path / "store").unlink()
    run_copies.send(settings, note=pytest.fail)
    assert len(stored(tmp_path)) == 2
    assert waiting(settings) == []


def test_what_waits_longer_than_runs_are_kept_is_given_up(settings: Settings, tmp_path: Path) -> None:
    """A store that never answers fills no disk."""
    (tmp_path / "store").write_text("no folder")
    run_copies.keep_runs(settings, [ended(settings)], note=pytest.fail)
    [old] = settings.reports_path.rglob("*.zip")
    assert settings.retention.days is not None
    os.utime(old, (time.time() - settings.retention.days * DAY_SECONDS - 60,) * 2)
    run_copies.send(settings, note=lambda _: None)
    assert waiting(settings) == [f"{RUN}.json"]


def test_what_is_written_anew_while_it_is_sent_is_sent_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next command."""
    report = tmp_path / "app.html"
    report.write_text("old")
    run_copies.keep_report(settings, report, 0)
    put = RunStore.put

    def slowly(store: Any, key: str, file: Path) -> None:
        put(store, key, file)
        report.write_text("new")
        run_copies.keep_report(settings, report, 0)

    monkeypatch.setattr(RunStore, "put", slowly)
    run_copies.send(settings, note=pytest.fail)
    assert waiting(settings) == ["app.html"]
    monkeypatch.setattr(RunStore, "put", put)
    run_copies.send(settings, note=pytest.fail)
    assert (tmp_path / "store" / "reports" / "1970-01-01" / "app.html").read_text() == "new"


def test_a_run_that_cannot_be_packed_is_noted(settings: Settings) -> None:
    """And the others are kept."""
    notes: list[str] = []
    record = ended(settings)
    gone = replace(record, run_id="gone", folder=settings.runs_path / "gone")
    run_copies.keep_runs(settings, [gone, record], note=notes.append)
    assert [note.partition(":")[0] for note in notes] == ["gone is not copied to the run store"]
    assert f"{RUN}.json" in waiting(settings)


def test_without_a_store_nothing_is_kept(settings: Settings) -> None:
    """And nothing is asked."""
    alone = settings.model_copy(update={"run_store": None})
    run_copies.keep_runs(alone, [ended(alone)], note=pytest.fail)
    run_copies.keep_profile(alone, Run(1000, []).summary)
    run_copies.keep_report(alone, Path("nowhere.html"), 0)
    run_copies.send(alone, note=pytest.fail)
    assert not alone.reports_path.exists()

"""The list of runs: where its rows come from, and how much is read for them."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_app.eventlog.comparison.profile import VERSION
from spark_app.report.served.runs import Runs
from spark_app.runs import liveness


def profile(home: Path, number: int, **more: Any) -> Path:
    """A run profile."""
    content = {"version": VERSION, "application": "daily", "id": f"app-{number}", "outcome": "succeeded"}
    content |= {"started": number, "duration_ms": 1000, "core_ms": 7_200_000} | more
    file = home / "reports" / "records" / "daily-1" / f"{number}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return file


def record(home: Path, run: str, **more: Any) -> None:
    """A run record."""
    content = {"run_id": run, "pipeline": "etl.sales", "outcome": "succeeded", "seconds": 2.0, "slice": "2024-01-01"}
    content |= {"started_at": "2026-01-01T00:00:00Z", "application_id": "app-1"} | more
    (home / "runs" / run).mkdir(parents=True)
    (home / "runs" / run / "run.json").write_text(json.dumps(content))


class Home:
    """A home folder whose files are counted as they are read."""

    def __init__(self, folder: Path) -> None:
        self.read: list[Path] = []
        reports = folder / "reports"
        self.runs = Runs(profiles=reports / "records", runs=folder / "runs", reports=reports, read=self._read)

    def _read(self, file: Path) -> bytes:
        self.read.append(file)
        return file.read_bytes()


def test_each_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    """500 runs cost 500 reads the first time, none the second time, and one after a change."""
    for number in range(500):
        profile(tmp_path, number)
    home = Home(tmp_path)
    assert [len(home.runs.newest_first()) for _ in range(2)] == [500, 500]
    assert len(home.read) == 500
    changed = profile(tmp_path, 7, outcome="failed: changed")
    assert home.runs.newest_first()[492].outcome == "failed: changed"
    assert home.read[500:] == [changed]


def test_an_application_with_one_run_is_that_run(tmp_path: Path) -> None:
    """With the cost and the profile of the application; with two runs, the application has a row of its own."""
    file = profile(tmp_path, 1)
    record(tmp_path, "run-1")
    (only,) = Home(tmp_path).runs.newest_first()
    assert (only.name, only.about, only.core_hours, only.profile) == ("etl.sales", "2024-01-01", 2.0, file)
    record(tmp_path, "run-2")
    rows = Home(tmp_path).runs.newest_first()
    assert [(row.id, row.core_hours) for row in rows] == [("run-2", None), ("run-1", None), ("app-1", 2.0)]


def test_a_row_has_its_report(tmp_path: Path) -> None:
    """By the id of the run, or by the application whose log was named so."""
    profile(tmp_path, 1)
    profile(tmp_path, 2)
    profile(tmp_path, 3)
    record(tmp_path, "20260101T000000Z-etl.sales-2024", application_id=None)
    names = ["20260101T000000Z-etl.sales-2024.html", "eventlog_v2_app-1.html", "app-2.zstd.html", "index.html"]
    for name in names:
        (tmp_path / "reports" / name).write_text("")
    rows = {row.id: row.report for row in Home(tmp_path).runs.newest_first()}
    assert list(rows.values()) == [names[0], None, names[2], names[1]]


def test_what_is_unknown_is_no_number(tmp_path: Path) -> None:
    """A run that is not over has no time; a profile of another version cannot be compared."""
    record(tmp_path, "run-1", outcome="running", application_id=None, seconds=0.0)
    profile(tmp_path, 1, version=VERSION - 1)
    running, old = Home(tmp_path).runs.newest_first()
    assert running.duration_ms is None
    assert old.profile is None


def test_a_damaged_file_is_left_out(tmp_path: Path) -> None:
    """The others are listed."""
    profile(tmp_path, 1).write_bytes(b"{")
    profile(tmp_path, 2)
    (tmp_path / "runs" / "half").mkdir(parents=True)
    (tmp_path / "runs" / "half" / "run.json").write_bytes(b"\xff")
    assert [row.id for row in Home(tmp_path).runs.newest_first()] == ["app-2"]


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    """Also before the next run or the bridge marks it; one whose process holds its lock is running."""
    record(tmp_path, "run-1", outcome="running", seconds=0)
    record(tmp_path, "run-2", outcome="running", seconds=0)
    with liveness.hold_liveness_lock(tmp_path / "runs" / "run-2", note=pytest.fail):
        found = Home(tmp_path).runs.newest_first()
    assert [(run.id, run.outcome, run.duration_ms) for run in found] == [
        ("run-2", "running", None),
        ("run-1", "killed", None),
    ]

"""The list of runs: where its rows come from, and how much is read for them."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_app.annexes.serve.run_files import Kind, LocalRunFiles
from spark_app.annexes.serve.runs import Chosen, Group, RunRow, Runs
from spark_app.eventlog.comparison.profile import VERSION
from spark_app.runs import liveness
from spark_app.settings import Prices

PATIENCE_SECONDS = 60.0
ALL = Chosen()


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
        reports, read = folder / "reports", self.read

        class Files(LocalRunFiles):
            """Local files that say what is read of them."""

            def content(self, kind: Kind, path: str) -> bytes:
                read.append((self.profiles if kind == "profile" else self.runs) / path)
                return super().content(kind, path)

        self.runs = Runs(Files(reports / "records", folder / "runs", reports), patience=PATIENCE_SECONDS)

    def rows(self, chosen: Chosen = ALL) -> list[RunRow]:
        """The runs, after a look at the files."""
        assert self.runs.look()
        return self.runs.newest_first(chosen, most=1000)


def test_each_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    """500 runs cost 500 reads the first time, none the second time, and one after a change."""
    for number in range(500):
        profile(tmp_path, number)
    home = Home(tmp_path)
    assert [len(home.rows()) for _ in range(2)] == [500, 500]
    assert len(home.read) == 500
    changed = profile(tmp_path, 7, outcome="failed: changed")
    assert home.rows()[492].outcome == "failed: changed"
    assert home.read[500:] == [changed]


def test_an_application_with_one_run_is_that_run(tmp_path: Path) -> None:
    """With the cost and the profile of the application; with two runs, the application has a row of its own."""
    file = profile(tmp_path, 1)
    record(tmp_path, "run-1")
    (only,) = Home(tmp_path).rows()
    assert (only.name, only.about, only.core_hours) == ("etl.sales", "2024-01-01", 2.0)
    assert only.profile == f"{file.parent.name}/{file.name}"
    record(tmp_path, "run-2")
    rows = Home(tmp_path).rows()
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
    rows = {row.id: row.report for row in Home(tmp_path).rows()}
    assert list(rows.values()) == [names[0], None, names[2], names[1]]


def test_what_is_unknown_is_no_number(tmp_path: Path) -> None:
    """A run that is not over has no time; a profile of another version cannot be compared."""
    record(tmp_path, "run-1", outcome="running", application_id=None, seconds=0.0)
    profile(tmp_path, 1, version=VERSION - 1)
    running, old = Home(tmp_path).rows()
    assert running.duration_ms is None
    assert old.profile is None


def test_a_damaged_file_is_left_out(tmp_path: Path) -> None:
    """The others are listed."""
    profile(tmp_path, 1).write_bytes(b"{")
    profile(tmp_path, 2)
    (tmp_path / "runs" / "half").mkdir(parents=True)
    (tmp_path / "runs" / "half" / "run.json").write_bytes(b"\xff")
    assert [row.id for row in Home(tmp_path).rows()] == ["app-2"]


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    """Also before the next run or the bridge marks it; one whose process holds its lock is running."""
    record(tmp_path, "run-1", outcome="running", seconds=0)
    record(tmp_path, "run-2", outcome="running", seconds=0)
    with liveness.hold_liveness_lock(tmp_path / "runs" / "run-2", note=pytest.fail):
        found = Home(tmp_path).rows()
    assert [(run.id, run.outcome, run.duration_ms) for run in found] == [
        ("run-2", "running", None),
        ("run-1", "killed", None),
    ]


def ids(rows: list[RunRow]) -> list[str]:
    """Which runs they are."""
    return [row.id for row in rows]


def test_runs_are_chosen_by_words_labels_and_days(tmp_path: Path) -> None:
    """All words must be somewhere in the run, in any case; a day is one of UTC."""
    profile(tmp_path, 1, labels={"team": "Web", "user": "ada"})
    profile(tmp_path, 86_400_000, labels={"team": "Web"}, outcome="failed", workload="50%_off")
    record(tmp_path, "run-1", application_id="app-1", started_at="1970-01-01T00:00:00Z")
    home = Home(tmp_path)
    both = ["app-86400000", "run-1"]
    assert ids(home.rows(Chosen("web"))) == both
    assert ids(home.rows(Chosen("WEB sales ada"))) == ["run-1"]
    assert ids(home.rows(Chosen("failed"))) == ids(home.rows(Chosen("50%_"))) == both[:1]
    assert ids(home.rows(Chosen("5%o"))) == []
    assert ids(home.rows(Chosen(equal={"label.team": "Web", "outcome": "failed"}))) == both[:1]
    assert ids(home.rows(Chosen(equal={"label.user": "ad"}))) == []
    assert ids(home.rows(Chosen(first_day="1970-01-02"))) == both[:1]
    assert ids(home.rows(Chosen(last_day="1970-01-01"))) == both[1:]


def test_a_run_is_found_by_each_of_its_tags(tmp_path: Path) -> None:
    """A tag is a whole word between commas, and all tags of a run, as the costs list them, are found, too."""
    for number, tags in enumerate(["nightly,web", "web, nightly", "web", "webshop,old"]):
        profile(tmp_path, number, labels={"tags": tags})
    home = Home(tmp_path)
    found = {
        tag: sorted(run.id for run in home.rows(Chosen(equal={"label.tags": tag})))
        for tag in ("web", "nightly", "nightly,web", "shop", "old")
    }
    assert found == {
        "web": ["app-0", "app-1", "app-2"],
        "nightly": ["app-0", "app-1"],
        "nightly,web": ["app-0"],
        "shop": [],
        "old": ["app-3"],
    }


def test_costs_add_up_by_a_label(tmp_path: Path) -> None:
    """The most first; runs without a label, and those whose cost is not known, are counted as such."""
    hour = 3_600_000
    profile(tmp_path, 1, labels={"team": "web"}, core_ms=hour, gib_ms=10 * hour)
    profile(tmp_path, 2, labels={"team": "web"}, core_ms=hour)
    profile(tmp_path, 3, labels={"team": "ml"}, core_ms=3 * hour, gib_ms=0)
    record(tmp_path, "run-1", application_id=None)
    home = Home(tmp_path)
    home.rows()
    hours = home.runs.groups(ALL, "label.team", prices(core_hour=2), most=10)
    assert hours == [
        Group("ml", runs=1, unknown=0, core_hours=3.0, price=Decimal(6), share=0.6),
        Group("web", runs=2, unknown=0, core_hours=2.0, price=Decimal(4), share=0.4),
        Group(None, runs=1, unknown=1, core_hours=0.0, price=Decimal(0), share=0.0),
    ]
    with_memory = home.runs.groups(ALL, "label.team", prices(core_hour=2, gib_hour=1), most=1)
    assert with_memory == [Group("ml", runs=1, unknown=0, core_hours=3.0, price=Decimal(6), share=0.75)]
    web = home.runs.groups(Chosen(equal={"label.team": "web"}), "day", prices(core_hour=2, gib_hour=1), most=10)
    assert web == [Group("1970-01-01", runs=2, unknown=1, core_hours=1.0, price=Decimal(12), share=1.0)]


def prices(**each: float) -> Prices:
    """Some prices."""
    return Prices.model_validate({"currency": "EUR", "core_hour": None, "gib_hour": None} | each)


def test_a_file_that_is_gone_is_no_run_any_more(tmp_path: Path) -> None:
    """The run of a deleted profile stays, without what its application took."""
    profile(tmp_path, 1)
    gone = profile(tmp_path, 2)
    record(tmp_path, "run-1", application_id="app-1")
    home = Home(tmp_path)
    assert ids(home.rows()) == ["run-1", "app-2"]
    gone.unlink()
    profile(tmp_path, 1).unlink()
    (only,) = home.rows()
    assert (only.id, only.spent) == ("run-1", None)


def test_the_cost_of_a_server_is_that_of_its_users(tmp_path: Path) -> None:
    """By the core time of each one's tasks, the rest under no name; all else is of who submitted it."""
    hour = 3_600_000.0
    profile(tmp_path, 1, core_ms=4 * hour, users={"ana": 2 * hour, "ben": hour, "": hour}, labels={"user": "root"})
    profile(tmp_path, 2, core_ms=hour, gib_ms=2 * hour, users={"ana": hour}, labels={"user": "ana"})
    profile(tmp_path, 3, core_ms=hour)
    home = Home(tmp_path)
    assert home.runs.look()
    groups = home.runs.groups(ALL, "label.user", Prices(currency="EUR", core_hour=None, gib_hour=None), most=10)
    assert {(each.value, each.runs, each.core_hours) for each in groups} == {("ana", 2, 3), (None, 2, 2), ("ben", 1, 1)}
    assert [run.id for run in home.rows(Chosen(equal={"label.user": "ben"}))] == ["app-1"]
    assert [run.id for run in home.rows(Chosen(words="ben"))] == ["app-1"]
    assert [run.id for run in home.rows(Chosen(equal={"label.user": "root"}))] == ["app-1"], "who started the server"

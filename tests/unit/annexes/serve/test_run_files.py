"""What lists of runs are made of, in the store of runs: which days are listed, and which files are read."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from spark_app.annexes.serve import run_files
from spark_app.annexes.serve.run_files import Kind, StoredRunFiles
from spark_app.annexes.serve.runs import Chosen, Runs
from spark_app.errors import InputError
from spark_app.report import run_store
from spark_app.report.run_store import RunStore
from spark_app.settings import load_settings
from tests.unit.annexes.serve.test_runs import PATIENCE_SECONDS, profile, record
from tests.unit.eventlog.made import Run

OLD = "2024-01-01"
TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()


class Counted(StoredRunFiles):
    """Files of a store that say what is read of them."""

    def contents(self, kind: Kind, paths: Sequence[str]) -> dict[str, bytes]:
        """The contents of files."""
        READ.extend(paths)
        return super().contents(kind, paths)


READ: list[str] = []


def store_of(home: Path) -> RunStore:
    """The store of a home folder."""
    found = run_store.configured_store(load_settings().model_copy(update={"home": home, "run_store": "store"}))
    assert found is not None
    return found


def put(home: Path, day: str, number: int) -> None:
    """A run with its profile and its report."""
    record(home, f"r-{number}", application_id=f"app-{number}")
    store = store_of(home)
    store.put(f"records/{day}/r-{number}.json", home / "runs" / f"r-{number}" / "run.json")
    store.put(f"profiles/{day}/daily-1/{number}.json", profile(home, number, id=f"app-{number}"))
    (home / "report").write_text(f"report {number}")
    store.put(f"reports/{day}/r-{number}.html", home / "report")


def listed(runs: Runs) -> list[tuple[str, str | None, str | None]]:
    """The ids, run profiles and reports of the runs."""
    assert runs.look()
    return sorted((run.id, run.profile, run.report) for run in runs.newest_first(Chosen(), most=100))


def runs_of(home: Path) -> Runs:
    """The runs of the store, as a process that was just started lists them."""
    return Runs(Counted(store_of(home), home / "reports" / "records"), patience=PATIENCE_SECONDS)


def test_runs_of_the_store_are_listed_with_their_reports(tmp_path: Path) -> None:
    """A run, its application's profile and its report are one row, whose report and profile are read from there."""
    put(tmp_path, OLD, 1)
    runs = runs_of(tmp_path)
    assert listed(runs) == [("r-1", f"{OLD}/daily-1/1.json", f"{OLD}/r-1.html")]
    assert runs.report(f"{OLD}/r-1.html") == b"report 1"
    with pytest.raises(InputError, match=f"{OLD}/daily-1/1.json is not a run profile: .*missing required field"):
        runs.profile(f"{OLD}/daily-1/1.json")
    (tmp_path / "profile").write_bytes(msgspec.json.encode(Run(1000, [], id="app-1").summary))
    store_of(tmp_path).put(f"profiles/{OLD}/daily-1/1.json", tmp_path / "profile")
    assert runs.profile(f"{OLD}/daily-1/1.json").id == "app-1"


def test_each_file_is_read_once_also_by_the_next_process(tmp_path: Path) -> None:
    """The index remembers what it has read."""
    READ.clear()
    for number in range(20):
        put(tmp_path, OLD, number)
    assert len(listed(runs_of(tmp_path))) == 20
    assert len(READ) == 40
    again = runs_of(tmp_path)
    assert len(listed(again)) == 20
    assert len(READ) == 40


def test_days_that_are_over_are_listed_at_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of today is there at the next look; what came late for an old day, after some minutes."""
    put(tmp_path, OLD, 1)
    put(tmp_path, TODAY, 2)
    runs = runs_of(tmp_path)
    assert len(listed(runs)) == 2
    put(tmp_path, OLD, 3)
    put(tmp_path, TODAY, 4)
    assert [run for run, *_ in listed(runs)] == ["r-1", "r-2", "r-4"]
    monkeypatch.setattr(run_files, "ALL_SECONDS", 0.0)
    assert [(run, report) for run, _, report in listed(runs)] == [
        (f"r-{number}", f"{TODAY if number in (2, 4) else OLD}/r-{number}.html") for number in range(1, 5)
    ]


def test_what_the_store_deletes_leaves_the_list(tmp_path: Path) -> None:
    """As a rule of a bucket does with what is old."""
    put(tmp_path, TODAY, 1)
    put(tmp_path, TODAY, 2)
    runs = runs_of(tmp_path)
    assert len(listed(runs)) == 2
    for kind, name in (("records", "r-1.json"), ("profiles", "daily-1/1.json"), ("reports", "r-1.html")):
        (tmp_path / "store" / kind / TODAY / name).unlink()
    assert [run for run, *_ in listed(runs)] == ["r-2"]


@pytest.mark.parametrize("name", ["r-1.html", f"{OLD}/r-1.json", f"{OLD}/../../x.html", f"../{OLD}/x.html", f"{OLD}/"])
def test_only_reports_are_served(tmp_path: Path, name: str) -> None:
    """No other file of the store."""
    put(tmp_path, OLD, 1)
    (tmp_path / "x.html").write_text("secret")
    assert runs_of(tmp_path).report(name) is None


def test_a_configuration_without_a_store_lists_this_machine(tmp_path: Path) -> None:
    """Its folders."""
    settings = load_settings().model_copy(update={"home": tmp_path})
    assert run_files.configured_files(settings) == run_files.LocalRunFiles(
        tmp_path / "reports" / "records", tmp_path / "runs", tmp_path / "reports"
    )

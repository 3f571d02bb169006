"""The store of runs in a folder: what is fetched from it, and what it refuses."""

import zipfile
from pathlib import Path

import pytest

from spark_app.errors import ConfigError, InputError
from spark_app.eventlog.comparison import baselines
from spark_app.report import run_store
from spark_app.report.run_store import FETCHED, RunStore
from spark_app.settings import load_settings
from tests.unit.eventlog.made import Run

RUN = "20240102T030405Z-etl.customers-2024-01-01-abc123"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """An empty store."""
    found = run_store.configured_store(load_settings().model_copy(update={"run_store": str(tmp_path / "store")}))
    assert found is not None
    return found


def put(store: RunStore, key: str, content: bytes, tmp_path: Path) -> None:
    """Writes a file of the store."""
    (tmp_path / "file").write_bytes(content)
    store.put(key, tmp_path / "file")


def test_the_last_profiles_of_an_application_are_fetched_once(store: RunStore, tmp_path: Path) -> None:
    """Those of other applications stay where they are, and what is here is not replaced."""
    folder = baselines.folder_name("daily")
    for number in range(FETCHED + 5):
        put(store, f"applications/{folder}/{number:013}-app.json", str(number).encode(), tmp_path)
    put(store, f"applications/{baselines.folder_name('other')}/{0:013}-app.json", b"other", tmp_path)
    own = tmp_path / "profiles" / folder / f"{FETCHED:013}-app.json"
    own.parent.mkdir(parents=True)
    own.write_text("own")
    store.fetch_profiles("daily", tmp_path / "profiles")
    fetched = {file.name: file.read_text() for file in (tmp_path / "profiles").rglob("*.json")}
    expected = {f"{number:013}-app.json": str(number) for number in range(5, FETCHED + 5)}
    assert fetched == expected | {own.name: "own"}


def test_a_run_is_fetched_with_all_its_files(store: RunStore, tmp_path: Path) -> None:
    """By its id alone, once."""
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as packed:
        packed.writestr("run.json", "{}")
        packed.writestr("below/spans.jsonl", "spans")
    store.put(f"runs/2024-01-02/{RUN}.zip", tmp_path / "run.zip")
    folder = store.fetch_run(RUN)
    assert folder is not None
    assert folder.name == RUN
    assert (folder / "below" / "spans.jsonl").read_text() == "spans"
    assert store.fetch_run(RUN) == folder


@pytest.mark.parametrize("name", ["", "..", "../x", "app-1", RUN, f"{RUN}/../x"])
def test_what_is_not_there_is_no_run(store: RunStore, name: str) -> None:
    """Nor is what could not be the id of one."""
    assert store.fetch_run(name) is None


def test_a_damaged_run_is_named(store: RunStore, tmp_path: Path) -> None:
    """With where it is."""
    put(store, f"runs/2024-01-02/{RUN}.zip", b"no zip", tmp_path)
    with pytest.raises(InputError, match=f"store/runs/2024-01-02/{RUN}.zip is damaged"):
        store.fetch_run(RUN)


def test_profiles_are_stored_for_lists_and_for_comparisons() -> None:
    """By the day of their start, and by their application."""
    of_list, of_application = run_store.profile_keys(Run(1000, [], name="daily", at=1_704_200_000_000).summary)
    assert of_list == f"profiles/2024-01-02/{of_application.removeprefix('applications/')}"
    assert of_application.startswith(f"applications/{baselines.folder_name('daily')}/")


def test_days_and_files_are_listed(store: RunStore, tmp_path: Path) -> None:
    """The newest day first; none where there is nothing yet, and no file that is being written."""
    assert store.days("records") == []
    assert list(store.files("records/2024-01-01")) == []
    for day in ("2024-01-01", "2024-01-03", "2024-01-02"):
        put(store, f"records/{day}/x.json", b"123", tmp_path)
    (tmp_path / "store" / "records" / "2024-01-01" / ".y.part").write_bytes(b"")
    assert store.days("records") == ["2024-01-03", "2024-01-02", "2024-01-01"]
    [(name, info)] = store.files("records/2024-01-01")
    assert (name, info.size) == ("x.json", 3)


@pytest.mark.parametrize("location", ["http://host/x", "hdfs://host/x", "s4://x"])
def test_a_storage_where_files_do_not_appear_whole_is_refused(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the settings are read."""
    monkeypatch.setenv("SPARK_APP_RUN_STORE", location)
    with pytest.raises(ConfigError, match=r"run_store.*must be a folder, or one of s3://"):
        load_settings()

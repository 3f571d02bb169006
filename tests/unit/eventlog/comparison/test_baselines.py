from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.model.application import NAME
from spark_app.eventlog.reader import read
from spark_app.vocabulary.spark_names import WORKLOAD
from tests.unit.eventlog import log
from tests.unit.eventlog.made import Run, Stage, Task


def made(number: int, **changes: object) -> RunProfile:
    """The record of a small run, one of many."""
    run = Run(900, [Stage("sum up", 0, 900, [Task(0, 900)])], id=f"app-{number}", at=1_000_000 + number)
    return replace(run, **changes).summary  # type: ignore[arg-type]


def ids(found: list[RunProfile]) -> list[str]:
    """Which ones they are."""
    return [summary.id for summary in found]


def write_log(folder: Path, run: Run) -> Path:
    """An event log of a run."""
    file = folder / run.id
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in run.lines()))
    return file


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """A record is JSON in the folder of its application, and nothing else is left there."""
    file = baselines.save(tmp_path, made(1))
    assert baselines.load(file) == made(1)
    assert list(file.parent.iterdir()) == [file]
    assert file.name == "0000001000001-app-1.json"


def test_the_last_good_ones_are_found(tmp_path: Path) -> None:
    """Earlier, of the same name, ended well; the newest first, a few at most."""
    for number in range(8):
        baselines.save(tmp_path, made(number))
    baselines.save(tmp_path, made(9, name="another"))
    baselines.save(tmp_path, made(9, has_failed=True))
    baselines.save(tmp_path, made(9, id="killed", is_finished=False))
    baselines.save(tmp_path, made(11))
    assert ids(baselines.last_good(tmp_path, made(10))) == ["app-7", "app-6", "app-5", "app-4", "app-3"]
    assert baselines.last_good(tmp_path, made(10, name="unheard of")) == []


def test_only_what_was_asked_to_do_the_same_is_a_measure(tmp_path: Path) -> None:
    """A command of ours for a day or for a month, or from bronze, has one name and takes another time."""
    day, month = {WORKLOAD: "1 day"}, {WORKLOAD: "31 days"}
    for number, settings in enumerate([day, month, {}, day, month]):
        baselines.save(tmp_path, made(number, settings=settings))
    found = [baselines.last_good(tmp_path, made(9, settings=settings)) for settings in (day, month, {})]
    assert [ids(each) for each in found] == [["app-3", "app-0"], ["app-4", "app-1"], ["app-2"]]
    assert WORKLOAD not in made(9, settings=day).settings


def test_a_run_is_not_measured_by_itself(tmp_path: Path) -> None:
    """A record of the run in question is not an earlier run."""
    baselines.save(tmp_path, made(1))
    assert baselines.last_good(tmp_path, made(1, at=1_000_009)) == []


def test_broken_records_are_passed_over(tmp_path: Path) -> None:
    """A broken profile, or one of another version, is skipped; named by a user, it is an error."""
    good = baselines.save(tmp_path, made(1))
    (good.parent / "0000001000002-torn.json").write_text("{", encoding="utf-8")
    other = good.parent / "0000001000003-other.json"
    other.write_bytes(msgspec.json.encode(msgspec.structs.replace(made(3), version=99)))
    assert ids(baselines.last_good(tmp_path, made(10))) == ["app-1"]
    with pytest.raises(InputError, match="version 99"):
        baselines.load(other)
    with pytest.raises(InputError, match="is not a run profile"):
        baselines.load(tmp_path / "nowhere.json")


def test_old_records_go(tmp_path: Path) -> None:
    """A folder of records does not grow for ever."""
    files = [baselines.save(tmp_path, made(number)) for number in range(baselines.MAX_PROFILES + 3)]
    assert sorted(files[0].parent.iterdir()) == files[3:]


def test_records_of_some_days_are_kept(tmp_path: Path) -> None:
    """Costs and trends are those of all runs of that time, and the newest ones stay however old they are."""
    day = baselines.DAY_MS
    old = [
        baselines.save(tmp_path, made(number, at=number + day), days=2) for number in range(baselines.MAX_PROFILES + 3)
    ]
    baselines.save(tmp_path, made(500, at=3 * day), days=2)
    assert all(file.exists() for file in old)
    newest = baselines.save(tmp_path, made(501, at=3 * day + 2), days=2)
    assert sorted(newest.parent.iterdir())[:2] == old[2:4]
    baselines.save(tmp_path, made(502, at=30 * day), days=None)
    assert old[2].exists()
    baselines.save(tmp_path, made(503, at=30 * day), days=2)
    assert len(list(newest.parent.iterdir())) == baselines.MAX_PROFILES


def test_only_runs_at_the_same_place_are_a_measure(tmp_path: Path) -> None:
    """Where both say where they ran: clusters have applications of one name."""
    places = [{"cluster": "east"}, {"cluster": "west"}, {}, {"cluster": "east", "namespace": "jobs", "team": "web"}]
    for number, labels in enumerate(places):
        baselines.save(tmp_path, msgspec.structs.replace(made(number), labels=labels))

    def found(**labels: str) -> list[str]:
        return ids(baselines.last_good(tmp_path, msgspec.structs.replace(made(9), labels=labels)))

    assert found(cluster="east", team="data") == ["app-3", "app-2", "app-0"]
    assert found(cluster="west", namespace="jobs") == ["app-2", "app-1"]
    assert found() == ["app-3", "app-2", "app-1", "app-0"]


def test_what_is_kept_is_compared_the_next_time(tmp_path: Path) -> None:
    """The first run has nothing to be compared with; the second has the first, and is not its own past."""
    first, second = made(1), made(2)
    assert baselines.compare_with_baseline(tmp_path, first) is None
    baselines.save(tmp_path, first)
    compared = baselines.compare_with_baseline(tmp_path, second)
    assert compared is not None
    assert (compared.before, compared.now, compared.runs) == ("app-1", "app-2", 1)
    assert baselines.compare_with_baseline(tmp_path, first) is None


@pytest.mark.parametrize("name", ["../../up", "", "a/b", "ü" * 300, ".", "x\0y"])
def test_any_name_has_a_folder_of_its_own(tmp_path: Path, name: str) -> None:
    """A name is never a path; two that look alike as a folder differ by their hash."""
    folder = tmp_path / "records"
    file = baselines.save(folder, made(1, name=name))
    other = baselines.save(folder, made(1, name=name + "/"))
    assert file.parent.parent == other.parent.parent == folder
    assert file.parent != other.parent


def test_logs_beside_a_log_are_looked_through(tmp_path: Path) -> None:
    """Without records, the good runs of the same name whose logs lie in the same folder are what there is."""
    run = Run(900, [])
    now = replace(run, id="app-9", at=1_000_009)
    for number in range(3):
        write_log(tmp_path, replace(run, id=f"app-{number}", at=1_000_000 + number))
    write_log(tmp_path, replace(run, id="other", name="another"))
    write_log(tmp_path, replace(run, id="bad", has_failed=True))
    (tmp_path / "notes.txt").write_text("no log", encoding="utf-8")
    (tmp_path / "squeezed.lz4").write_text("not read here", encoding="utf-8")
    log = write_log(tmp_path, now)
    assert sorted(ids(baselines.good_beside(tmp_path / "records", log, now.summary))) == ["app-0", "app-1", "app-2"]


def test_a_killed_run_whose_log_ends_is_no_baseline(tmp_path: Path) -> None:
    """The hook of a JVM that is killed ends the log as if all was well; the stored profile has the exit code."""
    runs = [Run(900, [], id=f"app-{number}", at=1_000_000 + number) for number in range(3)]
    logs = [write_log(tmp_path, run) for run in runs]
    killed = read(logs[1])
    killed.app.process_exit_code = 143
    baselines.save(tmp_path / "records", profiling.run_profile(killed))
    assert ids(baselines.good_beside(tmp_path / "records", logs[2], profiling.run_profile(read(logs[2])))) == ["app-0"]


def test_a_given_name_is_that_of_logs_beside_a_log(tmp_path: Path) -> None:
    """Whatever the program calls itself; in a log the settings come before the start."""
    runs = [Run(900, [], name=f"shop {number}", id=f"app-{number}", at=1_000_000 + number) for number in range(3)]
    for run in runs[:2]:
        write_named(tmp_path, run, "nightly%20load")
    newest = write_named(tmp_path, runs[2], "nightly%20load")
    write_log(tmp_path, replace(runs[0], id="other"))
    now = profiling.run_profile(read(newest))
    assert now.application == "nightly load"
    assert sorted(ids(baselines.good_beside(tmp_path / "records", newest, now))) == ["app-0", "app-1"]
    assert [name for name in now.settings if "observed" in name] == []


def write_named(folder: Path, run: Run, name: str) -> Path:
    """An event log of a run that was observed under a name."""
    file, (start, *rest) = write_log(folder, run), run.lines()
    lines = [log.environment({NAME: name}), start, *(line for line in rest if "Spark Properties" not in line)]
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return file

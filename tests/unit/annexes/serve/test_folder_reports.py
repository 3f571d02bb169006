"""Applications of a folder of event logs get their reports when they have ended, and one each."""

import os
import time
from pathlib import Path

import pytest

from spark_app.annexes.serve import run_files
from spark_app.annexes.serve.folder_reports import ABANDONED_SECONDS, UNFINISHED, FolderReports
from spark_app.annexes.serve.runs import Chosen, Runs
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.runs import liveness, run_record
from spark_app.settings import Settings, load_settings
from tests.unit.eventlog.logs import program, text
from tests.unit.run_records import example_record
from tests.unit.watching import Watching


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a home of its own."""
    return load_settings().model_copy(update={"home": tmp_path / "home"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of event logs."""
    (tmp_path / "events").mkdir()
    return tmp_path / "events"


def write(folder: Path, application: str, *, age: float = 0, end: str = "") -> Path:
    """The log of an application that has ended, written some seconds ago."""
    log = folder / f"{application}{end}"
    log.write_text(text(*program(app_id=application)), encoding="utf-8")
    os.utime(log, (time.time() - age,) * 2)
    return log


def reports(settings: Settings) -> set[str]:
    """The names of the reports."""
    return {path.stem for path in settings.reports_path.glob("*.html")} - {"index"}


def test_an_application_that_has_ended_gets_a_report_once(folder: Path, settings: Settings) -> None:
    """It is in the list that is served; another process finds the report, and adds those that are missing."""
    watching = Watching()
    write(folder, "app-1", age=5)
    followed = FolderReports(folder, settings, Thresholds(), note=watching.note)
    followed.look()
    assert reports(settings) == {"app-1"}
    runs = Runs(run_files.configured_files(settings), patience=60)
    assert runs.look()
    (run,) = runs.newest_first(Chosen(), most=10)
    assert (run.id, run.report, run.labels) == ("app-1", "app-1.html", {"user": "me"})
    written = (settings.reports_path / "app-1.html").stat().st_mtime_ns
    write(folder, "app-2")
    FolderReports(folder, settings, Thresholds(), note=watching.note).look()
    assert reports(settings) == {"app-1", "app-2"}
    assert (settings.reports_path / "app-1.html").stat().st_mtime_ns == written
    assert watching.notes == []


def test_one_that_runs_is_waited_for(folder: Path, settings: Settings) -> None:
    """Until it closes its log, or writes nothing for an hour."""
    watching = Watching()
    followed = FolderReports(folder, settings, Thresholds(), note=watching.note)
    write(folder, "app-1", end=".inprogress")
    write(folder, "app-2", end=".inprogress", age=ABANDONED_SECONDS + 60)
    followed.look()
    assert reports(settings) == {"app-2"}
    (folder / "app-1.inprogress").rename(folder / "app-1")
    followed.look()
    assert reports(settings) == {"app-1", "app-2"}


def test_one_whose_report_would_be_deleted_again_gets_none(folder: Path, settings: Settings) -> None:
    """`retention.days` holds for reports, too."""
    write(folder, "app-1", age=40 * 86_400)
    FolderReports(folder, settings, Thresholds(), note=pytest.fail).look()
    assert reports(settings) == set()


def test_a_log_that_cannot_be_read_hinders_no_other(folder: Path, settings: Settings) -> None:
    """It is named once; so is a folder that is missing, until it is there."""
    watching = Watching()
    (folder / "app-0").write_text("no event log\n", encoding="utf-8")
    write(folder, "app-1")
    write(folder, "app-2", end=".lz4")
    followed = FolderReports(folder, settings, Thresholds(), note=watching.note)
    followed.look()
    followed.look()
    assert reports(settings) == {"app-1"}
    notes = sorted(watching.notes)
    assert len(notes) == 2
    assert notes[0].startswith(f"no report about {folder / 'app-0'}: ")
    assert notes[1].startswith(f"no report about {folder / 'app-2.lz4'}: {folder / 'app-2.lz4'} is compressed with lz4")
    missing = FolderReports(folder / "missing", settings, Thresholds(), note=watching.note)
    missing.look()
    missing.look()
    assert len(watching.notes) == 3
    assert watching.notes[2].startswith(f"cannot read {folder / 'missing'}: ")


def recorded(settings: Settings, run_id: str, outcome: str) -> Path:
    """The folder of a run of app-1."""
    folder = settings.runs_path / run_id
    run_record.write(example_record(folder, outcome=outcome, application_id="app-1"), note=pytest.fail)
    return folder


def test_a_run_of_spark_app_that_was_killed_gets_its_report(folder: Path, settings: Settings) -> None:
    """As soon as its process is gone, whatever its log and its record say; one that writes it itself gets no other."""
    write(folder, "app-1", end=".inprogress")
    killed, good = recorded(settings, "run-1", "running"), recorded(settings, "run-2", "succeeded")
    settings.reports_path.mkdir(parents=True)
    (settings.reports_path / "run-2.html").write_text("its own", encoding="utf-8")
    followed = FolderReports(folder, settings, Thresholds(), note=pytest.fail)
    with liveness.hold_liveness_lock(killed, note=pytest.fail), liveness.hold_liveness_lock(good, note=pytest.fail):
        followed.look()
        assert reports(settings) == {"run-2"}
    followed.look()
    assert reports(settings) == {"run-1", "run-2"}
    assert (settings.reports_path / "run-2.html").read_text(encoding="utf-8") == "its own"


def test_an_application_whose_runs_have_reports_gets_none(folder: Path, settings: Settings) -> None:
    """Its profile is that of its command, which knows how its runs ended."""
    write(folder, "app-1", age=5)
    recorded(settings, "run-1", "succeeded")
    settings.reports_path.mkdir(parents=True)
    (settings.reports_path / "run-1.html").write_text("its own", encoding="utf-8")
    FolderReports(folder, settings, Thresholds(), note=pytest.fail).look()
    assert reports(settings) == {"run-1"}
    assert not list(settings.profiles_path.glob("*/*.json"))


def test_a_log_that_ended_the_process_is_not_tried_again(folder: Path, settings: Settings) -> None:
    """The kernel ends a container that takes more memory than it may: the next one says so, and goes on with others."""
    watching = Watching()
    write(folder, "app-1", age=5)
    write(folder, "app-2")
    settings.reports_path.mkdir(parents=True)
    (settings.reports_path / UNFINISHED).write_text("app-1", encoding="utf-8")
    FolderReports(folder, settings, Thresholds(), note=watching.note).look()
    assert reports(settings) == {"app-2"}
    assert watching.notes == ["no report about app-1: the process that read it was ended; has it memory enough?"]
    assert not (settings.reports_path / UNFINISHED).exists()

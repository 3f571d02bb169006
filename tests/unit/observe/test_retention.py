import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path, PosixPath

import pytest

from spark_app.local_files import exclusive_lock
from spark_app.observe import retention
from spark_app.observe.retention import DAY_SECONDS, Expired, Stored, Use, expired
from spark_app.report import index
from spark_app.runs import liveness, run_record
from spark_app.settings import Retention, Settings, load_settings
from spark_app.stack_samples.samples import file_of
from spark_app.telemetry.delivery import DELIVERY
from tests.polling import poll_until
from tests.unit.eventlog.logs import program, text
from tests.unit.run_records import example_record

NOW = 1_000 * DAY_SECONDS
OLD_DAYS = 40


def stored(days: float, gigabytes: int = 1, use: Use = "done") -> Stored:
    """An event log of an age and a size."""
    name = f"{days}-{gigabytes}-{use}"
    return Stored("event log", Path(name), gigabytes * retention.GIGABYTE, NOW - days * DAY_SECONDS, use)


def names(found: list[Expired]) -> list[str]:
    """What is deleted."""
    return [each.stored.path.name for each in found]


def test_what_is_too_old_goes_also_where_there_is_room() -> None:
    """But nothing that is used, however old it is."""
    everything = [stored(31), stored(29), stored(31, use="unfinished"), stored(31, use="used")]
    found = expired(everything, Retention(days=30, gigabytes=None), now=NOW)
    assert (names(found), {each.reason for each in found}) == (["31-1-done", "31-1-unfinished"], {"older than 30 days"})


def test_the_oldest_go_until_the_rest_has_room() -> None:
    """Only what is done, and was not written just now."""
    everything = [stored(3), stored(2, 2), stored(1), stored(4, use="unfinished"), stored(0.01), stored(5, use="used")]
    found = expired(everything, Retention(days=None, gigabytes=5), now=NOW)
    assert (names(found), {each.reason for each in found}) == (["3-1-done", "2-2-done"], {"all above 5 GB"})
    assert names(expired(everything, Retention(days=None, gigabytes=0.1), now=NOW))[-1] == "1-1-done"


def test_without_limits_all_is_kept() -> None:
    """For ever."""
    assert expired([stored(3000, 1000)], Retention(days=None, gigabytes=None), now=NOW) == []


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An empty home folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return load_settings()


def old(path: Path) -> Path:
    """A file or folder that was last written long ago, with all that is in it."""
    for each in (*path.rglob("*"), path):
        os.utime(each, (time.time() - OLD_DAYS * DAY_SECONDS,) * 2)
    return path


def event_log(settings: Settings, name: str, *, is_finished: bool = True) -> Path:
    """An old log of rolled files."""
    folder = settings.events_path / f"eventlog_v2_{name}"
    folder.mkdir(parents=True)
    (folder / f"events_1_{name}").write_text(text(*program()))
    (folder / f"appstatus_{name}{'' if is_finished else '.inprogress'}").touch()
    return old(folder)


def run(settings: Settings, name: str) -> Path:
    """An old run."""
    folder = settings.runs_path / name
    folder.mkdir(parents=True)
    run_record.write(example_record(folder), note=pytest.fail)
    return old(folder)


def report(settings: Settings, name: str) -> Path:
    """An old report."""
    file = settings.reports_path / f"{name}.html"
    (settings.reports_path / index.ENTRIES).mkdir(parents=True, exist_ok=True)
    (settings.reports_path / index.ENTRIES / f"{name}.json").write_text("{}")
    file.write_text("<p>")
    return old(file)


def spark_log(settings: Settings, name: str) -> Path:
    """An old file in the folder of Spark's own logs."""
    settings.logs_path.mkdir(exist_ok=True)
    file = settings.logs_path / name
    file.write_text("{}")
    return old(file)


def test_a_log_of_spark_goes_with_its_application(settings: Settings) -> None:
    """A daemon of Spark, which may be silent for months, keeps its file; so does an application that has it open."""
    names = ("spark-20240101T010203Z-1.jsonl", "executor-app-1-0.jsonl", "driver-x-1.jsonl", "java-crash-1.log")
    logs = {spark_log(settings, name) for name in names}
    for name in ("spark-master.jsonl", "spark-worker-1.jsonl", "notes.jsonl"):
        spark_log(settings, name)
    opened = spark_log(settings, "spark-20240102T010203Z-2.jsonl")
    with opened.open("ab"):
        found = retention.prune(settings, is_dry_run=False)
    assert {each.stored.path for each in found} == logs
    assert (retention.summary(found), any(log.exists() for log in logs)) == ("4 Spark logs (8 B)", False)
    assert len(list(settings.logs_path.iterdir())) == 4


def test_all_that_is_old_is_deleted_with_what_is_beside_it(settings: Settings) -> None:
    """And nothing that this program did not write."""
    log, folder, page = event_log(settings, "app-1"), run(settings, "r-1"), report(settings, "r-1")
    beside = file_of(log)
    beside.touch()
    strangers = [
        settings.events_path / "notes.txt",
        settings.runs_path / "notes" / "x",
        settings.reports_path / "x.html",
    ]
    for stranger in strangers:
        stranger.parent.mkdir(exist_ok=True)
        stranger.write_text("mine")
        old(stranger)
    found = retention.prune(settings, is_dry_run=True)
    assert {each.stored.path for each in found} == {log, folder, page}
    assert all(each.stored.path.exists() for each in found)
    assert retention.prune(settings, is_dry_run=False) == found
    assert not [path for path in (log, folder, page, beside) if path.exists()]
    assert all(stranger.exists() for stranger in strangers)
    assert "r-1" not in (settings.reports_path / index.INDEX).read_text()
    assert retention.prune(settings, is_dry_run=False) == []


def test_what_is_written_stays(settings: Settings) -> None:
    """A log that a process has open, a run whose process lives; and a delivery is no reason to keep it for ever."""
    log, other, folder = (
        event_log(settings, "app-1", is_finished=False),
        event_log(settings, "app-2"),
        run(settings, "r-1"),
    )
    undelivered = run(settings, "r-2")
    (undelivered / DELIVERY).touch()
    old(undelivered)
    with (log / "events_1_app-1").open("ab"), liveness.hold_liveness_lock(folder, note=pytest.fail):
        old(folder)
        found = retention.prune(settings, is_dry_run=False)
    assert {each.stored.path for each in found} == {other, undelivered}
    assert {each.stored.path for each in retention.prune(settings, is_dry_run=False)} == {log, folder}


def test_a_tuning_goes_as_a_whole_and_not_while_its_program_runs(settings: Settings) -> None:
    """Its event logs and what its runs printed are in one folder."""
    for name in ("20260101-000000", "20260102-000000"):
        (settings.reports_path / retention.TUNINGS / name / "events").mkdir(parents=True)
        (settings.reports_path / retention.TUNINGS / name / "events" / "app").write_text("{}")
        old(settings.reports_path / retention.TUNINGS / name)
    (settings.reports_path / retention.TUNINGS / "forecasts").mkdir()
    (settings.reports_path / retention.TUNINGS / "forecasts" / "shop.json").write_text("[]")
    old(settings.reports_path / retention.TUNINGS / "forecasts")
    with (settings.reports_path / retention.TUNINGS / name / "events" / "app").open():
        [found] = retention.prune(settings, is_dry_run=False)
    assert (found.stored.kind, found.stored.path.name, found.stored.bytes) == ("tuning", "20260101-000000", 2)
    left = {each.name for each in (settings.reports_path / retention.TUNINGS).iterdir()}
    assert left == {"20260102-000000", "forecasts"}


def test_a_log_that_may_go_on_is_not_deleted_for_room(settings: Settings) -> None:
    """A streaming query may be silent for a while."""
    event_log(settings, "app-1", is_finished=False), event_log(settings, "app-2")
    tight = settings.model_copy(update={"retention": Retention(days=None, gigabytes=1e-9)})
    assert [each.stored.path.name for each in retention.prune(tight, is_dry_run=True)] == ["eventlog_v2_app-2"]


def test_two_delete_at_once(settings: Settings, tmp_path: Path) -> None:
    """Each waits for the other, and finds what that one has left."""
    for number in range(30):
        event_log(settings, f"app-{number}"), run(settings, f"r-{number}"), report(settings, f"r-{number}")
    code = "from spark_app.commands.prune import prune; prune(json=True)"
    said = tmp_path / "said"
    with said.open("wb") as err, ExitStack() as stack:
        lock = stack.enter_context(ExitStack())
        lock.enter_context(exclusive_lock(settings.reports_path / retention.LOCK))
        processes = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=err))
            for _ in range(2)
        ]
        poll_until(lambda: said.read_text().count("waiting for it") == 2, said.read_text, seconds=60)
        assert len(list(settings.runs_path.glob("*"))) == 30
        lock.close()
        answers = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(answer.count(b'"event log"') for answer in answers) == [0, 30]
    assert not list(settings.events_path.glob("*")) + list(settings.runs_path.glob("*"))


class Vanishing(PosixPath):
    """A folder that another process deletes as soon as this one has seen it."""

    def is_dir(self) -> bool:
        """Whether it was there."""
        was_there = super().is_dir()
        shutil.rmtree(self, ignore_errors=True)
        return was_there


def test_what_vanished_meanwhile_keeps_nothing_else(tmp_path: Path) -> None:
    """It is gone, as it should be."""
    gone, beside = Vanishing(tmp_path / "app-1"), tmp_path / "beside"
    gone.mkdir()
    beside.mkdir()
    retention.delete(Stored("event log", gone, 1, NOW, "done", (beside,)))
    assert list(tmp_path.iterdir()) == []


def test_a_deletion_that_was_killed_is_finished(settings: Settings) -> None:
    """By the next one."""
    half = settings.runs_path / f".abc{retention.DELETED}"
    half.mkdir(parents=True)
    retention.prune(settings, is_dry_run=False)
    assert not half.exists()


def test_commands_delete_once_a_day_and_say_it(settings: Settings) -> None:
    """In one line, and a day before the first time; a failure is one line, too."""
    said = list[str]()
    log = event_log(settings, "app-1")
    retention.prune_daily(settings, note=said.append)
    retention.prune_daily(settings, note=said.append)
    assert (len(said), log.exists()) == (1, True)
    assert "will delete 1 event log (" in said.pop()
    old(settings.reports_path)
    retention.prune_daily(settings, note=said.append)
    event_log(settings, "app-2")
    retention.prune_daily(settings, note=said.append)
    assert (len(said), log.exists()) == (1, False)
    assert "deleted 1 event log (" in said[0]
    assert "app.yml" in said[0]
    old(settings.reports_path)
    (settings.reports_path / retention.LOCK).unlink()
    (settings.reports_path / retention.LOCK).mkdir()
    old(settings.reports_path)
    retention.prune_daily(settings, note=said.append)
    assert "cannot delete old event logs, reports, runs and logs" in said[1]

"""`spark-app report --follow` as a process: its page while a log grows, its end, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PosixPath
from typing import Any

import pytest

from spark_app.__main__ import run
from spark_app.annexes.live.following import wait_for_end
from tests.polling import patience, poll_until
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report import made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything below one folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def append(file: Path, *lines: Line) -> None:
    """Spark flushes some lines."""
    with file.open("a", encoding="utf-8") as growing:
        growing.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


@contextmanager
def following(file: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command on a log, and the address of its page, which is the first that it prints."""
    command = [sys.executable, "-u", "-m", "spark_app", "report", "--follow", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            first = process.stderr.readline()
            assert first.startswith("live report: http://127.0.0.1:"), first + process.stderr.read()
            yield process, first.split()[-1]
        finally:
            process.kill()


def shown(url: str, seen: int = 0) -> dict[str, Any]:
    """What a browser gets that has seen a version."""
    with urllib.request.urlopen(f"{url}live?seen={seen}", timeout=60) as answer:
        update: dict[str, Any] = json.load(answer)
    return update


def wait_for(url: str, text: str) -> None:
    """Waits until the page has a text."""
    poll_until(lambda: text in (shown(url)["page"] or ""), f"{text} in the page")


def test_a_page_follows_a_log_and_the_report_is_written_at_its_end(home: Path) -> None:
    """What is appended appears; when Spark renames the log, standard output is the path of the report, as ever."""
    file = home / "app-1.inprogress"
    append(file, log.started(), log.executor(), log.job(0, [0]))
    with following(file) as (process, url):
        wait_for(url, "Job 0 began; no open stage of it is in the log yet.")
        append(file, log.stage(0, tasks=3), log.task(0, 0))
        wait_for(url, "<b>stage 0</b>")
        append(file, log.stage(0, end=2900), log.job_ended(0), log.ended())
        file.rename(home / "app-1")
        out, err = process.communicate(timeout=patience(60))
        assert (process.returncode, out.strip()) == (0, str(home / "reports" / "app-1.html")), err
    report = (home / "reports" / "app-1.html").read_text(encoding="utf-8")
    assert "ended, no job failed" in report
    assert 'id="now"' not in report
    assert "connect-src" not in report


def test_ctrl_c_writes_the_report_of_what_is_there(home: Path) -> None:
    """With exit code 0; a browser that looks is told where the report is, and gets it."""
    file = home / "app-1.inprogress"
    append(file, log.started(), log.executor(), log.job(0, [0]))
    with following(file) as (process, url):
        wait_for(url, "Job 0 began")
        process.send_signal(signal.SIGINT)
        poll_until(lambda: shown(url, 999)["ended"] is not None or process.poll() is not None, "the end")
        out, err = process.communicate(timeout=patience(60))
        assert process.returncode == 0, err
    assert "The log has no end" in Path(out.strip()).read_text(encoding="utf-8")


class Interrupting:
    """An object during whose end Ctrl-C comes: Python only prints what is raised there."""

    def __del__(self) -> None:
        """Sends the signal."""
        os.kill(os.getpid(), signal.SIGINT)


class Looked(PosixPath):
    """A log that is gone after some looks; each look frees an object during whose end Ctrl-C comes."""

    looks = 0

    def exists(self) -> bool:
        """Whether it is there."""
        Looked.looks += 1
        Interrupting()
        if Looked.looks > 9:
            self.unlink(missing_ok=True)
        return super().exists()


def test_ctrl_c_while_an_object_is_freed_ends_the_waiting(tmp_path: Path) -> None:
    """Long before the log is gone."""
    file = Looked(tmp_path / "app-1.inprogress")
    append(file, log.started())
    wait_for_end(file)
    assert file.is_file()


def test_a_finished_log_is_not_followed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report is written at once."""
    file = made.written(home / "log", [log.started(), log.ended()])
    assert run(["report", "--follow", str(file)]) == 0
    out, err = capsys.readouterr()
    assert Path(out.strip()).is_file()
    assert err == "the log is finished: there is nothing to follow\n"


def test_a_log_on_another_storage_is_not_followed(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what is needed; the storage is not asked, and its secret is not shown."""
    assert run(["report", "--follow", "s3://key:secret@bucket/logs/app-1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--follow needs an event log on this machine or in a mounted folder" in line
    assert "secret" not in line


def test_a_deleted_log_ends_the_page(home: Path) -> None:
    """With the error of a report without a log."""
    file = home / "app-1.inprogress"
    append(file, log.started(), log.job(0, [0]))
    with following(file) as (process, _):
        file.unlink()
        _, err = process.communicate(timeout=patience(60))
        assert process.returncode == 3
    assert "no event log at" in err

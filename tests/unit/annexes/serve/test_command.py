"""`spark-app serve` as a process: its address, its end, and a port that is taken."""

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from spark_app.__main__ import run
from spark_app.annexes.serve.command import require_password
from tests.polling import patience, poll_until
from tests.unit.eventlog.logs import program, text


def test_the_list_is_served_until_ctrl_c(tmp_path: Path) -> None:
    """The first line has the address; the exit code of the end is 0."""
    variables = {"SPARK_APP_HOME": str(tmp_path), "PATH": ""}
    command = [sys.executable, "-u", "-m", "spark_app", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        with urllib.request.urlopen(url, timeout=30) as page:
            assert b"No runs yet" in page.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=patience(30)) == 0


def test_applications_of_a_folder_get_reports_meanwhile(tmp_path: Path) -> None:
    """The list has them, and leads to their reports."""
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "app-1").write_text(text(*program()), encoding="utf-8")
    variables = {"SPARK_APP_HOME": str(tmp_path / "home"), "PATH": ""}
    command = [sys.executable, "-u", "-m", "spark_app", "serve", str(tmp_path / "events"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http"))

        def page(path: str = "") -> bytes:
            with urllib.request.urlopen(url + path, timeout=30) as answer:
                content: bytes = answer.read()
                return content

        poll_until(lambda: b"/reports/app-1.html" in page(), "the list has no report")
        assert b"shop" in page("reports/app-1.html")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=patience(30)) == 0


def test_a_port_in_use_is_an_error_of_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, with what to do."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run(["serve", "--port", str(port)]) == 2
    assert f"port {port} is in use: choose another with --port" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--published", "10.0.0.1"]])
def test_others_are_not_served_without_a_password(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the variable."""
    assert run(["serve", "--port", "0", *options]) == 2
    assert (
        "is not loopback, so that others could read all reports: set SPARK_APP_SERVE_PASSWORD"
        in capsys.readouterr().err
    )


def test_a_container_whose_port_is_published_on_loopback_needs_none() -> None:
    """Nor does one that has a password."""
    require_password("127.0.0.1", None)
    require_password("10.0.0.1", "secret")

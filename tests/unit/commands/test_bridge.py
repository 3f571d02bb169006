"""What is wrong before a bridge begins is said in one line, with what to do."""

import os
import socket
from pathlib import Path

import pytest

from spark_app.__main__ import run


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that nobody asks, and none of the variables of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")


def begin(tmp_path: Path, *options: str) -> int:
    """The exit code of a bridge over an empty folder."""
    return run(["bridge", str(tmp_path), "--state", str(tmp_path / "state"), "--metrics-port", "0", *options])


def test_the_bridge_needs_an_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the variable."""
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    assert begin(tmp_path) == 2
    assert capsys.readouterr().err == "error: no OTLP endpoint is configured: set OTEL_EXPORTER_OTLP_ENDPOINT\n"


def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the option that names another."""
    (tmp_path / "state").touch()
    assert begin(tmp_path) == 2
    text = (
        f"the bridge cannot write its checkpoint in {tmp_path / 'state'}: File exists; set another folder with --state"
    )
    assert capsys.readouterr().err == f"error: {text}\n"


def test_a_port_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the option that names another."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert begin(tmp_path, "--metrics-port", port) == 2
    assert f"error: cannot listen on 127.0.0.1:{port}: " in capsys.readouterr().err

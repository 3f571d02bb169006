"""A client of Spark Connect notes its session; it is made as without it, whatever fails."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from spark_app.spark import connect_sessions

CLIENT: Final = """
class SparkConnectClient:
    def __init__(self, connection, user_id=None):
        self._builder = Builder()
        self._session_id, self._user_id = connection, user_id

class Builder:
    endpoint = "there:15002"
"""
"""Stands for the module of PySpark, as far as a session is concerned."""
PROGRAM: Final = """
import sys
from spark_app.spark import call_sites, connect_sessions
connect_sessions.note(call_sites.when_imported, sys.argv[1])
from pyspark.sql.connect.client.core import SparkConnectClient
print(SparkConnectClient("s-1", user_id="ana")._session_id, SparkConnectClient("s-2")._session_id)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder for `PYTHONPATH` with a package of PySpark's name."""
    module = tmp_path / "python" / Path(*connect_sessions.CLIENT.split(".")).with_suffix(".py")
    module.parent.mkdir(parents=True)
    for folder in (module.parent, *module.parent.parents[:3]):
        (folder / "__init__.py").touch()
    module.write_text(CLIENT, encoding="utf-8")
    return tmp_path / "python"


def ran(package: Path, folder: Path) -> str:
    """What a client prints that notes its sessions in a folder."""
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    environment = {"PYTHONPATH": f"{package}:src"}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_each_session_has_a_line(package: Path, tmp_path: Path) -> None:
    """With its server, and its user where there is one; the client is the same."""
    assert ran(package, tmp_path) == "s-1 s-2\n"
    lines = (tmp_path / connect_sessions.FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"server": "there:15002", "session": "s-1", "user": "ana"},
        {"server": "there:15002", "session": "s-2", "user": ""},
    ]


def test_a_folder_that_is_gone_costs_only_the_note(package: Path, tmp_path: Path) -> None:
    """The client of a program that outlives its command works."""
    assert ran(package, tmp_path / "gone") == "s-1 s-2\n"

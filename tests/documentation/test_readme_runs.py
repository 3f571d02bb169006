"""The README's own commands, one after the other, as its reader types them.

`make`, `uv` and the set-up itself are run by `.ci/run`, in clones of their own; what needs Docker, by `make e2e`.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from app.eventlog.comparison import history
from app.runner import workload
from tests.readme import ROOT, commands

ELSEWHERE: Final = ("make", "uv", "source", "./scripts/", "spark-app doctor")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home folder for all, with the day that `make run-etl` has made for a reader."""
    folder = tmp_path_factory.mktemp("home")
    run(folder, "spark-app etl --date 2024-01-01").check_returncode()
    return folder


@pytest.mark.parametrize("command", [command for command in commands() if not command.startswith(ELSEWHERE)])
def test_a_command_of_the_readme_ends_well(home: Path, command: str) -> None:
    """With exit code 0."""
    done = run(home, command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_day_leaves_a_record_that_says_what_was_asked_and_how_long_its_steps_took(home: Path) -> None:
    """Another day is compared with it, and a range or a replay is not."""
    records = [history.load(file) for file in (home / "reports" / "records").glob("*/*.json")]
    (record, *_) = [record for record in records if record.workload == workload(1, is_replay=False)]
    assert set(record.steps) >= {"etl.customers #: publish customers", "etl.daily_sales #: publish daily_sales"}
    assert all(0 < milliseconds <= record.duration_ms for milliseconds in record.steps.values())


def run(home: Path, command: str) -> subprocess.CompletedProcess[str]:
    """One command, with the environment activated."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=os.environ | {"PATH": path, "SPARK_APP_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )

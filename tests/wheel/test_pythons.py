"""A project of one's own works with each Python that the package says it does.

Before a release: the other tests have the oldest Python, and the stack's image the newest.
"""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.wheel.conftest import ROOT, UV, installed, ran

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST, BEYOND = (int(bound.split("3.")[1]) for bound in PROJECT["requires-python"].split(","))


def of_pyenv() -> dict[str, str]:
    """What lets `uv` find each Python of pyenv, where that is: it shows the chosen ones alone."""
    if shutil.which("pyenv") is None:
        return {}
    found = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=True).stdout
    return {"PYENV_VERSION": ":".join(found.split())}


@pytest.mark.before_release
@pytest.mark.parametrize("minor", range(OLDEST + 1, BEYOND))
def test_a_written_project_works_with_each_newer_python(minor: int, wheel: Path, tmp_path: Path) -> None:
    """Its tests pass and its day is published. uv fetches a Python that is missing."""
    made = ran([UV, "venv", "--python", f"3.{minor}", tmp_path / "venv"], tmp_path, **of_pyenv())
    made.check_returncode()
    python = installed(tmp_path / "venv", wheel)
    command = python.with_name("spark-app")
    (tmp_path / "shop").mkdir()
    ran([command, "init", "shop"], tmp_path / "shop").check_returncode()
    tested = ran([python, "-m", "pytest", "--quiet"], tmp_path / "shop")
    assert (tested.returncode, "2 passed" in tested.stdout) == (0, True), tested.stdout
    done = ran([command, "etl", "--date", "2024-01-01", "--json"], tmp_path / "shop")
    assert done.returncode == 0, done.stderr
    assert [run["outcome"] for run in json.loads(done.stdout)["runs"]] == ["succeeded"]

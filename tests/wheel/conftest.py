"""The wheel of `make wheel`, installed as a user does."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
UV: Final = Path(sys.executable).parent / "uv"


def ran(command: Sequence[str | Path], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, without a home folder of spark-app and the packages of this Python."""
    unset = ("SPARK_APP_HOME", "PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)  # noqa: T201 - pytest shows it where a test fails
    return done


def installed(environment: Path, wheel: Path) -> Path:
    """Python of a fresh environment, with the wheel, what its extra `streaming` brings, and pytest."""
    python = environment / "bin" / "python"
    uncompressed = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
    packages = (f"{wheel}[streaming]", "pytest")
    command: list[str | Path] = [UV, "pip", "install", "--python", python, *uncompressed, *packages]
    ran(command, environment).check_returncode()
    return python


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel that `make wheel` has built."""
    (file,) = (ROOT / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="session")
def tool(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `uv tool install`, with the program in `bin/`."""
    folder = tmp_path_factory.mktemp("tool")
    places = {"UV_TOOL_DIR": str(folder / "environments"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    ran([UV, "tool", "install", "--python", sys.executable, wheel], folder, **places).check_returncode()
    return folder

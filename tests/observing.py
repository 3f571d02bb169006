"""Runs a program of Spark below `spark-app observe`, as its user does."""

import os
import subprocess
import sys
from pathlib import Path


def observed(folder: Path, program: str, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program in a folder, with the event logs in `events` there.

    Args:
        folder: The working folder, which gets the home folder and `split.py`, the program.
        program: Its content.
        options: Those of `observe`.
        variables: Further ones of its environment.
    """
    file = folder / "split.py"
    file.write_text(program, encoding="utf-8")
    own = {"SPARK_APP_HOME": str(folder / "home"), "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "spark_app", "observe", "--keep", str(folder / "events"), *options]
    return subprocess.run(
        [*command, "--", sys.executable, str(file)],
        cwd=folder,
        env=os.environ | own | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def log_of(folder: Path) -> Path:
    """The event log that a run in a folder has left, beside which its samples are."""
    return next(file for file in (folder / "events").iterdir() if file.suffix != ".zst")

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from spark_app.annexes.tune.command import change_text
from spark_app.annexes.tune.judgement import Effect

TUNE: Final = (sys.executable, "-m", "spark_app", "tune")


def tuned(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command after it was tuned."""
    return subprocess.run(
        [*TUNE, *command],
        env={"PATH": os.environ["PATH"], "SPARK_APP_HOME": str(home)},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_that_fails_as_it_is_ends_with_its_exit_code(tmp_path: Path) -> None:
    """Its last lines are shown, and it is not run again."""
    done = tuned(tmp_path, "--", "sh", "-c", "echo what went wrong; exit 7")
    assert (done.returncode, done.stdout) == (7, "")
    assert "what went wrong\nerror: the program failed with exit code 7: " in done.stderr
    assert len(list(tmp_path.glob("reports/tuning/*/run-*.log"))) == 1


def test_a_program_that_is_interrupted_has_not_failed(tmp_path: Path) -> None:
    """In its first run: the last line says so."""
    done = tuned(tmp_path, "--", "sh", "-c", "kill -INT $$")
    assert done.returncode == 130
    assert "error: the program was interrupted with exit code 130: " in done.stderr


def test_a_program_without_spark_is_an_error(tmp_path: Path) -> None:
    """There is nothing to tune."""
    done = tuned(tmp_path, "--json", "echo", "hi")
    assert done.returncode == 3
    assert "no event log of a Spark application was found" in json.loads(done.stdout)["error"]["message"]


def test_options_after_the_command_belong_to_the_command(tmp_path: Path) -> None:
    """As those of `observe`."""
    done = tuned(tmp_path, "sh", "-c", 'echo "$@"; exit 3', "sh", "--runs", "1")
    assert done.returncode == 3
    assert "--runs 1\n" in done.stderr


@pytest.mark.parametrize("options", [("--runs", "2"), ("--budget", "soon")])
def test_an_option_that_cannot_be_is_refused(tmp_path: Path, options: tuple[str, str]) -> None:
    """Two pairs prove nothing."""
    assert tuned(tmp_path, *options, "--", "true").returncode == 2


def test_a_change_has_its_interval() -> None:
    """One pair has none."""
    assert change_text(Effect(-0.234, -0.3, -0.15, 5)) == "-23 % (-30 to -15 %)"
    assert change_text(Effect(0.1, -1, float("inf"), 1)) == "+10 %"
    assert change_text(None) == "-"

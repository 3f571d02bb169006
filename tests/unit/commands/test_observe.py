import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from app.commands.observe import figures, outcome, worst
from app.eventlog import events
from app.eventlog.application import Application
from app.eventlog.findings import Finding
from app.eventlog.follow import Troubles
from app.eventlog.parts import StageInfo, TaskEndReason, TaskInfo, TaskMetrics
from app.eventlog.reading import Reading

OBSERVE: Final = (sys.executable, "-m", "app", "observe")


def observed(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command after it was observed."""
    return subprocess.run(
        [*OBSERVE, *command],
        env={"PATH": "/usr/bin:/bin", "SPARK_APP_HOME": str(home)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )


def read(*told: events.Event, is_finished: bool = True) -> Reading:
    """A log with certain events."""
    app = Application()
    for event in told:
        app.take(event)
    return Reading(Path("local-1"), app, Troubles(), 0, is_finished)


STARTED: Final = events.ApplicationStart("one", 1000)


@pytest.mark.parametrize("before", [[], ["--"]])
def test_the_options_of_a_command_are_its_own(tmp_path: Path, before: list[str]) -> None:
    """What follows the command is handed to it, `--json`, `--help` and `--` too, with or without `--` before it."""
    done = observed(tmp_path, *before, "echo", "--json", "--help", "--", "--debug")
    assert (done.returncode, done.stdout) == (0, "--json --help -- --debug\n")


def test_a_program_without_spark_is_said_in_a_line(tmp_path: Path) -> None:
    """The exit code is the program's, nothing of ours is on standard output, and one line says what was not there."""
    done = observed(tmp_path, "sh", "-c", "echo hi; exit 3")
    assert (done.returncode, done.stdout) == (3, "hi\n")
    assert "no Spark was started" in done.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    """The exit code is that of a shell, and one line says which command it was."""
    done = observed(tmp_path, "no-such-command", "--json")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "error: no-such-command: command not found\n"


@pytest.mark.parametrize(
    ("end", "is_running", "told"),
    [
        ([events.ApplicationEnd(3000)], False, "ended"),
        ([events.ApplicationEnd(3000, 0)], False, "ended"),
        ([events.ApplicationEnd(3000, 3)], False, "failed"),
        ([], False, "incomplete"),
        ([], True, "still running"),
    ],
)
def test_the_outcome_is_what_the_log_tells(*, end: list[events.Event], is_running: bool, told: str) -> None:
    """A log without an end is of an application that was killed, or goes on."""
    assert outcome(read(STARTED, *end, is_finished=bool(end)), is_running=is_running) == told


def test_a_hostile_name_is_text() -> None:
    """What a terminal would act on is shown as it is written."""
    told = figures(read(events.ApplicationStart("\x1b[31mred\n", 1000)), is_running=False)
    assert told["application"] == "\\x1b[31mred\\n"


@pytest.mark.parametrize(("metrics", "told"), [(None, "-"), (TaskMetrics(disk_spilled=7), "7 B")])
def test_what_no_task_has_told_is_unknown(metrics: TaskMetrics | None, told: str) -> None:
    """A task that was lost with its executor has no metrics: its bytes are not 0, they are not known."""
    info = StageInfo(0, 0, "collect", 1)
    end = events.TaskEnd(0, 0, TaskEndReason("Success"), TaskInfo(0, 0, 0, 1, "1", "host", finished=2), metrics)
    assert figures(read(STARTED, events.StageSubmitted(info), end), is_running=False)["spilled"] == told


def test_the_worst_findings_are_listed() -> None:
    """The first three are told, the rest is counted."""
    found = [Finding(f"rule_{number}", "info", f"finding {number}", "") for number in range(5)]
    assert worst(found) == ["info: finding 0", "info: finding 1", "info: finding 2", "2 more in the report"]
    assert worst(found[:1]) == ["info: finding 0"]

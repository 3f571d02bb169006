import errno
import json
import traceback
from pathlib import Path

import pytest
import typer

from app.commands import failures
from app.commands.failures import Asked
from app.errors import ConfigError, InputError, MachineError, QualityGateError, ReconciliationError, UsageError
from tests.unit.run_records import run_record


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (ConfigError("x"), 2),
        (MachineError("x"), 2),
        (InputError("x"), 3),
        (QualityGateError("x"), 4),
        (ReconciliationError("x"), 1),
        (typer.BadParameter("x"), 2),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 1),
        (OSError(errno.ENOSPC, "No space left on device"), 2),
        (PermissionError(errno.EACCES, "Permission denied"), 2),
        (FileNotFoundError(errno.ENOENT, "No such file"), 1),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(error: BaseException, code: int) -> None:
    """What went wrong can be told from the exit code alone."""
    assert failures.failure(error).exit_code == code


def test_no_secret_of_an_error_is_told() -> None:
    """What a terminal shows goes to logs of schedulers, too."""
    told = failures.failure(MachineError("no way to jdbc:db://me:hunter2@h?password=hunter2")).message
    assert told == "no way to jdbc:db://(redacted)@h?password=(redacted)"


def test_a_full_disk_is_told_with_the_file() -> None:
    """An error of the machine names the thing."""
    error = OSError(errno.ENOSPC, "No space left on device", "/runs/x")
    assert failures.failure(error).message == "No space left on device: /runs/x"


def test_a_message_is_one_line_that_no_terminal_acts_on() -> None:
    """Line breaks and control characters of a message do not reach the terminal."""
    assert failures.failure(ConfigError("a\n  b\x1b[31m")).message == "a b\\x1b[31m"


def test_the_stack_of_a_jvm_is_no_part_of_the_line() -> None:
    """What Java says is told without where in Java it was."""
    told = failures.failure(RuntimeError("calling o5.save.\n: java.lang.Error: full\n\tat org.x.Y(Z.java:1)\n\tat b"))
    assert told.message.startswith("a bug: RuntimeError: calling o5.save. : java.lang.Error: full (")


def test_a_bug_says_where_the_log_is_and_how_to_see_more() -> None:
    """A bug names the folder of the run that it ended, and --debug."""
    error = ValueError("x")
    error.results = [run_record(folder=Path("/runs/1")), run_record(folder=Path("/runs/2"))]  # type: ignore[attr-defined]
    assert (
        failures.failure(error).message == "a bug: ValueError: x (its log is in /runs/2; --debug shows the traceback)"
    )


def test_a_bug_is_told_where_the_settings_are_wrong_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say where Spark's logs are; what fails is told without."""
    monkeypatch.setenv("SPARK_APP_RAW", "x")
    assert failures.failure(ValueError("x")).message == "a bug: ValueError: x (--debug shows the traceback)"


def test_a_failure_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --debug there is no traceback, and nothing on standard output."""
    assert failures.report(InputError("no data"), Asked()) == 3
    assert capsys.readouterr() == ("", "error: no data\n")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """With --debug the traceback comes first, the line last."""
    error = InputError("no data")
    failures.report(error, Asked(debug=True))
    assert capsys.readouterr().err == "".join(traceback.format_exception(error)) + "error: no data\n"


def test_json_tells_a_failure_as_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is the document: exit code, kind, message, and the runs until then."""
    error = QualityGateError("too many nulls")
    error.results = [run_record(outcome="rejected")]  # type: ignore[attr-defined]
    failures.report(error, Asked(json=True))
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["error"]) == (4, {"type": "QualityGateError", "message": "too many nulls"})
    assert [run["outcome"] for run in told["runs"]] == ["rejected"]


def test_json_has_what_an_error_tells_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """An error's own part of the document stands beside its kind and message."""
    error = MachineError("the stack is not well")
    error.document = {"checks": ["down"]}
    failures.report(error, Asked(json=True))
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["error"]["type"], told["checks"]) == (2, "MachineError", ["down"])


class Mute(Exception):  # noqa: N818 - like PySpark's, which cannot say anything without its JVM
    """An exception that cannot be turned into text any more."""

    _desc = "[TABLE_NOT_FOUND] x"

    def __str__(self) -> str:
        raise AssertionError


def test_an_exception_without_a_voice_is_told_all_the_same() -> None:
    """An exception of PySpark is explained even after its JVM has ended."""
    assert failures.failure(Mute()).message.startswith("a bug: Mute: [TABLE_NOT_FOUND] x (")

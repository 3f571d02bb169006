import errno
import json
import os
import traceback
from pathlib import Path

import pytest
import typer

from spark_app.commands import errors
from spark_app.commands.errors import OutputOptions
from spark_app.errors import ConfigError, InputError, MachineError, QualityGateError, ReconciliationError, UsageError
from tests.unit.run_records import example_record


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
    """Scripts can tell failures apart."""
    assert errors.failure(error).exit_code == code


def test_secrets_in_errors_are_masked() -> None:
    """What a terminal shows ends up in logs of schedulers."""
    message = errors.failure(MachineError("no way to jdbc:db://me:hunter2@h?password=hunter2")).message
    assert message == "no way to jdbc:db://(redacted)@h?password=(redacted)"


def test_a_full_disk_names_the_file() -> None:
    """As a machine error."""
    error = OSError(errno.ENOSPC, "No space left on device", "/runs/x")
    assert errors.failure(error).message == "No space left on device: /runs/x"


def test_a_message_is_one_line_without_control_characters() -> None:
    """Line breaks of a message do not reach the terminal, either."""
    assert errors.failure(ConfigError("a\n  b\x1b[31m")).message == "a b\\x1b[31m"


def test_the_stack_trace_of_a_jvm_is_left_out() -> None:
    """Java's message stays."""
    failure = errors.failure(RuntimeError("calling o5.save.\n: java.lang.Error: full\n\tat org.x.Y(Z.java:1)\n\tat b"))
    assert failure.message.startswith("a bug: RuntimeError: calling o5.save. : java.lang.Error: full (")


def test_a_bug_names_the_log_and_debug(tmp_path: Path) -> None:
    """The folder of the last run in which something was written, and --debug."""
    error = ValueError("x")
    error.results = [example_record(folder=tmp_path / name) for name in "123"]  # type: ignore[attr-defined]
    for name in "12":
        (tmp_path / name).mkdir()
        (tmp_path / name / "logs.jsonl").touch()
    message = f"a bug: ValueError: x (its log is in {tmp_path / '2'}; --debug shows the traceback)"
    assert errors.failure(error).message == message


def test_a_bug_names_no_log_that_another_command_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's log is named only if this command has written to it."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    log = tmp_path / "logs" / "spark.jsonl"
    log.parent.mkdir()
    log.touch()
    assert str(log.parent) in errors.failure(ValueError("x")).message
    os.utime(log, (1e9, 1e9))
    assert errors.failure(ValueError("x")).message == "a bug: ValueError: x (--debug shows the traceback)"


def test_a_bug_is_reported_with_invalid_settings_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the folder of the log, which the settings name."""
    monkeypatch.setenv("SPARK_APP_RAW", "x")
    assert errors.failure(ValueError("x")).message == "a bug: ValueError: x (--debug shows the traceback)"


def test_a_failure_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --debug no traceback, and nothing on standard output."""
    assert errors.report(InputError("no data"), OutputOptions()) == 3
    assert capsys.readouterr() == ("", "error: no data\n")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback comes first, the line last."""
    error = InputError("no data")
    errors.report(error, OutputOptions(debug=True))
    assert capsys.readouterr().err == "".join(traceback.format_exception(error)) + "error: no data\n"


def test_json_reports_a_failure_as_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code, kind, message, and the runs until then."""
    error = QualityGateError("too many nulls")
    error.results = [example_record(outcome="rejected")]  # type: ignore[attr-defined]
    errors.report(error, OutputOptions(json=True))
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["error"]) == (4, {"type": "QualityGateError", "message": "too many nulls"})
    assert [run["outcome"] for run in document["runs"]] == ["rejected"]


def test_json_has_the_document_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside its kind and message."""
    error = MachineError("the stack is unhealthy")
    error.document = {"checks": ["down"]}
    errors.report(error, OutputOptions(json=True))
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["error"]["type"], document["checks"]) == (2, "MachineError", ["down"])


class Mute(Exception):  # noqa: N818 - like PySpark's, which cannot say anything without its JVM
    """An exception that cannot be turned into text any more."""

    _desc = "[TABLE_NOT_FOUND] x"

    def __str__(self) -> str:
        raise AssertionError


def test_an_exception_whose_message_raises_is_reported() -> None:
    """As those of PySpark do when their JVM is gone."""
    assert errors.failure(Mute()).message.startswith("a bug: Mute: [TABLE_NOT_FOUND] x (")

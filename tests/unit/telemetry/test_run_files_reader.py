import logging
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spark_app.telemetry import crash_recovery
from spark_app.telemetry.crash_recovery import killed_run
from spark_app.telemetry.errors import TelemetryErrors
from spark_app.telemetry.run_files import LOGS, STARTED, TRACES, RunFiles
from spark_app.telemetry.run_files_reader import RunFilesReader
from tests.unit.telemetry.memory import InMemory

TAILS: Final = {
    "torn": b'{"resourceSpans":[{"sc',
    "torn in a character": b'{"resourceLogs":[{"resource":"\xc3',
    "empty": b"\n",
    "no message": b"{}\n",
    "no object": b"[1]\n",
    "another shape": b'{"resourceSpans":[{"scopeSpans":7}],"resourceLogs":7}\n',
    "no ids": b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"run etl.daily_sales"}]}]}]}\n',
    "no UTF-8": b"\xff\xfe\xfd\n",
    "deep": b"[" * 100_000,
}


@pytest.fixture(params=TAILS)
def damaged(request: pytest.FixtureRequest, telemetry: InMemory, tmp_path: Path) -> Path:
    """The folder of a run that was killed in its second step, with an unreadable last line in three files."""
    folder = tmp_path / "left"
    with telemetry.run() as run:
        with run.step("read", kind="read"):
            pass
        with run.step("publish", kind="publish"):
            logging.getLogger("spark_app.execution.run").warning("on its way")
            shutil.copytree(telemetry.folder / "run-1", folder)
    for name in (STARTED, TRACES, LOGS):
        with (folder / name).open("ab") as file:
            file.write(TAILS[request.param])
    return folder


def test_an_unreadable_line_is_skipped_and_counted(damaged: Path) -> None:
    """Whatever the last line is, the lines before it are read, and one skipped line is counted for each file."""
    lines = RunFilesReader(damaged)
    assert [(step.name, step.ended is not None) for step in lines.steps()] == [
        ("run etl.daily_sales", False),
        ("step read", True),
        ("step publish", False),
    ]
    assert lines.skipped == 2
    assert [(line.message, line.logger, line.level) for line in lines.logs()] == [
        ("on its way", "spark_app.execution.run", 13)
    ]
    assert lines.skipped == 3


def test_a_killed_run_is_ended_whatever_its_last_lines_are(damaged: Path) -> None:
    """The open spans are ended and written to the files, so that a second recovery finds none."""
    left = killed_run(damaged)
    assert left is not None
    assert [span.name for span in left.spans] == ["run etl.daily_sales", "step publish"]
    assert [span.name for span in left.last] == ["step read"]
    assert left.skipped == 2
    assert crash_recovery.end(damaged, lambda *_: True, errors=TelemetryErrors()) is not None
    assert all(step.ended for step in RunFilesReader(damaged).steps())
    assert killed_run(damaged) is None


def test_attributes_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Integers are strings in the file, and false, 0 and "" are values."""
    written: dict[str, Any] = {"text": "", "count": 0, "share": 1.5, "is": False, "several": ("a", "b")}
    files = RunFiles(tmp_path, errors=TelemetryErrors())
    files.write_end(ReadableSpan("run x", SpanContext(1, 2, is_remote=False), attributes=written, start_time=1))
    files.close()
    (step,) = RunFilesReader(tmp_path).steps()
    assert step.attributes == written


def test_a_folder_without_files_has_no_spans(tmp_path: Path) -> None:
    """OpenTelemetry may have been disabled."""
    lines = RunFilesReader(tmp_path)
    assert (lines.steps(), lines.logs(), lines.skipped, killed_run(tmp_path)) == ([], [], 0, None)

import logging
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from app.telemetry import killed
from app.telemetry.files import LOGS, STARTED, TRACES, RunFiles
from app.telemetry.killed import left_open
from app.telemetry.lines import RunLines
from app.telemetry.problems import Problems
from tests.unit.telemetry.memory import InMemory

TAILS: Final = {
    "torn": b'{"resourceSpans":[{"sc',
    "torn in a character": b'{"resourceLogs":[{"resource":"\xc3',
    "empty": b"\n",
    "no message": b"{}\n",
    "no object": b"[1]\n",
    "another shape": b'{"resourceSpans":[{"scopeSpans":7}],"resourceLogs":7}\n',
    "nobody": b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"run etl.daily_sales"}]}]}]}\n',
    "no UTF-8": b"\xff\xfe\xfd\n",
    "deep": b"[" * 100_000,
}


@pytest.fixture(params=TAILS)
def harmed(request: pytest.FixtureRequest, telemetry: InMemory, tmp_path: Path) -> Path:
    """The folder of a run that was killed in its second step, its three files with something wrong at their ends."""
    folder = tmp_path / "left"
    with telemetry.run() as run:
        with run.step("read", kind="read"):
            pass
        with run.step("publish", kind="publish"):
            logging.getLogger("app.runner").warning("on its way")
            shutil.copytree(telemetry.folder / "run-1", folder)
    for name in (STARTED, TRACES, LOGS):
        with (folder / name).open("ab") as file:
            file.write(TAILS[request.param])
    return folder


def test_what_cannot_be_read_is_counted_and_harms_nothing_else(harmed: Path) -> None:
    """Whatever is at the end of a file: what is before it is told, for each of the files once."""
    lines = RunLines(harmed)
    assert [(step.name, step.ended is not None) for step in lines.steps()] == [
        ("run etl.daily_sales", False),
        ("step read", True),
        ("step publish", False),
    ]
    assert lines.skipped == 2
    assert [(line.message, line.logger, line.level) for line in lines.logs()] == [("on its way", "app.runner", 13)]
    assert lines.skipped == 3


def test_a_killed_run_is_ended_whatever_its_files_end_with(harmed: Path) -> None:
    """What was left open is ended and written where it can be read again, so there is nothing to end a second time."""
    left = left_open(harmed)
    assert left is not None
    assert [span.name for span in left.spans] == ["run etl.daily_sales", "step publish"]
    assert [span.name for span in left.last] == ["step read"]
    assert left.skipped == 2
    assert killed.end(harmed, lambda *_: True, problems=Problems()) is not None
    assert all(step.ended for step in RunLines(harmed).steps())
    assert left_open(harmed) is None


def test_attributes_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Integers are strings in the file, and false, 0 and "" are values as others are."""
    written: dict[str, Any] = {"text": "", "count": 0, "share": 1.5, "is": False, "several": ("a", "b")}
    files = RunFiles(tmp_path, problems=Problems())
    files.note_end(ReadableSpan("run x", SpanContext(1, 2, is_remote=False), attributes=written, start_time=1))
    files.close()
    (step,) = RunLines(tmp_path).steps()
    assert step.attributes == written


def test_a_folder_without_files_tells_nothing(tmp_path: Path) -> None:
    """OpenTelemetry may be switched off."""
    lines = RunLines(tmp_path)
    assert (lines.steps(), lines.logs(), lines.skipped, left_open(tmp_path)) == ([], [], 0, None)

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.model.failures import Failure
from spark_app.eventlog.parse.log_files import logs_in
from spark_app.eventlog.python_functions import FOLDER, MOST_BYTES, MOST_FUNCTIONS, MOST_LINES
from spark_app.eventlog.spans import SparkSpan
from spark_app.telemetry.spark_names import PYTHON_SPAN, TASK_SPAN
from tests.eventlogs import walking
from tests.unit.eventlog.log import Line, job, job_ended, stage, started, task
from tests.unit.eventlog.logs import OPTIONS, text

LAUNCHED: Final = 2200
LINE: Final[dict[str, Any]] = {
    "task": 4, "function": "cleaned", "error": None, "batches": 2, "rows_in": 20, "rows_out": 15,
    "began_ms": LAUNCHED + 10, "ended_ms": LAUNCHED + 60, "wall_us": 40_000, "cpu_us": 2600,
}  # fmt: skip
# Tasks of the same length: the first five have spans.
PROGRAM: Final[list[Line]] = [
    started(), job(0, [0]), stage(0), *(task(number, 0) for number in range(8)), stage(0, end=2900), job_ended(0),
]  # fmt: skip


def left(events: Path, *lines: bytes | dict[str, Any], application: str = "app-1") -> Path:
    """What workers left of stage 0; bytes as they are."""
    file = events / FOLDER / application / "0.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as spool:
        spool.writelines(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return file


def function_spans(events: Path, program: list[Line] = PROGRAM) -> list[SparkSpan]:
    """The spans of functions beside a log; each is below a task."""
    (events / "app-1").write_text(text(*program))
    spans: list[SparkSpan] = []
    followed = LogProcessor(
        logs_in(events)["app-1"],
        on_span=lambda _, span: spans.append(span),
        is_crowded=lambda: False,
        thresholds=OPTIONS.thresholds,
        was_counted=False,
    )
    followed.read(float("inf"))
    followed.end()
    walking.assert_is_forest(followed.app, spans)
    tasks = {span.ids.span_id for span in spans if span.kind is TASK_SPAN}
    found = [span for span in spans if span.kind is PYTHON_SPAN]
    assert {span.ids.parent_id for span in found} <= tasks
    return found


def bytes_read() -> int:
    """How much this process has read so far."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


def test_a_function_is_below_its_task(tmp_path: Path) -> None:
    """With what the catalogue says of it, at the time of its calls."""
    left(tmp_path, LINE)
    (span,) = function_spans(tmp_path)
    assert (span.name, span.started, span.ended, span.failure) == ("python cleaned", 2210, 2260, None)
    assert span.attributes == {
        "spark.python.function": "cleaned",
        "spark.python.batches": 2,
        "spark.python.input.records": 20,
        "spark.python.output.records": 15,
        "spark.python.run_time": 40,
        "spark.python.cpu_time": 3,
        "spark.task.id": 4,
    }
    known = {attribute.name: attribute.type for attribute in PYTHON_SPAN.attributes}
    assert {name: type(value) for name, value in span.attributes.items()} == known


def test_lines_of_a_task_add_up(tmp_path: Path) -> None:
    """By function; what has no rows to take in has no such attribute, and an error is that of the whole."""
    scalar = LINE | {"function": "scored", "rows_in": None, "error": "LookupError"}
    left(tmp_path, LINE, scalar, LINE | {"began_ms": LAUNCHED + 5}, scalar | {"error": None})
    cleaned, scored = function_spans(tmp_path)
    assert cleaned.attributes["spark.python.input.records"] == 40
    assert (cleaned.started, cleaned.ended) == (LAUNCHED + 5, LAUNCHED + 60)
    assert scored.attributes["spark.python.batches"] == 4
    assert "spark.python.input.records" not in scored.attributes
    assert scored.failure == Failure("LookupError", "")


def test_only_tasks_that_are_told_have_functions(tmp_path: Path) -> None:
    """Whatever else the file holds."""
    left(tmp_path, *(LINE | {"task": number} for number in range(100)))
    assert sorted(span.attributes["spark.task.id"] for span in function_spans(tmp_path)) == [0, 1, 2, 3, 4]


def test_it_is_told_the_same_when_read_again(tmp_path: Path) -> None:
    """Ids are derived."""
    left(tmp_path, LINE, LINE | {"function": "scored"})
    assert function_spans(tmp_path) == function_spans(tmp_path)
    assert len({span.ids.span_id for span in function_spans(tmp_path)}) == 2


def test_a_function_stays_within_its_task(tmp_path: Path) -> None:
    """Clocks of hosts differ; what is too far off is of another application that has the id."""
    left(tmp_path, LINE | {"began_ms": LAUNCHED - 500, "ended_ms": LAUNCHED + 1000})
    left(tmp_path, LINE | {"function": "later", "began_ms": LAUNCHED + 60_000, "ended_ms": LAUNCHED + 60_000})
    left(tmp_path, LINE | {"function": "earlier", "began_ms": 0, "ended_ms": 100})
    (span,) = function_spans(tmp_path)
    assert (span.started, span.ended) == (LAUNCHED, LAUNCHED + 100)


@pytest.mark.parametrize(
    "noise",
    [
        b'{"task":4,"func',
        b"\xff\xfe\n",
        b'{"task":4}\n',
        b"null\n",
        json.dumps(LINE | {"rows_out": -1}).encode() + b"\n",
        json.dumps(LINE | {"wall_us": 2**80}).encode() + b"\n",
        json.dumps(LINE | {"ended_ms": 0}).encode() + b"\n",
        b"x" * 10_000 + b"\n",
    ],
    ids=["torn", "no text", "other fields", "no object", "negative", "too large", "backwards", "long"],
)
def test_what_is_no_line_is_skipped(tmp_path: Path, noise: bytes) -> None:
    """A worker may be killed at any moment, and anybody may write there."""
    left(tmp_path, LINE, noise if noise.endswith(b"\n") else noise + b"\n", LINE)
    assert [span.attributes["spark.python.batches"] for span in function_spans(tmp_path)] == [4]


def test_what_is_read_is_bounded(tmp_path: Path) -> None:
    """Functions of a task, lines and bytes of a file."""
    left(tmp_path, *(LINE | {"function": f"f{number}"} for number in range(2 * MOST_FUNCTIONS)))
    assert len(function_spans(tmp_path)) == MOST_FUNCTIONS
    file = left(tmp_path, application="app-1")
    for noise in (b"\n" * MOST_LINES, b"\0" * MOST_BYTES + b"\n"):
        file.write_bytes(noise + json.dumps(LINE).encode() + b"\n")
        assert function_spans(tmp_path) == []


def test_a_file_that_is_none_has_no_lines(tmp_path: Path) -> None:
    """Nothing waits for a pipe that nobody writes to, and an id leads nowhere else."""
    os.mkfifo(left(tmp_path).with_name("1.jsonl"))
    one = [stage(1), task(9, 1), stage(1, end=2900)]
    assert function_spans(tmp_path, [*PROGRAM[:1], job(0, [0, 1]), *one, job_ended(0)]) == []
    (tmp_path / "0.jsonl").write_text(json.dumps(LINE) + "\n")
    for led in ("..", "../..", str(tmp_path), ""):
        assert function_spans(tmp_path, [started() | {"App ID": led}, *PROGRAM[1:]]) == []


def test_a_stage_that_never_ended_has_its_functions(tmp_path: Path) -> None:
    """Of the tasks that did."""
    left(tmp_path, LINE)
    assert [span.name for span in function_spans(tmp_path, PROGRAM[:-2])] == ["python cleaned"]


def test_a_task_that_ends_after_its_stage_has_its_functions(tmp_path: Path) -> None:
    """Its span comes late, with theirs."""
    late = task(8, 0, error="lost")
    left(tmp_path, LINE | {"task": 8, "error": "KeyError"})
    (span,) = function_spans(tmp_path, [*PROGRAM[:-1], late, PROGRAM[-1]])
    assert span.failure == Failure("KeyError", "")


def test_tasks_that_end_after_their_stage_do_not_read_its_file_again(tmp_path: Path) -> None:
    """A file may have 48 MiB, and each of fifty tasks may come late; what a worker adds meanwhile is read."""
    late = [task(number, 0, error="lost") for number in range(8, 28)]
    calls = [LINE | {"task": number} for number in range(8, 28)]
    filler = b'{"task":99}'.ljust(1023) + b"\n"
    file = left(tmp_path, *calls[:10], *[filler] * 1024, *calls[10:])
    before = bytes_read()
    spans = function_spans(tmp_path, [*PROGRAM[:-1], *late, PROGRAM[-1]])
    assert len(spans) == 20
    assert bytes_read() - before < 2 * file.stat().st_size


def test_the_folder_is_no_log(tmp_path: Path) -> None:
    """It is hidden."""
    left(tmp_path, LINE)
    assert function_spans(tmp_path)
    assert list(logs_in(tmp_path)) == ["app-1"]

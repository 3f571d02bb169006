"""Observed functions do what they did before, and have spans below their tasks: `tests/eventlogs/observed.py`."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse.log_files import logs_in
from spark_app.eventlog.spans import SparkSpan
from spark_app.telemetry.spark_names import PYTHON_SPAN
from tests.eventlogs import observed, walking
from tests.eventlogs.observed import BATCH, KEYS, PARTITIONS, ROWS

# Of each partition as many batches as its rows need.
BATCHES: Final = PARTITIONS * -(-ROWS // PARTITIONS // BATCH)
# Rows in and out, and batches, of what was called with all rows.
EXPECTED: Final = {
    "map_arrow": (ROWS, 10 * BATCHES, BATCHES),
    "group": (ROWS, KEYS, KEYS),
    "group_with_key": (ROWS, KEYS, KEYS),
    "group_arrow": (ROWS, ROWS, KEYS),
    "cogroup": (ROWS + ROWS // 2, ROWS // 2, KEYS),
    "column": (ROWS, ROWS, BATCHES),
    "columns": (ROWS, ROWS, BATCHES),
    "pairs": (ROWS, ROWS, BATCHES),
    "total": (ROWS, KEYS, KEYS),
}


@dataclass(frozen=True)
class Left:
    """What the program said and left: its lines, and the spans of its log."""

    outcome: dict[str, Any]
    lines: list[dict[str, Any]]
    app: Application
    spans: list[SparkSpan]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """By one run of the program."""
    folder = tmp_path_factory.mktemp("functions")
    command = [sys.executable, observed.__file__, str(folder)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    files = sorted((folder / "the logs").glob(".python/*/*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return Left(json.loads(done.stdout), lines, *spans_of(folder / "the logs"))


def spans_of(folder: Path) -> tuple[Application, list[SparkSpan]]:
    """The spans of the followed log in a folder; another log there is empty."""
    (log,) = (log for log in logs_in(folder).values() if log.size())
    spans: list[SparkSpan] = []
    followed = LogProcessor(
        log,
        on_span=lambda _, span: spans.append(span),
        is_crowded=lambda: False,
        thresholds=load_thresholds(),
        was_counted=False,
    )
    followed.read(float("inf"))
    followed.end()
    return followed.app, spans


def test_results_and_errors_are_those_of_the_function(left: Left) -> None:
    """Of all kinds of functions; an error has its class and its text."""
    assert left.outcome["observed"] == left.outcome["plain"]
    assert left.outcome["plain"][1] == [
        ["PythonException", f"LookupError: no {BATCH + 10}"],
        ["PythonException", "KeyError: 'nothing'"],
    ]


@pytest.mark.parametrize("function", EXPECTED)
def test_all_that_it_did_is_counted(left: Left, function: str) -> None:
    """Over all tasks, with workers that had other tasks before; each task has one line."""
    lines = [line for line in left.lines if line["function"] == function]
    found = tuple(sum(line[name] for line in lines) for name in ("rows_in", "rows_out", "batches"))
    assert found == EXPECTED[function]
    assert max(Counter(line["task"] for line in lines).values()) == 1
    if EXPECTED[function][2] == BATCHES:
        assert len(lines) == PARTITIONS
    assert all(line["wall_us"] > 0 and line["began_ms"] <= line["ended_ms"] for line in lines)


def test_a_function_is_below_each_task_that_is_told(left: Left) -> None:
    """0 orphans; of a stage whose tasks all called it, all that have a span have it."""
    walking.assert_is_forest(left.app, left.spans)
    by_id = {span.ids.span_id: span for span in left.spans}
    by_name: dict[str, list[SparkSpan]] = defaultdict(list)
    for span in left.spans:
        if span.kind is PYTHON_SPAN:
            by_name[span.name].append(span)
    assert {by_id[span.ids.parent_id or 0].kind.prefix for spans in by_name.values() for span in spans} == {"task"}
    assert set(by_name) >= {f"python {name}" for name in EXPECTED}
    for name in ("map_arrow", "column", "columns", "pairs"):
        assert [span.attributes["spark.python.input.records"] for span in by_name[f"python {name}"]] == [100] * 5


def test_an_error_is_that_of_the_function(left: Left) -> None:
    """Each attempt that it broke says which."""
    failures = {(span.name, span.failure.type) for span in left.spans if span.kind is PYTHON_SPAN and span.failure}
    assert failures == {("python failing", "LookupError"), ("python failing_column", "KeyError")}


def test_a_worker_has_nothing_of_ours(left: Left) -> None:
    """Neither the program, nor an exporter, nor a thread; nor does it look for the module."""
    assert len(left.outcome["within"]) == BATCHES
    assert {json.dumps(found) for found in left.outcome["within"]} == {json.dumps([[], ["MainThread"]])}


def test_a_line_that_cannot_be_written_changes_nothing(left: Left) -> None:
    """The folder is a file."""
    assert left.outcome["unwritable"] == [left.outcome["plain"][0]["map_pandas"]]


def test_lines_go_with_their_log(left: Left) -> None:
    """Of applications whose log is there they are kept; whatever lists the logs sees none of them."""
    assert left.outcome["spools"] == sorted(["app-0", left.app.id or ""])

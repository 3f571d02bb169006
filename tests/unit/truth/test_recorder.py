"""A recorded run is timed by its log; the marks of the place become the truth, and do not stay in the log."""

import json
from typing import Any

import pytest
import zstandard

from truth import recorder
from truth.answers import Where
from truth.declared import Pair
from truth.recorder import PLACE, Run


def job(number: int, stages: list[int], **properties: str) -> dict[str, Any]:
    """The start of a job."""
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": stages, "Properties": properties}


@pytest.fixture
def run(tmp_path: Any) -> Run:
    """A run with two jobs, one of which is the place of the cause."""
    made = Run(Pair("pair", ("spill",), "sql"), "planted", tmp_path)
    marked = {PLACE: "plans.py:7", "spark.sql.execution.id": "4"}
    ends = [
        {"Event": f"SparkListenerApplication{name}", "Timestamp": at} for name, at in (("Start", 500), ("End", 2600))
    ]
    made.lines = [ends[0], job(0, [0]), job(1, [1, 2], **marked), ends[1]]
    return made


def test_the_place_is_of_the_marked_jobs(run: Run) -> None:
    """Their query, their stages and the line of the mark."""
    assert run.place() == Where(queries=[4], stages=[1, 2], lines=["plans.py:7"])


def test_the_log_that_is_kept_has_no_mark(run: Run) -> None:
    """A tool would find the place by it."""
    lines = zstandard.ZstdDecompressor().decompress(run.packed()).splitlines()
    assert [json.loads(line)["Event"] for line in lines] == [line["Event"] for line in run.lines]
    assert PLACE.encode() not in b"".join(lines)
    assert b"spark.sql.execution.id" in b"".join(lines)


def test_a_large_log_is_kept_without_the_accumulables_of_tasks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one has them."""
    task = {"Event": "SparkListenerTaskEnd", "Task Info": {"Accumulables": [{"ID": 1}], "Task ID": 3}}
    run.lines.append(task)
    decompress = zstandard.ZstdDecompressor().decompress
    assert b"Accumulables" in decompress(run.packed())
    monkeypatch.setattr(recorder, "MAX_BYTES", 1)
    assert b"Accumulables" not in decompress(run.packed())


def test_a_run_takes_as_long_as_its_application(run: Run) -> None:
    """The start of Python and of the JVM is no part of it."""
    assert run.ms == 2100


@pytest.mark.parametrize(
    ("planted_ms", "quiet_ms", "enough"), [(12_000, 7_000, True), (11_000, 7_000, False), (200_000, 193_000, False)]
)
def test_a_planted_cause_costs_five_seconds_and_a_twentieth(planted_ms: int, quiet_ms: int, *, enough: bool) -> None:
    """Less is no cause that anybody would look for."""
    assert recorder.costs_enough(planted_ms, quiet_ms) is enough

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from spark_app.eventlog.document import StageKey
from spark_app.report import parts, values
from spark_app.report.sections.replays import PathStep


@pytest.mark.parametrize(
    ("name", "number", "shown"),
    [
        ("longest_task_ms", 1234.5678, 1235),
        ("spilled_bytes", 7.0, 7),
        ("gc_ratio", 0.123456, 0.1235),
        ("mean_rows", 3.14159, 3.14),
        ("files", 12.0, 12),
    ],
)
def test_numbers_are_as_exact_as_their_unit(name: str, number: float, shown: float) -> None:
    """No digits that nobody measured; whole numbers have no point."""
    assert json.dumps(values.evidence({name: number})) == json.dumps({name: shown})


def test_what_is_no_number_is_left_out() -> None:
    """JSON has neither infinity nor NaN."""
    assert values.evidence({"a": float("nan"), "b": float("inf"), "c": 1.0}) == {"c": 1}
    assert (values.ratio(float("nan")), values.whole(float("inf"))) == (None, None)


def test_times_before_the_start_are_0() -> None:
    """A clock that was set back makes no negative duration."""
    assert values.whole(-5.0) == 0


def test_a_document_is_made_of_an_object_by_the_types_of_its_fields() -> None:
    """Texts are masked and cut, numbers rounded; what the struct does not have stays out of it."""
    source = SimpleNamespace(
        id=3,
        attempt=1,
        name="load\npassword=hunter2 " + "n" * 1000,
        status="failed",
        error="boom password=hunter2\n\tat x.y(Z.java)",
        started=1000.4,
        duration_ms=-1.5,
        tasks=1,
        ended_tasks=1,
        failed_tasks=1,
        killed_tasks=0,
        task_times=(1, 2, 3, 4, 5, 6),
        data=None,
        gc_ratio=0.123456,
        of_the_page="more",
    )
    stage = values.document(parts.Stage, source)
    assert (stage.id, stage.attempt, stage.duration_ms, stage.gc_ratio) == (3, 1, 0, 0.1235)
    assert stage.name.startswith("load password=(redacted) nnn")
    assert (len(stage.name), stage.error) == (240, "boom password=(redacted)")
    assert stage.started == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert stage.task_times == parts.TaskTimes(1, 2, 3, 4, 5, 6)


def test_a_struct_of_the_domain_is_in_the_document_as_it_is() -> None:
    """With the milliseconds rounded and its texts masked; itself it stays as exact as it was."""
    step = PathStep("stage", -0.4, 12.6, None, StageKey(3, 1), None, "load\npassword=hunter2")
    shown = values.document(PathStep, step)
    assert shown == PathStep("stage", 0, 13, None, StageKey(3, 1), None, "load password=(redacted)")
    assert step.duration_ms == 12.6

from typing import Any

import pytest

from tests.unit.eventlog.diagnoses.plans import MINUTE, Node, application, found, node, ran

NEVER: dict[str, Any] = {"cost_ms": 0, "cost_ratio": 0}
PREVIOUS = "specifiedwindowframe(RowFrame, -5000, currentrow$())"


def window(frame: str = PREVIOUS, call: str = "avg(value#2)", rows: int = 1_000_000) -> Node:
    """A window of rows that a shuffle brings."""
    text = f"Window [{call} windowspecdefinition(sensor#1L, id#0L ASC NULLS FIRST, {frame}) AS mean#3], [sensor#1L]"
    below = node("Exchange", number_of_output_rows=rows)
    return node("Window", below, text=text, spill_size=1)


def judged(plan: Node, ms: int = MINUTE) -> list[Any]:
    """What the rule says of a stage whose only task takes so long."""
    lines = ran(1, plan, ms=ms)
    for line in lines:
        if line["Event"] == "SparkListenerTaskEnd":
            line["Task Metrics"]["Executor Run Time"] = ms
    return found(application(lines), "sliding_window", **NEVER)


def test_a_frame_of_thousands_of_rows_is_found() -> None:
    """Of a million rows with 5,001 each, a minute of tasks is 60 µs a row: what the frame explains whole."""
    (finding,) = judged(window())
    assert finding.text == (
        "Query 1 (Query 1): avg(value) over rowsBetween(-5000, 0) adds up 5,001 rows for each of 1,000,000 rows anew; "
        "the tasks of the window took 1 min 00 s, 60 µs a row"
    )
    assert "s is F.sum(...).over(w.rowsBetween(Window.unboundedPreceding, 0))" in finding.advice
    assert "s - F.coalesce(F.lag('s', 5001).over(w), F.lit(0))" in finding.advice
    assert "A mean is such a sum divided by such a count" in finding.advice
    assert 0 < (finding.cost_low_ms or 0) < (finding.cost_ms or 0)


def test_the_largest_value_of_a_frame_is_no_difference() -> None:
    """Blocks of rows are aggregated first."""
    (finding,) = judged(window(call="max(value#2)"))
    assert finding.advice.startswith("Aggregate blocks of rows first, as max for each minute")


@pytest.mark.parametrize(
    ("frame", "ms"),
    [
        ("specifiedwindowframe(RowFrame, unboundedpreceding$(), currentrow$())", MINUTE),
        ("specifiedwindowframe(RowFrame, -7, currentrow$())", MINUTE),
        ("specifiedwindowframe(RangeFrame, -5000, currentrow$())", MINUTE),
        (PREVIOUS, 10_000),
    ],
    ids=["grows", "small", "a range", "of small partitions"],
)
def test_other_frames_are_not(frame: str, ms: int) -> None:
    """Where a row takes 10 µs, its frame has not 5,001 rows: the partitions are smaller."""
    assert judged(window(frame), ms) == []

import json

import pytest

from spark_app.report.results import values


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


@pytest.mark.parametrize("milliseconds", [1e20, -1e20, float("nan")])
def test_a_time_that_no_calendar_has_is_null(milliseconds: float) -> None:
    """A broken log ends no command."""
    assert values.instant(milliseconds) is None

"""Charts draw what is known, where it is known, on a scale that does not mislead."""

from typing import Final

from spark_app.report import charts
from spark_app.report.charts import Step, Values
from spark_app.report.formatting import count
from spark_app.report.intervals import Interval

AXIS: Final = Interval(0, 100)


def values(*steps: Step, name: str = "in") -> Values:
    """A series."""
    return Values(name, "query", steps)


def test_values_that_touch_are_one_line() -> None:
    """Each as a step from its start to its end."""
    chart = charts.lines("Rows", count, [values(Step(0, 50, 5), Step(50, 100, 10))], AXIS)
    (series,) = chart.series
    assert (series.path, series.last, chart.high) == ("M0 58H500V16H1000", 10, 10)


def test_a_time_without_a_value_is_a_gap() -> None:
    """And not a line to 0, nor one across."""
    chart = charts.lines("Rows", count, [values(Step(0, 20, 5), Step(60, 100, 5))], AXIS)
    assert chart.series[0].path == "M0 16H200M600 16H1000"
    filled = charts.areas("Rows", count, [values(Step(0, 20, 5), Step(60, 100, 5))], AXIS)
    assert filled.series[0].path == "M0 100V16H200V100ZM600 100V16H1000V100Z"


def test_a_short_value_is_seen() -> None:
    """It is as wide as a line."""
    chart = charts.lines("Rows", count, [values(Step(50, 50.001, 5))], AXIS)
    assert chart.series[0].path == "M500 16H501"


def test_nothing_known_is_nothing_drawn() -> None:
    """A series without a value has no name in the chart either."""
    chart = charts.lines("Rows", count, [values(), values(Step(0, 1, 2), name="out")], AXIS)
    assert [series.name for series in chart.series] == ["out"]
    assert charts.lines("Rows", count, [values()], AXIS).series == []


def test_a_scale_begins_at_zero_where_zero_means_something() -> None:
    """Rates that differ little look alike; years behind the clock may differ by a minute."""
    near = [values(Step(0, 50, 990), Step(50, 100, 1000))]
    assert charts.lines("Rows", count, near, AXIS).low == 0
    assert charts.lines("Delay", count, near, AXIS, has_origin=False).low == 990
    assert charts.lines("Delay", count, [values(Step(0, 1, 1), Step(1, 2, 10))], AXIS, has_origin=False).low == 0


def test_values_are_stacked_from_the_first_on() -> None:
    """The whole is drawn first, behind the parts."""
    parts = [values(Step(0, 100, 3), name="work"), values(Step(0, 100, 1), name="planning")]
    whole, below = charts.stacked(parts)
    assert (whole.name, whole.steps[0].value) == ("planning", 4)
    assert (below.name, below.steps[0].value) == ("work", 3)


def test_a_limit_is_drawn_where_values_come_near_it() -> None:
    """One far above would press all else to the ground."""
    steps = [values(Step(0, 100, 5))]
    assert charts.areas("Time", count, steps, AXIS, limit=100).limit is None
    near = charts.areas("Time", count, steps, AXIS, limit=10)
    assert (near.limit, near.high) == ((16.0, "10"), 10)
    assert charts.areas("Time", count, steps, AXIS, limit=2).limit == (66.4, "2")


def test_a_chart_says_in_words_what_it_shows() -> None:
    """For those who do not see it."""
    chart = charts.lines("Rows", count, [values(Step(0, 50, 1234), Step(50, 100, 10))], AXIS)
    assert chart.label == "Rows: at most 1,234; last in 10"


def test_an_axis_without_length_draws_nothing_wrong() -> None:
    """As of one batch of no time."""
    chart = charts.lines("Rows", count, [values(Step(5, 5, 0))], Interval(5, 5))
    assert chart.series[0].path == "M0 100H1"

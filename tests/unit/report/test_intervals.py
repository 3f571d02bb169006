from spark_app.report import intervals
from spark_app.report.intervals import Interval


def test_gaps_are_what_no_interval_covers() -> None:
    """Overlapping intervals count once, and what lies outside the bounds not at all."""
    busy = [Interval(3, 6), Interval(4, 5), Interval(8, 20), Interval(-5, 1)]
    assert intervals.gaps(busy, Interval(0, 10)) == [Interval(1, 3), Interval(6, 8)]


def test_without_intervals_all_is_a_gap() -> None:
    """As in an application without tasks."""
    assert intervals.gaps([], Interval(2, 9)) == [Interval(2, 9)]

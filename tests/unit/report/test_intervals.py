from spark_app.report import intervals
from spark_app.report.intervals import Interval


def test_gaps_are_what_no_interval_covers() -> None:
    """Overlapping intervals count once, and what lies outside the bounds not at all."""
    busy = [Interval(3, 6), Interval(4, 5), Interval(8, 20), Interval(-5, 1)]
    assert intervals.gaps(busy, Interval(0, 10)) == [Interval(1, 3), Interval(6, 8)]


def test_without_intervals_all_is_a_gap() -> None:
    """As in an application without tasks."""
    assert intervals.gaps([], Interval(2, 9)) == [Interval(2, 9)]


def test_levels_are_means_over_equal_parts() -> None:
    """An interval that covers half a bucket counts half in it; nothing is lost or counted twice."""
    weighted = [(Interval(0, 5), 1), (Interval(5, 20), 4), (Interval(35, 99), 2)]
    assert intervals.levels(weighted, Interval(0, 40), buckets=4) == [2.5, 4.0, 0.0, 1.0]


def test_an_empty_period_has_no_levels() -> None:
    """An application that ended when it started has no chart."""
    assert intervals.levels([], Interval(1, 1), buckets=4) == []


def test_core_time_is_counted_within_bounds() -> None:
    """Only the part inside, times the cores."""
    assert intervals.within([(Interval(0, 10), 4), (Interval(8, 99), 2)], Interval(5, 10)) == 24

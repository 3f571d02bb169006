"""Curves of shares over shares."""

import pytest

from spark_app.annexes.model_page import curves
from spark_app.annexes.model_page.curves import Point


def test_a_curve_begins_at_the_lower_left() -> None:
    """SVG counts from the top; what is beyond an axis is drawn at its end."""
    assert curves.line([Point(0, 0), Point(0.25, 0.5), Point(2, -1)]) == "M0 1000L250 500L1000 1000"
    assert curves.place(Point(0.1, 0.2), top=0.2) == (500, 0)


@pytest.mark.parametrize(("points", "kept"), [(10, 10), (200, 200), (10_000, 200)])
def test_a_curve_keeps_its_ends(points: int, kept: int) -> None:
    """However many points are left out between them."""
    made = [Point(number, number) for number in range(points)]
    thin = curves.thinned(made, 200)
    assert (len(thin), thin[0], thin[-1]) == (kept, made[0], made[-1])


def test_a_curve_is_never_less_than_its_ends() -> None:
    """Also where a report has room for one point only."""
    assert curves.thinned([Point(0, 0), Point(1, 0), Point(1, 1)], 1) == [Point(0, 0), Point(1, 1)]


def test_axes_end_at_a_round_share_above_all_values() -> None:
    """A rare class fills its plot."""
    assert [curves.top_of(values) for values in ([0.034, 0.001], [0.3], [0.31], [1.0], [])] == [0.04, 0.3, 0.4, 1, 0.01]


def test_the_interval_of_a_share_is_wilsons() -> None:
    """Values of the R function `prop.test(10, 100, correct = FALSE)`; nothing is known without rows."""
    assert curves.wilson(10, 100) == pytest.approx((0.05522914, 0.17436566))
    assert curves.wilson(0, 20) == pytest.approx((0, 0.1611252))
    assert curves.wilson(0, 0) is None

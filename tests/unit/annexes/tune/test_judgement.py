import math

import pytest

from spark_app.annexes.tune.judgement import change


def test_the_change_is_that_of_the_mean_of_paired_ratios() -> None:
    """Pairs of a slow hour and of a quick one have the same ratio: no spread is left."""
    found = change([(10, 8), (100, 80), (20, 16)])
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((-0.2, -0.2, -0.2))
    assert found.helps


def test_the_interval_is_students_t_of_the_differences() -> None:
    """Worked by hand: logarithms of ratios with mean -0.2 and deviation 0.1, t(2) = 2.920."""
    found = change([(1, math.exp(-0.1)), (1, math.exp(-0.2)), (1, math.exp(-0.3))])
    assert found is not None
    half = 2.920 * 0.1 / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((math.exp(-0.2 - half) - 1, math.exp(-0.2 + half) - 1))


@pytest.mark.parametrize(
    "pairs",
    [
        [(10, 5), (10, 5)],
        [(10, 9.9), (10, 9.9), (10, 9.9)],
        [(10, 5), (10, 12), (10, 9)],
        [(10, 12), (10, 12), (10, 12)],
    ],
    ids=["too few", "too little", "within the noise", "slower"],
)
def test_what_may_be_luck_does_not_help(pairs: list[tuple[float, float]]) -> None:
    """Nor does what saves too little to be worth a setting."""
    found = change(pairs)
    assert found is not None
    assert not found.helps


def test_one_pair_has_no_bounds_and_none_no_change() -> None:
    """So has a figure that was not measured."""
    found = change([(10, 5)])
    assert found is not None
    assert (found.mean, found.low, found.high, found.helps) == (-0.5, -1.0, math.inf, False)
    assert change([(0, 5)]) is None


def test_what_is_slightly_slower_within_bounds_is_no_slower() -> None:
    """5 % at most, with certainty."""
    slightly, more = change([(100, 102)] * 3), change([(100, 107)] * 3)
    assert slightly is not None
    assert more is not None
    assert (slightly.is_no_slower, more.is_no_slower) == (True, False)

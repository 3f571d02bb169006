import pytest

from spark_app.stack_samples.counts import Tally, interval


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0, 3.689), (1, 0.025, 5.572), (5, 1.623, 11.668), (100, 81.364, 121.627)]
)
def test_the_interval_is_that_of_poisson(count: int, low: float, high: float) -> None:
    """To 3 % of the exact one (Garwood 1936), from one sample on."""
    assert interval(count) == pytest.approx((low, high), rel=0.03, abs=0.02)


def test_a_tally_has_the_interval_of_its_samples() -> None:
    """Of the time that one stands for."""
    assert Tally(5, 100).interval_ms() == pytest.approx((32, 233), rel=0.03)
    assert Tally() + Tally(2, 3.0) == Tally(2, 3.0)

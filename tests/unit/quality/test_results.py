from spark_app.quality.results import FRESHNESS, ExpectationResult


def test_a_figure_is_shown_in_its_own_unit() -> None:
    """Freshness is in seconds, all others are shares; what has no limit may be anything."""
    assert ExpectationResult(FRESHNESS, 90_000, 86_400).formatted() == ("90,000 s", "86,400 s")
    assert ExpectationResult("a.range", 0.01234, 0.01, 1_234, 100_000).formatted() == ("1.2340%", "1.0000%")
    assert ExpectationResult("a.range", 0.01234, None, 1_234, 100_000).formatted() == ("1.2340%", "any")


def test_only_what_is_beyond_a_limit_is_breached() -> None:
    """The limit itself is kept, and without one nothing can be broken too much."""
    assert [ExpectationResult("a", 0.1, limit).is_breached for limit in (0.05, 0.1, None)] == [True, False, False]

from spark_app.engine.expectation_monitor import ExpectationMonitor


def test_each_batch_is_judged_and_all_are_summed() -> None:
    """A breach is of one batch; the record of a run has the sums."""
    monitor = ExpectationMonitor("events", {"user_id.pattern": 0.1}, is_strict=False)
    (good,) = monitor.results({"expectations events": {"checked": 100, "user_id.pattern": 10}})
    (bad,) = monitor.results({"expectations events": {"checked": 10, "user_id.pattern": 2}})
    assert (good.is_breached, bad.is_breached) == (False, True)
    (total,) = monitor.totals()
    assert (total.violations, total.total, total.value) == (12, 110, 12 / 110)


def test_a_batch_without_rows_has_no_results() -> None:
    """No share of nothing, and no totals before the first row."""
    monitor = ExpectationMonitor("events", {"user_id.pattern": 0.1}, is_strict=False)
    assert monitor.results({}) == monitor.results({"expectations events": {"checked": 0}}) == monitor.totals() == []

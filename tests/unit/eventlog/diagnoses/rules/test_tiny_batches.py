from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found


def test_tiny_batches_that_come_rarely_are_no_burden() -> None:
    """Somebody has chosen a long trigger already."""
    assert found(application(batch(number, at=20 * number, rows=5) for number in range(20))) == {}


def test_overhead_of_tiny_batches_is_told_once() -> None:
    """By the rule that knows what to change."""
    durations = {"addBatch": 200, "queryPlanning": 500}
    batches = [batch(number, seconds=0.7, rows=3, durations_ms=durations) for number in range(20)]
    assert set(found(application(batches))) == {"tiny_batches"}

from collections.abc import Sequence

import pytest

from spark_app.vocabulary.spark_progress import Progress
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found, source


def test_a_few_long_batches_are_none_of_many() -> None:
    """As when a file is large."""
    batches = [batch(number, at=2 * number, seconds=1.5 if number % 10 == 5 else 0.4) for number in range(40)]
    assert found(application(batches, trigger_ms=1000)) == {}


def lagging(lags: Sequence[int]) -> list[Progress]:
    """Batches of 5000 rows that leave so much."""
    return [batch(number, sources=[source(5000, lag)]) for number, lag in enumerate(lags)]


def test_a_lag_that_grows_costs_the_time_to_read_it() -> None:
    """At the speed of the query while it runs: 5000 rows in 0.4 s."""
    finding = found(application(lagging(range(0, 40_000, 2000))))["falling_behind"]
    assert finding.numbers["lag_growth_records"] == 38_000
    assert finding.cost_ms == pytest.approx(38_000 / 12_500 * 1000)


@pytest.mark.parametrize(
    "lags",
    [
        [1_000_000] * 20,
        list(range(40_000, 0, -2000)),
        list(range(0, 2000, 100)),
        [0, 30_000] * 10,
    ],
    ids=["steady", "catching up", "a little", "up and down"],
)
def test_a_lag_that_does_not_grow_is_none(lags: Sequence[int]) -> None:
    """However large it is."""
    assert "falling_behind" not in found(application(lagging(lags)))


def test_a_lag_of_batches_without_times_is_not_judged() -> None:
    """A progress that lacks `batchDuration` and `triggerExecution`, as in a damaged log, has no speed."""
    lags = range(0, 40_000, 2000)
    batches = [
        batch(n, seconds=0, sources=[source(5000, lag)], durations_ms={"addBatch": 20}) for n, lag in enumerate(lags)
    ]
    assert "falling_behind" not in found(application(batches))


def test_batches_that_grow_without_a_pause_fall_behind() -> None:
    """As of a source that does not say what it has."""
    ends, batches = 0.0, []
    for number in range(20):
        seconds = 0.5 * 1.2**number
        batches.append(batch(number, at=ends, seconds=seconds, rows=round(10_000 * seconds)))
        ends += seconds
    assert "more arrives than it can read" in found(application(batches))["falling_behind"].text


def test_batches_that_grow_with_pauses_keep_up() -> None:
    """There was more to read, and time to read it."""
    batches = [batch(number, at=60 * number, seconds=1 + number, rows=5000 * (1 + number)) for number in range(20)]
    assert found(application(batches)) == {}


def test_batches_without_rows_do_not_make_the_others_small() -> None:
    """Spark runs them to move a watermark."""
    batches = [batch(number, rows=0 if number % 2 else 1500) for number in range(40)]
    assert found(application(batches)) == {}

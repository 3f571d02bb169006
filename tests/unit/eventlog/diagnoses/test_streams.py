"""Rules about batches fire on what their text says, and not on what looks like it."""

from collections.abc import Sequence

import pytest

from spark_app.telemetry.spark_progress import Progress
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, event_time, found, source


def test_batches_are_longer_than_a_trigger_that_a_property_tells() -> None:
    """The first batch of the run does not count; the cost is what the others took longer."""
    app = application([batch(2 * number, seconds=1.5) for number in range(11)], trigger_ms=1000)
    finding = found(app)["batch_longer_than_trigger"]
    assert (finding.numbers["late_batches"], finding.numbers["trigger_ms"], finding.cost_ms) == (10, 1000, 5000)
    assert "as the starts" not in finding.text


@pytest.mark.parametrize(("batches", "is_late"), [(2, False), (3, True), (4, True)])
def test_few_long_batches_are_late_where_two_are(batches: int, *, is_late: bool) -> None:
    """As many as of ten batches, where the share is a fifth: 35 s each at a trigger of five, but for the first."""
    app = application([batch(n, at=35 * n, seconds=35) for n in range(batches)], trigger_ms=5000)
    assert ("batch_longer_than_trigger" in found(app)) == is_late


def test_batches_without_a_trigger_are_not_too_long() -> None:
    """Each starts when the one before it has ended."""
    app = application(batch(number, at=2 * number, seconds=2) for number in range(20))
    assert "batch_longer_than_trigger" not in found(app)


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


def watermarks(levels: Sequence[int | None]) -> list[Progress]:
    """Batches whose rows get newer by half an hour each, with watermarks in minutes."""
    return [
        batch(number, event_time=event_time(30 * number, level), sources=[source(3000), source(0, name="clicks")])
        for number, level in enumerate(levels)
    ]


def test_a_watermark_that_stands_still_names_the_idle_source() -> None:
    """And what holds it."""
    finding = found(application(watermarks([None, *[20] * 14])))["stalled_watermark"]
    assert "did not move in 14 batches" in finding.text
    assert "no rows came from clicks" in finding.text
    assert finding.cost_ms is None


def test_a_watermark_that_never_was_stands_still_too() -> None:
    """A source has brought nothing yet."""
    assert "stalled_watermark" in found(application(watermarks([None] * 12)))


@pytest.mark.parametrize(
    "levels", [[None, *range(0, 570, 30)], [None, *[20] * 6, *range(20, 320, 30)]], ids=["moves", "stood for a while"]
)
def test_a_watermark_that_moves_is_none(levels: Sequence[int | None]) -> None:
    """It lags by one batch, as any does."""
    assert "stalled_watermark" not in found(application(watermarks(levels)))


def test_a_watermark_stands_still_with_its_rows() -> None:
    """Nothing newer came."""
    batches = [batch(number, event_time=event_time(30, 20)) for number in range(20)]
    assert "stalled_watermark" not in found(application(batches))


def test_tiny_batches_that_come_rarely_are_no_burden() -> None:
    """Somebody has chosen a long trigger already."""
    assert found(application(batch(number, at=20 * number, rows=5) for number in range(20))) == {}


def test_batches_without_rows_do_not_make_the_others_small() -> None:
    """Spark runs them to move a watermark."""
    batches = [batch(number, rows=0 if number % 2 else 1500) for number in range(40)]
    assert found(application(batches)) == {}


def test_overhead_names_its_largest_part() -> None:
    """And costs what it took more than the work."""
    durations = {"triggerExecution": 900, "addBatch": 200, "queryPlanning": 500, "walCommit": 100}
    finding = found(application(batch(number, seconds=0.9, durations_ms=durations) for number in range(20)))
    assert finding["batch_overhead"].cost_ms == 20 * 400
    assert finding["batch_overhead"].advice.startswith("queryPlanning is planning: ")


def test_overhead_of_tiny_batches_is_told_once() -> None:
    """By the rule that knows what to change."""
    durations = {"addBatch": 200, "queryPlanning": 500}
    batches = [batch(number, seconds=0.7, rows=3, durations_ms=durations) for number in range(20)]
    assert set(found(application(batches))) == {"tiny_batches"}

"""A query that runs for months is judged soon, and then ever later, by the batches since the last time."""

from spark_app.eventlog.bridge.stream_periods import FIRST_MS, PERIOD_MS, StreamPeriods
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.stream_queries import StreamQuery
from spark_app.eventlog.model.streams import Batch, BatchKey
from tests.unit.eventlog.diagnoses.stream_cases import batch

FIRST, BATCHES = FIRST_MS // 1000, PERIOD_MS // 1000


def judged(rows: list[int]) -> tuple[list[tuple[int, Finding]], list[Finding]]:
    """The findings after each batch of a second, with its number, and those at the end."""
    app = Application("app-1")
    query = app.streams.queries["q"] = StreamQuery("q")
    periods, found = StreamPeriods(app, Thresholds()), []
    for number, count in enumerate(rows):
        progress = batch(number, rows=count)
        query.add(progress, None)
        ended = Batch(BatchKey("q", "r", number), 0, 0, progress=progress)
        found += [(number, finding) for finding in periods.ended(ended)]
    return found, periods.rest()


def test_a_trouble_that_lasts_is_told_every_period() -> None:
    """First after five minutes, then after as long as it has run, at most a quarter of an hour.

    Each time with the batches of the period alone, so that costs add up to the truth.
    """
    found, rest = judged([5] * (3 * BATCHES + 100))
    assert [number for number, _ in found] == [FIRST, 2 * FIRST + 2, 4 * FIRST + 6, 4 * FIRST + BATCHES + 7]
    assert sum(finding.numbers["batches"] for finding in (*(each for _, each in found), *rest)) == 3 * BATCHES + 100


def test_a_trouble_of_the_past_is_told_no_more() -> None:
    """And that of now is not hidden by weeks that were well."""
    found, rest = judged([5000] * 3 * BATCHES + [5] * 2 * BATCHES)
    assert {finding.rule for _, finding in found} == {"tiny_batches"}
    assert min(number for number, _ in found) > 3 * BATCHES
    found, rest = judged([5] * (FIRST + 1) + [5000] * 3 * BATCHES)
    assert [number for number, _ in found] == [FIRST]
    assert rest == []


def test_a_batch_that_failed_is_not_judged() -> None:
    """Spark reports nothing about it."""
    app = Application("app-1")
    query = app.streams.queries["q"] = StreamQuery("q")
    periods = StreamPeriods(app, Thresholds())
    for number in range(2 * BATCHES):
        query.add(batch(number, rows=5), None)
        assert periods.ended(Batch(BatchKey("q", "r", number), 0, 0, is_stopped=True)) == []
    assert periods.rest() == []

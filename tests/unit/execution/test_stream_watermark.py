import datetime
from typing import Any, Final

from spark_app.execution.stream_watermark import WatermarkWatch
from spark_app.vocabulary.spark_progress import Progress
from tests.unit.vocabulary.stream_progresses import progress

START: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
DELAY: Final = 30


def batch(number: int, watermark: float | None, *, mean: float | None = None, newest: float | None = None) -> Progress:
    """A micro-batch of some minute after midnight, whose rows have event times of minutes after midnight."""
    times = {"watermark": watermark, "avg": mean, "max": mean if newest is None else newest}
    texts = {name: text(minute) for name, minute in times.items() if minute is not None}
    return progress(batchId=number, timestamp=text(number), batchDuration=0, eventTime=texts)


def text(minute: float) -> str:
    """An instant as Spark writes it."""
    return f"{START + datetime.timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S}.000Z"


def messages(*batches: Progress) -> list[str]:
    """What is said about micro-batches."""
    watch = WatermarkWatch("streaming.events")
    return [line for each in batches for line in watch.progressed(each)]


def test_a_watermark_that_follows_its_rows_is_not_worth_a_word() -> None:
    """In time, after a pause, and where a backlog is worked off faster than it was made."""
    assert messages(batch(0, None, mean=0)) == []
    assert messages(*(batch(minute, minute - DELAY, mean=minute) for minute in range(1, 60))) == []
    assert messages(batch(1, -DELAY, mean=0), batch(300, -DELAY, mean=300), batch(301, 270, mean=301)) == []
    backlog = [batch(minute, 600 * minute - 9_000, mean=600 * minute - 8_100) for minute in range(1, 10)]
    assert messages(*backlog) == []


def test_a_watermark_ahead_of_the_clock_is_said_once_until_the_clock_has_reached_it() -> None:
    """Before a row of the next micro-batch is dropped, and though none is read."""
    line, then = messages(batch(1, -29, mean=1), batch(2, 1_442), batch(3, 1_442, mean=2), batch(4, 1_442, mean=3))
    assert line.startswith("streaming.events: its watermark, 2026-01-02 00:02:00Z, is 24 h 00 min ahead of the clock")
    assert "with earlier event times are dropped as late" in line
    assert "3 rows of it were dropped" in then
    ahead = [batch(1, 20), batch(2, 20), batch(21, 20), batch(22, 50)]
    assert len(messages(*ahead)) == 2


def test_rows_that_a_watermark_has_passed_are_said_once() -> None:
    """With how far it jumped, and how many were dropped; one late row among others is no news."""
    jump = [batch(3_000, 0, mean=5), batch(3_001, 1_970, mean=3), batch(3_002, 1_970, mean=4)]
    (line,) = messages(*jump)
    assert "rows of micro-batch 3001 are late: their event time is 2026-01-01 00:03:00Z on average" in line
    assert "it moved by 32 h 50 min in 1 min 00 s; 3 rows of it were dropped" in line
    assert len(messages(*jump, batch(3_003, 1_970, mean=1_970), batch(3_004, 1_970, mean=4))) == 2


def observed(**newest: float | None) -> dict[str, Any]:
    """The newest records of topics."""
    return {f"input {topic}": {"newest": value} for topic, value in newest.items()}


def test_a_watermark_that_stands_still_is_said_once_with_the_silent_topic() -> None:
    """Also before it has ever moved; it is said again after it moved, and stands again."""

    def quiet(minute: int, watermark: float | None) -> Progress:
        found = batch(minute, watermark, mean=minute)
        found.observed = observed(impressions=1.0, clicks=None)
        return found

    (line,) = messages(*(quiet(minute, None) for minute in range(20)))
    assert "its watermark stands still while event time moved on by 5 min 00 s: no records come from clicks" in line
    (first, second) = messages(*(quiet(minute, 5 if minute > 40 else 0) for minute in range(30, 60)))
    assert "stands still at 2026-01-01 00:00:00Z while" in first
    assert "stands still at 2026-01-01 00:05:00Z while" in second

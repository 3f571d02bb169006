from collections.abc import Sequence

import pytest

from spark_app.vocabulary.spark_progress import Progress
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, event_time, found, source


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

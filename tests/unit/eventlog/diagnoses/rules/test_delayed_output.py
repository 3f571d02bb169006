from typing import Any

import pytest

from spark_app.vocabulary.spark_progress import Progress, SinkProgress
from tests.unit.eventlog.diagnoses.stream_cases import application, batch, event_time, found, state


def batches(number: int = 12, *, delay: int = 120, removed: int | None = 0, **fields: Any) -> list[Progress]:
    """Batches of events a minute newer each, with a watermark some minutes behind them, and aggregates that wait."""

    def known(each: int) -> dict[str, Any]:
        return {"sink": SinkProgress(rows=0), "event_time": event_time(200 + each, 200 + each - delay)} | fields

    states = [state(50 * (each + 1), name="stateStoreSave", removed=removed) for each in range(number)]
    return [batch(each, state=[states[each]], **known(each)) for each in range(number)]


def test_a_sink_that_waits_for_the_watermark_is_found() -> None:
    """With what waits, and how far the watermark is behind; nothing is slow, so that it has no cost."""
    finding = found(application(batches()))["delayed_output"]
    assert finding.text == (
        "Streaming query orders: has written nothing in 12 batches with rows: 600 aggregates wait in its state, and "
        "the watermark is 2 h 00 min behind the newest event, as withWatermark says"
    )
    assert finding.cost_ms is None


@pytest.mark.parametrize(
    "others",
    [
        batches(delay=10),
        batches(5),
        batches(removed=3),
        batches(sink=SinkProgress(rows=50)),
        batches(sink=None),
        [batch(each, event_time=event_time(200 + each, 80 + each), sink=SinkProgress(rows=0)) for each in range(12)],
        batches(event_time=event_time(220, 20)),
    ],
    ids=["a short delay", "few batches", "windows written", "rows written", "mode not known", "no state", "stalled"],
)
def test_a_stream_that_writes_or_may_is_not(others: list[Progress]) -> None:
    """A delay of minutes, windows that have closed, and a sink that does not count in a mode that nobody knows."""
    assert "delayed_output" not in found(application(others))

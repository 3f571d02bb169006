"""Says once when the watermark of a streaming query is ahead of the clock, leaves rows behind, or stands still."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from spark_app.formatting import duration, quantity, timestamp
from spark_app.vocabulary.spark_progress import Progress

JUMP_MS: Final = 600_000
"""A watermark jumps that moves by so much more than the time that passed meanwhile."""
STALLED_MS: Final = 300_000
STALLED_BATCHES: Final = 3
"""A watermark stands still while event time moves on by so much, in so many micro-batches with rows."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RUNBOOK: Final = "see StreamLateRows in docs/runbook.md"


@dataclass
class _Stall:
    """Micro-batches with rows and one watermark.

    Attributes:
        watermark: It; None before the first.
        first, newest: The highest event time in the first of them, and in all.
        batches: How many.
        read: The topics that had records.
    """

    watermark: int | None
    first: int
    newest: int
    batches: int = 0
    read: set[str] = field(default_factory=set)


@dataclass
class WatermarkWatch:
    """Looks at the micro-batches of one query, in their order.

    What is said holds until it ends, and is said again the next time.

    Attributes:
        query: `streaming.events`.
    """

    query: str
    _before: Progress | None = None
    _jump: str = ""
    _is_ahead: bool = False
    _is_behind: bool = False
    _stall: _Stall | None = None
    _is_stalled: bool = False

    def progressed(self, progress: Progress) -> list[str]:
        """What has begun to be wrong with a micro-batch, in lines that say what it drops or holds, and what to do."""
        self._note_jump(progress)
        lines = [self._ahead(progress), self._behind(progress), self._stalled(progress)]
        self._before = progress
        return [line for line in lines if line]

    def _note_jump(self, progress: Progress) -> None:
        before = self._before
        if before is None or before.watermark is None or progress.watermark is None:
            return
        moved, passed = progress.watermark - before.watermark, progress.ended - before.ended
        if moved > passed + JUMP_MS:
            self._jump = f"; it moved by {duration(moved)} in {duration(passed)}"

    def _ahead(self, progress: Progress) -> str:
        """The line about a watermark that the clock has not reached: rows of now are late."""
        watermark = progress.watermark
        if watermark is None:
            return ""
        was_ahead, self._is_ahead = self._is_ahead, watermark > progress.ended
        if not self._is_ahead or was_ahead:
            return ""
        return (
            f"{self.query}: its watermark, {_instant(watermark)}, is {duration(watermark - progress.ended)} ahead of "
            "the clock, since an event of the future was accepted: rows with earlier event times are dropped as late. "
            f"Bound event times with stream.event_time_after_max, then start the query over; {_RUNBOOK}"
        )

    def _behind(self, progress: Progress) -> str:
        """The line about a micro-batch that the watermark had passed before it was read."""
        mean, watermark = progress.mean_event, progress.watermark
        if mean is None:
            return ""
        was_behind, self._is_behind = self._is_behind, watermark is not None and mean < watermark
        if watermark is None or not self._is_behind or was_behind:
            return ""
        late = progress.rows_late
        dropped = f"{quantity(late, 'row')} of it were dropped" if late else "they are dropped"
        return (
            f"{self.query}: rows of micro-batch {progress.batch} are late: their event time is {_instant(mean)} on "
            f"average, its watermark {_instant(watermark)}{self._jump}; {dropped}. Either one event is ahead of all "
            f"others, or its producer was behind: {_RUNBOOK}"
        )

    def _stalled(self, progress: Progress) -> str:
        """The line about a watermark that stays where it is while rows are newer and newer."""
        newest, watermark = progress.newest_event, progress.watermark
        if newest is None or (watermark is not None and newest <= watermark):
            return ""
        if self._stall is None or self._stall.watermark != watermark:
            self._stall, self._is_stalled = _Stall(watermark, newest, newest), False
        stall = self._stall
        stall.newest, stall.batches = max(newest, stall.newest), stall.batches + 1
        stall.read |= {topic for topic, latest in progress.newest_records.items() if latest is not None}
        moved = stall.newest - stall.first
        if self._is_stalled or stall.batches < STALLED_BATCHES or moved < STALLED_MS:
            return ""
        self._is_stalled = True
        silent = " and ".join(sorted(progress.newest_records.keys() - stall.read))
        why = f": no records come from {silent}, and the slowest source holds the watermark of all" if silent else ""
        return (
            f"{self.query}: its watermark stands still{_at(watermark)} while event time moved on by {duration(moved)}"
            f"{why}. Windows do not close, and state grows; see StreamWatermarkStalled in docs/runbook.md"
        )


def _at(watermark: int | None) -> str:
    return "" if watermark is None else f" at {_instant(watermark)}"


def _instant(ms: int) -> str:
    return timestamp(_EPOCH + timedelta(milliseconds=ms))

"""The interval of a stream's trigger, which no event has: configured in a property, or seen in starts of batches."""

import re
from typing import Final

from spark_app.vocabulary.spark_settings import INTERVAL_UNITS_MS

INTERVALS_MS: Final = (
    100, 200, 250, 500, 1000, 2000, 3000, 4000, 5000, 10_000, 15_000, 20_000, 30_000,
    60_000, 120_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000, 3_600_000,
)  # fmt: skip
"""The intervals that people choose, and that starts are compared with."""
WAITED_MS: Final = 50
"""A batch that starts later than this after the end of the one before it has waited for something."""
MIN_STARTS: Final = 10
MIN_RATIO: Final = 0.9
"""So many starts after a wait, and this share of them, must be at multiples of an interval."""
_TEXT: Final = re.compile(rf"\s*(\d{{1,9}})\s*({'|'.join(INTERVAL_UNITS_MS)})s?\s*", re.IGNORECASE)


def interval_ms(text: str | None) -> int | None:
    """An interval as `trigger(processingTime=...)` takes it: `10 seconds`; None for anything else, and for 0."""
    match = _TEXT.fullmatch(text or "")
    return (int(match[1]) * INTERVAL_UNITS_MS[match[2].lower()] or None) if match else None


class Trigger:
    """What is known of the trigger of a query.

    A trigger of processing time starts a batch at the next multiple of its interval since the epoch, and at once after
    a batch that took longer (Spark's `ProcessingTimeExecutor`). So the starts that follow a wait are multiples of it;
    data that arrives whenever it wants starts batches at other times. The largest interval that fits is taken: the real
    one may be a part of it, so that what is longer than this one is also longer than the real one.

    Attributes:
        configured_ms: The interval by the property of its jobs; None where they have none.
    """

    def __init__(self, *, configured_ms: int | None = None, inferred_ms: int | None = None) -> None:
        """Nothing is known yet, or what earlier batches have shown."""
        self.configured_ms, self._inferred_ms = configured_ms, inferred_ms
        self._ended: int | None = None
        self._starts = 0
        self._fitting = dict.fromkeys(INTERVALS_MS, 0)

    @property
    def is_inferred(self) -> bool:
        """Whether the interval was seen in the starts of batches, and no property has it."""
        return self.configured_ms is None and self.interval_ms is not None

    @property
    def interval_ms(self) -> int | None:
        """The interval; None if it is unknown, as where each batch starts as soon as there is data."""
        return self.configured_ms or self._seen() or self._inferred_ms

    def begin(self) -> None:
        """Begins another run of the query, which may have another interval."""
        self._inferred_ms = self._seen() or self._inferred_ms
        self._ended, self._starts = None, 0
        self._fitting = dict.fromkeys(INTERVALS_MS, 0)

    def add(self, started: int, ended: int) -> dict[int, tuple[int, int]]:
        """Adds a batch of the run.

        Returns:
            The intervals that it was longer than: to each, one batch, and how much longer in milliseconds. Empty for
            the first batch of a run, which loads classes and state.
        """
        is_first = self._ended is None
        if self._ended is not None and started - self._ended > WAITED_MS:
            self._starts += 1
            for interval in INTERVALS_MS:
                self._fitting[interval] += started % interval <= min(interval // 10, 100)
        self._ended = ended
        known = {*INTERVALS_MS, *([] if self.configured_ms is None else [self.configured_ms])}
        longer = {interval: (1, ended - started - interval) for interval in known if ended - started > interval}
        return {} if is_first else longer

    def _seen(self) -> int | None:
        if self._starts < MIN_STARTS:
            return None
        least = MIN_RATIO * self._starts
        return max((interval for interval, times in self._fitting.items() if times >= least), default=None)

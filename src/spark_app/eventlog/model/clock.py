"""Puts the times of a log in order where the clock of the driver was set back while the application ran."""

from dataclasses import dataclass
from typing import Final

SLACK_MS: Final = 100
"""How far the times of two things may be out of order without a wrong clock: threads of the driver stamp them."""


@dataclass(slots=True)
class Clock:
    """Corrects times that cannot be: what ends before it starts, starts before what it is a part of, or ends after it.

    Attributes:
        corrections: How many times were corrected.
        largest_ms: The largest correction of a time.
    """

    corrections: int = 0
    largest_ms: int = 0

    def start(self, time: int, whole: int | None) -> int:
        """The start of a part of something that started at `whole`; None if that is unknown."""
        return self._not_before(time, whole, slack_ms=SLACK_MS)

    def end(self, time: int, started: int | None, parts: int | None = None) -> int:
        """The end of something, whose parts so far ended at `parts` at the latest."""
        return self._not_before(self._not_before(time, started, slack_ms=0), parts, slack_ms=SLACK_MS)

    def has_gone_back(self, ms: int) -> None:
        """Counts a correction of so many milliseconds."""
        self.corrections += 1
        self.largest_ms = max(self.largest_ms, ms)

    def _not_before(self, time: int, earliest: int | None, *, slack_ms: int) -> int:
        if earliest is None or time >= earliest:
            return time
        if earliest - time > slack_ms:
            self.has_gone_back(earliest - time)
        return earliest

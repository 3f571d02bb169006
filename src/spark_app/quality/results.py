"""Results of expectations as a run record holds them; the module needs no Spark, so that reports load without it."""

import datetime
from dataclasses import dataclass
from typing import Final

FRESHNESS: Final = "freshness"
"""The expectation about the age of the newest valid row at the end of the day; without one it is the whole day."""
DAY_SECONDS: Final = 86_400


def end_of(day: datetime.date) -> float:
    """The first instant after a day, UTC, in seconds since 1970."""
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp() + DAY_SECONDS


@dataclass(frozen=True)
class ExpectationResult:
    """How well one expectation was kept.

    Attributes:
        expectation: Name of the expectation.
        value: What was measured: a share of rows or columns (0 to 1), or seconds for `freshness`.
        limit: The largest value that may be published; None where any may (`.inf`, which JSON has no number for).
        violations: Rows (or columns) that violate it; None if it is not about rows or columns.
        total: Rows (or columns) that were looked at.
        where: An SQL condition over bronze that shows the rows; None where there are none to show.
    """

    expectation: str
    value: float
    limit: float | None
    violations: int | None = None
    total: int | None = None
    where: str | None = None

    @property
    def is_breached(self) -> bool:
        """Whether the value is beyond the limit."""
        return self.limit is not None and self.value > self.limit

    def formatted(self) -> tuple[str, str]:
        """The value and the limit as people read them: seconds of `freshness`, else a share."""
        return self._shown(self.value), "any" if self.limit is None else self._shown(self.limit)

    def __str__(self) -> str:
        value, limit = self.formatted()
        if self.expectation == FRESHNESS:
            return f"{FRESHNESS}: no valid row in the last {value} of the day, allowed {limit}"
        return f"{self.expectation}: {self.violations:,} of {self.total:,} ({value}), allowed {limit}"

    def _shown(self, number: float) -> str:
        return f"{number:,.0f} s" if self.expectation == FRESHNESS else f"{number:.4%}"

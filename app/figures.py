"""How well a promise was kept, as a record holds it: without Spark, so that whoever only reads records needs none."""

from dataclasses import dataclass
from typing import Final

FRESHNESS: Final = "freshness"
"""The promise about the age of the newest valid row at the end of the day; without one it is the whole day."""
DAY_SECONDS: Final = 86_400


@dataclass(frozen=True)
class Figure:
    """How well one promise was kept.

    Attributes:
        promise: Name of the promise.
        value: What was measured: a share of rows or columns (0 to 1), or seconds for `freshness`.
        limit: The largest value that may be published; None where any may (`.inf`, which JSON has no number for).
        broken: Rows (or columns) that break it; None where rows are not what is counted.
        total: Rows (or columns) that were looked at.
        where: An SQL condition over bronze that shows the rows; None where there are none to show.
    """

    promise: str
    value: float
    limit: float | None
    broken: int | None = None
    total: int | None = None
    where: str | None = None

    @property
    def is_breached(self) -> bool:
        """Whether the value is beyond the limit."""
        return self.limit is not None and self.value > self.limit

    def shown(self) -> tuple[str, str]:
        """The value and the limit as people read them: seconds of `freshness`, else a share."""
        return self._shown(self.value), "any" if self.limit is None else self._shown(self.limit)

    def __str__(self) -> str:
        value, limit = self.shown()
        if self.promise == FRESHNESS:
            return f"{FRESHNESS}: no valid row in the last {value} of the day, allowed {limit}"
        return f"{self.promise}: {self.broken:,} of {self.total:,} ({value}), allowed {limit}"

    def _shown(self, number: float) -> str:
        return f"{number:,.0f} s" if self.promise == FRESHNESS else f"{number:.4%}"

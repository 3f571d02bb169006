"""How well a promise was kept, as a record holds it: without Spark, so that whoever only reads records needs none."""

from dataclasses import dataclass
from typing import Final

FRESHNESS: Final = "freshness"
"""The promise about the age of the newest row."""


@dataclass(frozen=True)
class Figure:
    """How well one promise was kept.

    Attributes:
        promise: Name of the promise.
        value: What was measured: a share of rows (0 to 1), a number of columns, or seconds for `freshness`.
        limit: The largest value that may be published.
        broken: Rows (or columns) that break it; None where rows are not what is counted.
        total: Rows (or columns) that were looked at.
        where: An SQL condition over `bronze` that shows the rows; None where there are none to show.
    """

    promise: str
    value: float
    limit: float
    broken: int | None = None
    total: int | None = None
    where: str | None = None

    @property
    def is_breached(self) -> bool:
        """Whether the value is beyond the limit."""
        return self.value > self.limit

    def __str__(self) -> str:
        if self.promise == FRESHNESS:
            age = f"the newest row is {self.value:,.0f} s older than the end of the day"
            return f"{FRESHNESS}: {age}, allowed {self.limit:,.0f} s"
        counted = f"{self.broken:,} of {self.total:,}"
        return f"{self.promise}: {counted} ({self.value:.4%}), allowed {self.limit:.4%}"

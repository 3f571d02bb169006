"""Long lists in groups that fold: the stages and the SQL executions of one step differ in little but their numbers."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

MAX_UNFOLDED: Final = 40
"""With more rows than a person reads, those of the same step are one line until it is opened."""


class GroupedRow(Protocol):
    """A row of a list: `fit random_forest on fold 1/3, treeAggregate at RandomForest.scala:1 [memory > shuffle]`."""

    @property
    def name(self) -> str:
        """What the program calls it, and where it is from."""

    @property
    def duration_ms(self) -> float | None:
        """None while it runs."""

    @property
    def status(self) -> str:
        """How it stands."""


Row = TypeVar("Row", bound=GroupedRow)


@dataclass(frozen=True, slots=True)
class Group(Generic[Row]):
    """Rows of one step; without a title they are listed as they are."""

    title: str
    rows: list[Row]

    @property
    def time(self) -> float:
        """Of all rows together, in milliseconds."""
        return sum(row.duration_ms or 0.0 for row in self.rows)

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(row.status == "failed" for row in self.rows)


def grouped(rows: Sequence[Row], *, most: int = MAX_UNFOLDED) -> list[Group[Row]]:
    """The rows by what the program calls them, in the order of the first of each; a few rows are one group."""
    if len(rows) <= most:
        return [Group("", list(rows))]
    by_title = defaultdict[str, list[Row]](list)
    for row in rows:
        by_title[row.name.partition(" [")[0].partition(", ")[0]].append(row)
    return [Group(title if len(found) > 1 else "", found) for title, found in by_title.items()]

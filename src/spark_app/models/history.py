"""The tables from which a request gets the history of its customer: how far they reach, and their rows."""

import datetime
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from pyspark.sql import DataFrame

from spark_app.models.inputs import Span, in_days
from spark_app.spark.persisted import size_in_bytes
from spark_app.warehouse import delta_log
from spark_app.warehouse.tables import Warehouse

DAY: Final = datetime.timedelta(days=1)
PERSISTED_BYTES: Final = 32 * 2**20
"""The most bytes of files whose rows stay persisted: in memory they take a few times as many."""


class Reach(NamedTuple):
    """How far the tables reach for the requests of a day.

    Attributes:
        day: The day.
        until: The first day before it, or the day itself, from which on a table has nothing; None without any before.
        is_stale: Whether that is not the day itself: then the model knows less than it was trained and judged with.
    """

    day: datetime.date
    until: datetime.date | None
    is_stale: bool


class History:
    """The newest versions of tables: a look costs the listing of a folder each, unless something was published since.

    Rows of days that are asked for again are persisted if they are few, so that neither the log of their table nor
    their files are read for each micro-batch. Whoever has asked for rows calls `unpersist` at the end.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Nothing was looked at yet.

        Args:
            names: The names of the tables.
        """
        self._names = names
        self._tables = dict[str, _Table]()

    def look(self, warehouse: Warehouse) -> None:
        """Looks for new versions; until the next look, all answers are about the same ones."""
        for name in self._names:
            version = delta_log.last_version(warehouse.spark, warehouse.path(name))
            known = self._tables.get(name)
            if known is None or known.version != version:
                if known is not None:
                    known.unpersist()
                self._tables[name] = _Table.read(warehouse, name, version)

    def reach(self, days: Iterable[datetime.date]) -> list[Reach]:
        """How far the tables reach for the requests of days; the one that ends first decides."""
        known = [table.days for table in self._tables.values() if table.days is not None]
        return [reach(known, day) for day in days]

    def rows(self, span: Span | None) -> dict[str, DataFrame]:
        """The tables by their names, with at least the rows of the days from a first to a last one."""
        return {name: table.rows if span is None else table.rows_of(span) for name, table in self._tables.items()}

    def unpersist(self) -> None:
        """Leaves nothing persisted."""
        for table in self._tables.values():
            table.unpersist()


def reach(tables: Iterable[Sequence[datetime.date]], day: datetime.date) -> Reach:
    """How far tables reach for the requests of a day, from the days that each has, in order."""
    ends = [known[position - 1] + DAY if (position := bisect_left(known, day)) else None for known in tables]
    known = [end for end in ends if end is not None]
    until = min(known) if len(known) == len(ends) else None
    return Reach(day, until, until != day)


@dataclass
class _Table:
    """A version of a table.

    Attributes:
        version: The version.
        rows: Its rows.
        day: Its column with the day; None without days.
        days: The days that it has, in order; None without days.
        asked: The first and last day that were asked for last without being persisted.
        large: The days that were found to have too many rows to persist them.
        kept: The days whose rows are persisted, and these rows; None where none are.
    """

    version: int
    rows: DataFrame
    day: str | None
    days: Sequence[datetime.date] | None
    asked: Span | None = None
    large: Span | None = None
    kept: tuple[Span, DataFrame] | None = None

    @classmethod
    def read(cls, warehouse: Warehouse, name: str, version: int) -> Self:
        """A version of a table; a table that was never written has no rows."""
        rows = warehouse.table(name, version=version) if version >= 0 else warehouse.table(name)
        day = warehouse.tables[name].day
        days = None if day is None else sorted(row[0] for row in rows.select(day).distinct().collect())
        return cls(version, rows, day, days)

    def rows_of(self, span: Span) -> DataFrame:
        """At least the rows of days; those of days that are asked for twice in a row are persisted.

        Days that are asked for once, as by a request of long ago, neither are nor replace others.
        """
        if self.kept is not None:
            (first, last), rows = self.kept
            if first <= span[0] and span[1] <= last:
                return rows
        if span == self.asked and span != self.large:
            return self._persist(span)
        self.asked = span
        return self.rows

    def unpersist(self) -> None:
        """Leaves nothing persisted."""
        if self.kept is not None:
            self.kept[1].unpersist()
            self.kept = None

    def _persist(self, span: Span) -> DataFrame:
        rows = in_days(self.rows, self.day, *span)
        if size_in_bytes(rows) > PERSISTED_BYTES:
            self.large = span
            return self.rows
        self.unpersist()
        self.kept = span, rows.persist()
        return rows

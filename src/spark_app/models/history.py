"""How far the tables reach from which a request gets the history of its customer."""

import datetime
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pyspark.sql import functions as F

from spark_app.warehouse import delta_log
from spark_app.warehouse.tables import Warehouse

DAY: Final = datetime.timedelta(days=1)


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
    """The days that tables have: a look costs the listing of a folder each, unless something was published since."""

    def __init__(self, tables: Sequence[str]) -> None:
        """Nothing was looked at yet.

        Args:
            tables: Their names; those without days do not matter.
        """
        self._tables = tables
        self._versions = dict[str, int]()
        self._days = dict[str, list[datetime.date]]()

    def reach(self, warehouse: Warehouse, days: Iterable[datetime.date]) -> list[Reach]:
        """How far the tables reach for the requests of days; the one that ends first decides."""
        for name in self._tables:
            if (day := warehouse.tables[name].day) is not None:
                self._look(warehouse, name, day)
        return [reach(self._days.values(), day) for day in days]

    def _look(self, warehouse: Warehouse, name: str, day: str) -> None:
        version = delta_log.last_version(warehouse.spark, warehouse.path(name))
        if self._versions.get(name) != version:
            self._days[name] = sorted(row[0] for row in warehouse.table(name).select(F.col(day)).distinct().collect())
            self._versions[name] = version


def reach(tables: Iterable[Sequence[datetime.date]], day: datetime.date) -> Reach:
    """How far tables reach for the requests of a day, from the days that each has, in order."""
    ends = [known[position - 1] + DAY if (position := bisect_left(known, day)) else None for known in tables]
    known = [end for end in ends if end is not None]
    until = min(known) if len(known) == len(ends) else None
    return Reach(day, until, until != day)

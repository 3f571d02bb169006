"""The days of tables that were made of what has changed since: by the files beside the tables, without Spark."""

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from spark_app.eventlog.parse.locations import log_path
from spark_app.execution import pipelines
from spark_app.formatting import quantity
from spark_app.local_files import local_path
from spark_app.settings import Settings
from spark_app.warehouse import hadoop_files, raw_files
from spark_app.warehouse.periods import RAW, Period, Periods, StoredFiles
from spark_app.warehouse.tables import Table

FindRaw = Callable[[str, datetime.date], str | None]
"""Names the raw files of a source for a day, as `hadoop_files.fingerprint` does; None where nobody can tell."""
PATIENCE_SECONDS: Final = 10.0
"""How long a storage may take to answer."""
WHAT_TO_DO: Final = "spark-app etl --stale"


@dataclass(frozen=True)
class StaleDay:
    """A day of a table that has to be written again.

    Attributes:
        pipeline: The pipeline that writes the table.
        table: The table.
        day: The day.
        reasons: What has changed since.
    """

    pipeline: str
    table: str
    day: datetime.date
    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{self.table} of {self.day}: {'; '.join(self.reasons)}"


def stale(periods: Periods, loaded: Mapping[str, Any], find_raw: FindRaw) -> list[StaleDay]:
    """The days that have to be written again, in the order of the pipelines.

    Args:
        periods: What is known of the days of the tables.
        loaded: The daily pipelines by name, each after those that write what it reads.
        find_raw: Names raw files.
    """
    tables = {table.name: table for each in loaded.values() for table in each.WRITES}
    known = cache(periods.days)
    content = cache(lambda name, day: periods.content(name, day, is_of_days=tables[name].day is not None))
    return [
        StaleDay(pipeline, table.name, day, reasons)
        for pipeline, each in loaded.items()
        for table in each.WRITES
        for day, period in known(table.name).items()
        if (reasons := list(_reasons(table, day, period, tables, content, find_raw)))
    ]


def _reasons(
    table: Table,
    day: datetime.date,
    period: Period,
    tables: Mapping[str, Table],
    content: Callable[[str, datetime.date], str],
    find_raw: FindRaw,
) -> Iterator[str]:
    if not period.is_done and not period.is_rejected:
        is_kept = bool(table.key)
        yield "a day before it changed" if is_kept and period.content else "a run was ended while it wrote it"
    for name, was in period.reads.items():
        if name.startswith(RAW):
            now = find_raw(name.removeprefix(RAW), day)
            if now is not None and now != was:
                yield f"{name} changed"
        elif not period.is_rejected and name in tables and content(name, day) != was:
            yield f"{name} changed"


def summary(found: Sequence[StaleDay]) -> str | None:
    """One line about all: how many days of how many tables, and what to do; None where there are none."""
    if not found:
        return None
    days, tables = {each.day for each in found}, {each.table for each in found}
    return (
        f"{quantity(len(days), 'day')} of {quantity(len(tables), 'table')} "
        f"{'was' if len(found) == 1 else 'were'} made of what has changed since: {WHAT_TO_DO}"
    )


def of_project(settings: Settings) -> list[StaleDay]:
    """The days of the tables of the current project, by its files alone: neither Spark nor a JVM starts.

    Raises:
        InputError: The warehouse cannot be read.
        MachineError: The driver of its storage is not installed.
    """
    root = log_path(settings.warehouse_path.rstrip("/"), patience=PATIENCE_SECONDS)
    raw = local_path(settings.raw_path)

    def find_raw(source: str, day: datetime.date) -> str | None:
        folder = raw_files.day_folder(settings.raw_path, source, day)
        return None if raw is None else hadoop_files.local_fingerprint(Path(folder))

    return stale(Periods(StoredFiles(root)), pipelines.load("etl"), find_raw)

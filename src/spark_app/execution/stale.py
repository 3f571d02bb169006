"""The days of tables that were made of what has changed since: by the files beside the tables, without Spark."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from spark_app.declarations.pipeline import Pipeline
from spark_app.execution import pipelines
from spark_app.execution.graph import warehouse_folder
from spark_app.formatting import quantity
from spark_app.runs.run_record import StaleDay
from spark_app.settings import Settings
from spark_app.warehouse.hadoop_files import FileReader, LocalReader
from spark_app.warehouse.periods import Period, Periods, StoredFiles, in_threads, source_of
from spark_app.warehouse.source_files import origin
from spark_app.warehouse.tables import Table

FindRaw = Callable[[str, datetime.date, str], str | None]
"""Names the raw rows of a source for a day, as `Origin.content` does, by the name that they had; None where nobody can
tell."""
RawDay = tuple[str, datetime.date, str]
"""A source, a day, and how its rows were named when they were read."""
WHAT_TO_DO: Final = "spark-app etl --stale"


def stale(periods: Periods, loaded: Mapping[str, Pipeline], find_raw: FindRaw) -> list[StaleDay]:
    """The days that have to be written again, in the order of the pipelines.

    Args:
        periods: What is known of the days of the tables.
        loaded: The daily pipelines by name, each after those that write what it reads.
        find_raw: Names raw files.
    """
    known = _Known.of(periods, {table.name: table for each in loaded.values() for table in each.writes}, find_raw)
    return [
        StaleDay(pipeline, table.name, day, reasons)
        for pipeline, each in loaded.items()
        for table in each.writes
        for day, period in known.periods.days(table.name).items()
        if (reasons := list(known.reasons(table, day, period)))
    ]


@dataclass(frozen=True)
class _Known:
    """All that is known of the days of tables, each file read once."""

    tables: Mapping[str, Table]
    periods: Periods
    raw: Mapping[RawDay, str | None]

    @classmethod
    def of(cls, periods: Periods, tables: Mapping[str, Table], find_raw: FindRaw) -> Self:
        periods = periods.read_once()
        read = [
            (source, day, was)
            for table in tables
            for day, period in periods.days(table).items()
            for name, was in period.reads.items()
            if (source := source_of(name)) is not None
        ]
        raw = in_threads(lambda each: find_raw(*each), read, threads=periods.threads)
        return cls(tables, periods, dict(zip(read, raw, strict=True)))

    def reasons(self, table: Table, day: datetime.date, period: Period) -> Iterator[str]:
        """Why a day has to be written again."""
        if not period.is_done and not period.is_rejected:
            is_kept = bool(table.key)
            yield "a day before it changed" if is_kept and period.content else "a run was ended while it wrote it"
        for name, was in period.reads.items():
            if (source := source_of(name)) is not None:
                now = self.raw[source, day, was]
                if now is not None and now != was:
                    yield f"{name} changed"
            elif not period.is_rejected and name in self.tables and self._content(name, day) != was:
                yield f"{name} changed"

    def _content(self, name: str, day: datetime.date) -> str:
        return self.periods.content(name, day, is_of_days=self.tables[name].day is not None)


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
    root, loaded = warehouse_folder(settings.warehouse_path), pipelines.load("etl")
    return stale(Periods(StoredFiles(root)), loaded, raw_finder(settings, loaded.values()))


def raw_finder(settings: Settings, of_pipelines: Iterable[Pipeline], reader: FileReader | None = None) -> FindRaw:
    """Names the raw rows of the sources of pipelines; without a reader, those on this machine only."""
    known = pipelines.origins(settings, of_pipelines)

    def find_raw(source: str, day: datetime.date, was: str) -> str | None:
        return (known.get(source) or origin(settings, source)).content(reader or LocalReader(), day, was)

    return find_raw

"""The days that daily pipelines have not published."""

import datetime
import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from spark_app.declarations.pipeline import Pipeline
from spark_app.errors import InputError, MachineError
from spark_app.report import run_store
from spark_app.report.run_store import RECORDS, RunStore
from spark_app.runs import run_record
from spark_app.runs.run_record import PUBLISHED, RunRecord
from spark_app.settings import Settings
from spark_app.warehouse import delta_log
from spark_app.warehouse.tables import Table, Warehouse

FindRuns = Callable[[str, datetime.date], Iterable[RunRecord]]
"""Finds the runs of a pipeline for a day that succeeded and wrote tables."""


def missing(
    warehouse: Warehouse, find_runs: FindRuns, pipelines: Mapping[str, Pipeline], days: Sequence[datetime.date]
) -> dict[str, list[datetime.date]]:
    """By pipeline, the days that it has not published.

    A day is published where each table of days that the pipeline writes has rows of it. Some days have no rows, and a
    state has no days: there a run must have succeeded, since the tables were created that are there now.

    Args:
        warehouse: The tables.
        find_runs: Finds runs.
        pipelines: The pipelines by name.
        days: The days that are looked for, in order.
    """
    lacking = dict[str, list[datetime.date]]()
    for name, pipeline in pipelines.items():
        tables = [table.name for table in published_tables(pipeline) if table.day]
        there = [warehouse.days(table, days[0], days[-1]) for table in tables]
        lacking[name] = [
            day
            for day in days
            if not is_published(
                [day in of_table for of_table in there],
                (record for record in find_runs(name, day) if _is_there(warehouse, record)),
            )
        ]
    return lacking


def is_published(has_rows: Sequence[bool], succeeded: Iterable[RunRecord]) -> bool:
    """Whether a day is published.

    Args:
        has_rows: Whether it has rows in each of the tables of days.
        succeeded: The runs of the day that succeeded.
    """
    if has_rows and all(has_rows):
        return True
    # Where no table has rows of a run that has published some, these were deleted.
    may_have_none = not has_rows or any(has_rows)
    return any(may_have_none or record.counts.get(PUBLISHED) == 0 for record in succeeded)


def published_tables(pipeline: Pipeline) -> list[Table]:
    """The tables that a pipeline publishes: all but those of the raw rows of a source, which are written before."""
    return [table for table in pipeline.writes if table.source is None]


def described(lacking: Mapping[str, Sequence[datetime.date]], days: Sequence[datetime.date]) -> Iterator[str]:
    """One line per pipeline that lacks days; one line if none does."""
    count = f"{len(days)} day{'s' if len(days) > 1 else ''}"
    for name, missing_days in lacking.items():
        if missing_days:
            yield f"{name} has not published {len(missing_days)} of {count}: {', '.join(_ranges(missing_days))}"
    if not any(lacking.values()):
        yield f"nothing to do: {', '.join(lacking)} published {days[0]} to {days[-1]}, {count}"


def _ranges(days: Sequence[datetime.date]) -> list[str]:
    """Days in order, those that follow each other as one range."""
    found = list[list[datetime.date]]()
    for day in days:
        if found and day - found[-1][-1] == datetime.timedelta(days=1):
            found[-1].append(day)
        else:
            found.append([day])
    return [str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in found]


def _is_there(warehouse: Warehouse, record: RunRecord) -> bool:
    """Whether the tables that a run wrote are those that are there now."""

    def is_same(name: str, path: str) -> bool:
        if name not in warehouse.tables or warehouse.path(name) != path or not warehouse.exists(name):
            return False
        created = delta_log.created_at(warehouse.spark, path)
        return created is None or created <= record.started_at + datetime.timedelta(seconds=record.seconds)

    return all(is_same(name, path) for name, path in record.tables.items())


class RecordedRuns:
    """The runs that succeeded and wrote tables: of this machine, and of others that use its run store."""

    def __init__(self, settings: Settings, *, note: Callable[[str], None]) -> None:
        """Reads nothing yet; a store that cannot be read is noted."""
        self._settings, self._note = settings, note

    def __call__(self, pipeline: str, day: datetime.date) -> Iterator[RunRecord]:
        """Those of a day; the store is asked when those of this machine do not suffice."""
        name = f"*-{pipeline}-{day}-*"
        for folder in self._settings.runs_path.glob(name):
            with suppress(InputError):  # a folder of something else
                yield from _with_tables(run_record.read(folder))
        for key in fnmatch.filter(self._stored, f"*/{name}"):
            with suppress(InputError, FileNotFoundError):
                assert self._store is not None
                yield from _with_tables(run_record.decoded(self._store.read(key), key))

    @cached_property
    def _store(self) -> RunStore | None:
        return run_store.configured_store(self._settings)

    @cached_property
    def _stored(self) -> list[str]:
        """The run records of the store: their names say what they are of."""
        try:
            days = self._store.days(RECORDS) if self._store else []
            folders = [f"{RECORDS}/{day}" for day in days]
            return [f"{each}/{name}" for each in folders for name, _ in self._store.files(each)] if self._store else []
        except (InputError, MachineError) as error:
            self._note(f"runs of other machines are not known: {error}")
            return []


def _with_tables(record: RunRecord) -> Iterator[RunRecord]:
    if record.outcome == "succeeded" and record.tables:
        yield record

"""How long it takes to write days of tables again, by the runs of their pipelines that are kept here."""

import datetime
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import msgspec

from spark_app.declarations.pipeline import Pipeline
from spark_app.errors import InputError
from spark_app.runs import run_record
from spark_app.runs.run_record import RunRecord
from spark_app.warehouse.periods import Periods

MAX_RUNS: Final = 60
"""So many of the newest runs of a pipeline are read: older ones are of other code and other rows."""
MIN_RUNS: Final = 3
"""Fewer runs do not say how much they differ."""


class Forecast(msgspec.Struct, frozen=True):
    """What it takes to write the days of a pipeline again.

    Attributes:
        pipeline: The pipeline.
        days: How many days its tables have.
        runs: By how many runs it is told.
        low_seconds: Nine of ten runs would take longer, or as long; None where there are too few runs.
        high_seconds: Nine of ten runs would take less, or as long; without the start of Spark.
    """

    pipeline: str
    days: int
    runs: int
    low_seconds: float | None = None
    high_seconds: float | None = None


def forecasts(tables: Set[str], loaded: Mapping[str, Pipeline], periods: Periods, runs_path: Path) -> list[Forecast]:
    """What it takes to write the days of tables again, for each pipeline that has some, in their order.

    A day takes as long as its newest run did or, where none is kept, as long as the median of all. How much that may
    be off is the spread of the runs: the 10th and the 90th percentile of how long each took beside the median.

    Args:
        tables: The tables.
        loaded: The pipelines by name.
        periods: The days of the tables.
        runs_path: The folder of the runs.
    """
    days = {name: _days(pipeline, tables, periods) for name, pipeline in loaded.items()}
    runs = _runs(runs_path, {name for name, known in days.items() if known})
    return [_forecast(name, known, runs.get(name, ())) for name, known in days.items() if known]


def _days(pipeline: Pipeline, tables: Set[str], periods: Periods) -> set[datetime.date]:
    return {day for table in pipeline.writes if table.name in tables for day in periods.known_days(table.name)}


def _forecast(name: str, days: Set[datetime.date], runs: Sequence[RunRecord]) -> Forecast:
    if len(runs) < MIN_RUNS:
        return Forecast(name, len(days), len(runs))
    usual = median(run.seconds for run in runs)
    newest = {run.slice: run.seconds for run in reversed(runs)}
    total = sum(newest.get(str(day), usual) for day in days)
    tenths = quantiles([run.seconds / usual for run in runs], n=10, method="inclusive")
    return Forecast(name, len(days), len(runs), total * tenths[0], total * tenths[-1])


def _runs(folder: Path, names: Set[str]) -> dict[str, list[RunRecord]]:
    """The newest runs of pipelines that succeeded, the newest first."""
    found: dict[str, list[RunRecord]] = {name: [] for name in names}
    for name, each in run_record.folders(folder):
        if len(found.get(name, range(MAX_RUNS))) >= MAX_RUNS:
            continue
        with suppress(InputError, OSError):  # a folder of something else
            record = run_record.read(each)
            if record.outcome == "succeeded" and record.seconds > 0:
                found[name].append(record)
    return found


def together(found: Iterable[Forecast]) -> tuple[float, float] | None:
    """The sum of forecasts, one pipeline after the other; None where one of them is not known."""
    known = [(each.low_seconds, each.high_seconds) for each in found]
    if not known or any(low is None or high is None for low, high in known):
        return None
    return sum(low or 0 for low, _ in known), sum(high or 0 for _, high in known)

"""A run that is killed after any of its commits and run again, as if nothing had happened; a killed compaction."""

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from app.streaming import events
from spark_app.warehouse.tables import Warehouse
from tests.integration.home import Home
from tests.integration.processes import left_behind, make_quick
from tests.integration.repeated_day import RepeatedDay
from tests.unit.streaming.drained import Drained, event

MOMENTS: Final = [
    f"{table}/_delta_log/*.json" for table in ("bronze_customers", "customers", "bronze", "transactions", "daily_sales")
]
"""The commits of a run, in their order. After that of `transactions`, the totals are those of the run before."""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> RepeatedDay:
    """The day, both times."""
    return RepeatedDay(lambda name: Home(tmp_path_factory.mktemp(name), spark))


@pytest.fixture(scope="module")
def killed_first(day: RepeatedDay, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The homes that a first run leaves if it is killed after each of its commits."""
    folder = tmp_path_factory.mktemp("first")
    return left_behind(day.fresh.copied(folder / "home"), MOMENTS, folder)


@pytest.fixture(scope="module")
def killed_again(day: RepeatedDay, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The homes that a run leaves which replaces a day and is killed after each of its commits."""
    folder = tmp_path_factory.mktemp("second")
    return left_behind(day.once.copied(folder / "home"), MOMENTS, folder)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_first_run_is_repeated(day: RepeatedDay, killed_first: dict[str, Path], moment: str) -> None:
    """The rerun publishes the day as if nothing had happened."""
    home = Home(killed_first[moment], day.fresh.spark)
    home.run()
    assert home.content() == day.first_content


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_replacement_is_repeated(day: RepeatedDay, killed_again: dict[str, Path], moment: str) -> None:
    """So does the rerun of a run that was replacing a published day."""
    home = Home(killed_again[moment], day.fresh.spark)
    home.run()
    assert home.content() == day.content


def test_a_compaction_that_is_killed_leaves_the_table_as_it_was(tmp_path: Path, spark: SparkSession) -> None:
    """Its file is no part of the table until it is committed; the next compaction goes on."""
    query = Drained(tmp_path, spark, events, files_per_trigger=1)
    for number in range(3):
        query.deliver("user_events", event(number))
    query.drain()
    make_quick(query.home)
    (tmp_path / "left").mkdir()
    command, file = ("tables", "--optimize"), "events/event_date=*/*.parquet"
    folder = left_behind(query.home, [file], tmp_path / "left", command=command)[file]
    left = Warehouse(spark, str(folder / "data" / "warehouse"), query.context.warehouse.tables.values())
    for _ in range(2):
        assert sorted(row.event_id for row in left.table("events").collect()) == ["e-0", "e-1", "e-2"]
        left.optimize("events")
    assert len(left.table("events").inputFiles()) == 1

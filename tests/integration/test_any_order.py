"""Whatever order days run in, late, corrected, more than once or killed: in the end all tables are as built once."""

import datetime
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.any_order import FIRST, Project, readings
from tests.integration.histories import History, Model

DAYS = [FIRST + datetime.timedelta(days=number) for number in range(3)]
ONE, TWO, _ = DAYS
EVENTS = 5
"""How much happens in a history."""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """Three days of readings, and four meters."""
    project, chosen = Project(spark, tmp_path / "project"), random.Random(1)
    for day in DAYS:
        project.deliver("readings", day, "a", readings(chosen, day, file="a"))
        project.deliver("meters", day, "a", [])
    project.deliver("meters", ONE, "a", [meter(number, f"c{number % 3}", since=ONE, day=ONE) for number in range(4)])
    return project


def meter(number: int, customer: str, *, since: datetime.date, day: datetime.date) -> dict[str, Any]:
    """What a day says of a meter."""
    return {"meter_id": f"m{number}", "customer": customer, "since": str(since), "changed_at": f"{day}T09:00:00Z"}


def test_days_in_any_order_again_and_killed_are_as_built_once(spark: SparkSession, tmp_path: Path) -> None:
    """States that add count no day twice; a correction that reaches back is followed by all that was made of it."""
    history, chosen = History(Project(spark, tmp_path / "project"), Model()), random.Random(1)
    for day in (ONE, TWO):
        history.deliver("readings", day, "a", readings(chosen, day, file="a"))
        history.deliver("meters", day, "a", [])
    history.deliver("meters", ONE, "a", [meter(number, f"c{number % 3}", since=ONE, day=ONE) for number in range(4)])
    history.run([TWO])
    history.run([ONE])
    assert history.run_stale() == ([("etl.bills", TWO), ("etl.parts", TWO)],) * 2  # whose meters are known now
    history.run([ONE], "etl.readings")  # again, as it was
    assert history.wrong() == set()

    history.deliver("readings", ONE, "a", readings(chosen, ONE, file="a"))  # corrected
    history.deliver("meters", TWO, "late", [meter(0, "c9", since=ONE, day=TWO)])  # reaches back
    history.killed(ONE, 8)
    history.ends()
    assert "c9" in history.model.month(TWO)


def test_a_state_whose_old_versions_were_vacuumed_is_computed_from_its_first_day(project: Project) -> None:
    """The day that was run last is read from the newest version, which a vacuum leaves."""
    project.run(DAYS, "etl.readings")
    once = project.content()["totals"]
    table = Path(project.settings.warehouse_path) / "totals"
    newest = {Path(name).name for name in project.spark.read.format("delta").load(str(table)).inputFiles()}
    for file in table.glob("*.parquet"):
        if file.name not in newest:
            file.unlink()
    project.run([TWO], "etl.readings")
    assert project.content()["totals"] == once


@pytest.fixture(scope="module")
def begun(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[datetime.date, ...]], History]:
    """A project whose days ran in an order, which is made once."""
    return cache(lambda order: History.begun(spark, tmp_path_factory.mktemp("begun") / "project", order))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """As many histories as are asked for."""
    if "seed" in metafunc.fixturenames:
        first, number = (metafunc.config.getoption(name) for name in ("--first-history", "--histories"))
        metafunc.parametrize("seed", range(first, first + number))


@pytest.mark.before_release
@pytest.mark.parametrize("number", range(2, 20))
def test_a_run_that_is_killed_is_found_and_made_good(
    begun: Callable[[tuple[datetime.date, ...]], History], tmp_path: Path, number: int
) -> None:
    """Between a commit and the note of it, or while later days are computed again.

    What a killed run wrote again counts as changed, also where its rows are the same: up to twice as many days run.
    """
    history = begun(tuple(DAYS)).copied(tmp_path / "project")
    history.deliver("readings", TWO, "b", readings(random.Random(3), TWO, file="b"))
    history.killed(TWO, number)
    history.ends(most=2)


@pytest.mark.before_release
def test_random_histories_are_as_built_once(
    begun: Callable[[tuple[datetime.date, ...]], History], tmp_path: Path, seed: int
) -> None:
    """Random days come late, corrected, withdrawn, again and out of order, and some runs are killed.

    A model in plain Python says what the tables have to hold. Each tenth history is compared with a fresh build, too.
    """
    chosen = random.Random(seed)
    history = begun(tuple(chosen.sample(DAYS, len(DAYS)))).copied(tmp_path / "project")
    for _ in range(EVENTS):
        history.happens(chosen, DAYS)
    history.ends()
    if seed % 10 == 0:
        fresh = Project(history.project.spark, tmp_path / "fresh", raw=history.project.raw)
        fresh.run(DAYS)
        fresh.run_stale()
        assert history.project.content() == fresh.content(), history.log

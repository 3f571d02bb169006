"""Whatever order days run in, late, corrected, more than once or killed: in the end all tables are as built once."""

import datetime
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.warehouse.periods import Periods
from tests.integration.any_order import FIRST, TABLES, Project, changes, readings

DAYS = [FIRST + datetime.timedelta(days=number) for number in range(3)]
ONE, TWO, THREE = DAYS


class Killed(BaseException):
    """Ends a run as a signal does: nothing catches it."""


@contextmanager
def killed_at(number: int) -> Iterator[None]:
    """Ends the run at the time when it would note what it has written for the so manieth time."""
    put, left = Periods.put, [number]

    def dying(self: Periods, *arguments: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        put(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Periods, "put", dying)
        with pytest.raises(Killed):
            yield


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


def built_once(project: Project, days: list[datetime.date]) -> dict[str, list[tuple[Any, ...]]]:
    """The tables as a new home makes them of the same raw files, day after day."""
    fresh = Project(project.spark, project.home.parent / "fresh", raw=project.raw)
    fresh.run(days)
    fresh.run_stale()
    return fresh.content()


def test_days_in_any_order_again_and_killed_are_as_built_once(project: Project) -> None:
    """States that add count no day twice; a correction that reaches back is followed by all that was made of it."""
    project.run([TWO])
    project.run([ONE])
    assert project.run_stale() > 0  # the history has other rows of the second day now
    once = project.content()
    project.run([ONE], "etl.readings")  # again, as it was
    assert project.content() == once

    project.deliver("readings", ONE, "a", readings(random.Random(7), ONE, file="a"))  # corrected
    project.deliver("meters", TWO, "late", [meter(0, "c9", since=ONE, day=TWO)])  # reaches back
    with killed_at(8):
        project.run([ONE])
    assert project.run_stale() > 0
    assert project.run_stale() == 0
    content = project.content()
    assert "c9" in {row[1] for row in content["bills"] if row[0] == ONE} | {row[0] for row in content["month"]}
    assert content == built_once(project, [ONE, TWO])


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


@pytest.mark.before_release
@pytest.mark.parametrize("number", range(2, 20))
def test_a_run_that_is_killed_is_found_and_made_good(project: Project, number: int) -> None:
    """Between a commit and the note of it, or while later days are computed again."""
    project.run(DAYS)
    project.deliver("readings", TWO, "b", readings(random.Random(3), TWO, file="b"))
    with killed_at(number):
        project.run([TWO])
    assert project.run_stale() > 0
    assert project.content() == built_once(project, DAYS)


@pytest.mark.before_release
@pytest.mark.parametrize("seed", range(20))
def test_random_histories_are_as_built_once(project: Project, seed: int) -> None:
    """Random days come late, corrected, again and out of order, and some runs are killed."""
    chosen = random.Random(seed)
    project.run(chosen.sample(DAYS, len(DAYS)))
    for _ in range(4):
        day, what = chosen.choice(DAYS), chosen.choice(["late", "corrected", "meters", "again", "killed"])
        if what in ("late", "corrected"):
            name = "b" if what == "late" else "a"
            project.deliver("readings", day, name, readings(chosen, day, file=name))
        if what == "meters":
            project.deliver("meters", day, "b", changes(chosen, day, DAYS))
        if what == "killed":
            with killed_at(chosen.randrange(2, 8)):
                project.run([day])
        elif chosen.random() < 0.6:
            project.run([day])
    project.run_stale()
    content, expected = project.content(), built_once(project, DAYS)
    assert {name for name in TABLES if content[name] != expected[name]} == set()

"""In the demo shop a run makes the days that it does not find, and touches nothing that is there."""

import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.errors import InputError
from app.samples import DEMO_ROWS, DEMO_SEED, demo
from app.samples.shop import day_folder, write_day
from app.settings import Settings, load_settings

DAY = datetime.date(2024, 1, 1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The demo shop in an empty home folder."""
    return load_settings().model_copy(update={"home": tmp_path})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def made(spark: SparkSession, settings: Settings) -> list[str]:
    """What is said when the day is asked for."""
    notes: list[str] = []
    demo.make_if_missing(spark, settings, DAY, note=notes.append)
    return notes


def test_a_day_is_made_once(spark: SparkSession, settings: Settings) -> None:
    """One line says so, and a day that is there, be it anybody's, is no reason to say or make anything."""
    assert made(spark, settings)[0].startswith("no raw data for 2024-01-01: made 10,000 demo transactions in ")
    before = contents(settings.home)
    assert len(before) == 4
    assert made(spark, settings) == []
    assert contents(settings.home) == before


def test_half_a_day_is_completed(spark: SparkSession, settings: Settings) -> None:
    """As a making leaves it that was killed between the two sources."""
    made(spark, settings)
    whole = contents(settings.home)
    for path in day_folder(Path(settings.raw_path), "transactions", DAY).iterdir():
        path.unlink()
    assert len(made(spark, settings)) == 1
    assert contents(settings.home) == whole


@pytest.mark.parametrize(
    ("there", "named"),
    [
        ("transactions/date=2024-01-01/mine.json", "transactions/date=2024-01-01/mine.json was not made"),
        ("transactions/date=2024-01-01/part-00000.json", "part-00000.json was not made"),
        ("customers/date=2024-01-01/.keep", "customers/date=2024-01-01/.keep was not made"),
    ],
)
def test_somebodys_files_stay(spark: SparkSession, settings: Settings, there: str, named: str) -> None:
    """What is missing is named, and the file in the way, however it is called; nothing is made or deleted."""
    file = Path(settings.raw_path, there)
    file.parent.mkdir(parents=True)
    file.write_text("{}\n")
    before = contents(settings.home)
    with pytest.raises(
        InputError, match=r"no raw data at .*/customers/date=2024-01-01.*, and none can be made"
    ) as told:
        made(spark, settings)
    assert named in str(told.value)
    assert contents(settings.home) == before


@pytest.mark.parametrize("changed", [{"seed": DEMO_SEED + 1}, {"rows": DEMO_ROWS - 100}])
def test_another_making_stays(spark: SparkSession, settings: Settings, changed: dict[str, int]) -> None:
    """A day that was made on demand is not replaced by the demo's because a part of it is lost."""
    raw = Path(settings.raw_path)
    asked = {"rows": DEMO_ROWS, "seed": DEMO_SEED} | changed
    write_day(raw, date=DAY, formats=settings.raw.formats, rows=asked["rows"], seed=asked["seed"])
    for path in day_folder(raw, "customers", DAY).iterdir():
        path.unlink()
    before = contents(settings.home)
    with pytest.raises(InputError, match="transactions/date=2024-01-01 is of another making"):
        made(spark, settings)
    assert contents(settings.home) == before

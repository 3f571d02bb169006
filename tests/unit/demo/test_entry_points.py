"""In the demo shop a run makes the days that it does not find, and touches nothing that is there."""

import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.demo import DEMO_ROWS, DEMO_SEED, entry_points
from app.demo.shop import LOCK, SOURCES, day_folder, write_day
from spark_app.errors import InputError
from spark_app.settings import Settings, load_settings

DAY = datetime.date(2024, 1, 1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The demo shop in an empty home folder."""
    return load_settings().model_copy(update={"home": tmp_path})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder but the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {str(path): path.read_bytes() for path in files}


def made(spark: SparkSession, settings: Settings) -> list[str]:
    """What is said when the day is asked for."""
    notes: list[str] = []
    entry_points.make_if_missing(spark, settings, SOURCES, DAY, note=notes.append)
    return notes


def test_a_missing_day_is_generated_once(spark: SparkSession, settings: Settings) -> None:
    """With one line; a day that exists, of any origin, is left as it is."""
    assert made(spark, settings)[0].startswith("no raw data for 2024-01-01: generated 10,000 demo transactions in ")
    before = contents(settings.home)
    assert len(before) == 4
    assert made(spark, settings) == []
    assert contents(settings.home) == before


def test_half_a_day_is_completed(spark: SparkSession, settings: Settings) -> None:
    """As a writer leaves it that was killed between the two sources."""
    made(spark, settings)
    whole = contents(settings.home)
    for path in day_folder(Path(settings.raw_path), "transactions", DAY).iterdir():
        path.unlink()
    assert len(made(spark, settings)) == 1
    assert contents(settings.home) == whole


@pytest.mark.parametrize(
    ("there", "named"),
    [
        ("transactions/date=2024-01-01/mine.json", "transactions/date=2024-01-01/mine.json was not generated"),
        ("transactions/date=2024-01-01/part-00000.json", "part-00000.json was not generated"),
        ("customers/date=2024-01-01/.keep", "customers/date=2024-01-01/.keep was not generated"),
    ],
)
def test_files_of_other_origin_are_kept(spark: SparkSession, settings: Settings, there: str, named: str) -> None:
    """The message names what is missing and the file in the way; nothing is written or deleted."""
    file = Path(settings.raw_path, there)
    file.parent.mkdir(parents=True)
    file.write_text("{}\n")
    before = contents(settings.home)
    with pytest.raises(
        InputError, match=r"no raw data in .*/customers/date=2024-01-01.*, and it cannot be generated"
    ) as raised:
        made(spark, settings)
    assert named in str(raised.value)
    assert contents(settings.home) == before


@pytest.mark.parametrize("changed", [{"seed": DEMO_SEED + 1}, {"rows": DEMO_ROWS - 100}])
def test_a_day_with_other_options_is_kept(spark: SparkSession, settings: Settings, changed: dict[str, int]) -> None:
    """It is not replaced though a part of it is lost."""
    raw = Path(settings.raw_path)
    asked = {"rows": DEMO_ROWS, "seed": DEMO_SEED} | changed
    write_day(raw, date=DAY, formats=settings.raw.formats, rows=asked["rows"], seed=asked["seed"])
    for path in day_folder(raw, "customers", DAY).iterdir():
        path.unlink()
    before = contents(settings.home)
    with pytest.raises(InputError, match="transactions/date=2024-01-01 was generated with different options"):
        made(spark, settings)
    assert contents(settings.home) == before

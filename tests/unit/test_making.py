import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from app import commits, files, making, tables
from app.errors import UsageError
from app.settings import Settings, load_settings

STRAYS = (".00000000000000000000.json.1.tmp", "..00000000000000000000.json.1.tmp.crc")


@pytest.fixture
def empty(tmp_path: Path) -> Settings:
    """A warehouse without any table."""
    return load_settings().model_copy(update={"home": tmp_path})


def warehouse(spark: SparkSession, place: str, folder: Path) -> Settings:
    """A warehouse in a folder, by the address that it is called; `viewfs:` is no local one for the program."""
    files.hadoop(spark).set("fs.viewfs.mounttable.default.link./disk", "file:///")
    return load_settings().model_copy(update={"warehouse": place.format(folder)})


def left_by_a_killed_maker(folder: Path, strays: tuple[str, ...] = STRAYS) -> Path:
    """The log of a table without a commit."""
    log = folder / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    for name in strays:
        (log / name).write_text("{")
    return log


@pytest.mark.parametrize("strays", [(), STRAYS])
def test_a_table_whose_maker_was_killed_is_made(spark: SparkSession, empty: Settings, strays: tuple[str, ...]) -> None:
    """A log without a commit is no table, whatever temporary files it holds."""
    left_by_a_killed_maker(Path(tables.path_of(empty, "daily_sales")), strays)
    with pytest.raises(UsageError, match="does not exist yet"):
        tables.open_table(spark, empty, "daily_sales")
    assert spark.read.format("delta").load(tables.ensure(spark, empty, "daily_sales")).count() == 0


def test_a_log_with_a_checkpoint_is_left_alone(spark: SparkSession, empty: Settings) -> None:
    """Nothing of a table that has ever been one is deleted."""
    log = Path(tables.path_of(empty, "daily_sales"), "_delta_log")
    log.mkdir(parents=True)
    (log / "00000000000000000010.checkpoint.parquet").touch()
    with pytest.raises(AnalysisException):
        tables.ensure(spark, empty, "daily_sales")
    assert [path.name for path in log.glob("0*")] == ["00000000000000000010.checkpoint.parquet"]


@pytest.mark.parametrize("strays", [None, STRAYS])
@pytest.mark.parametrize("place", ["{}", "file://{}", "viewfs:///disk{}"])
def test_a_table_may_be_made_by_several_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, strays: tuple[str, ...] | None
) -> None:
    """All find it afterwards, and it was made once; also where no lock keeps anybody waiting, as on a cluster."""
    monkeypatch.setattr(making, "PATIENCE_SECONDS", 3.0)
    for name in ("one", "two"):
        if strays:
            left_by_a_killed_maker(tmp_path / name / "customers", strays)
        several = warehouse(spark, f"{place}/{name}", tmp_path)
        with ThreadPoolExecutor(3) as threads:
            paths = set(threads.map(lambda _, to=several: tables.ensure(spark, to, "customers"), range(3)))
        assert [commit.version for path in paths for commit in commits.newest_first(spark, path)] == [0]


def test_who_was_slower_than_another_maker_finds_its_table(
    spark: SparkSession, empty: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was refused for is no error then, though its time is over and there was a log to sweep away."""
    create, earlier_tries = making._create, itertools.count()

    def slower(*arguments: Any) -> None:
        if next(earlier_tries):
            create(*arguments)
        raise AnalysisException("another maker was faster")

    monkeypatch.setattr(making, "_create", slower)
    assert spark.read.format("delta").load(tables.ensure(spark, empty, "daily_sales")).count() == 0


def test_who_is_still_making_a_table_is_not_swept_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no lock keeps others waiting: the log that appeared a moment ago gets its commit from its maker."""
    monkeypatch.setattr(making, "PATIENCE_SECONDS", 600.0)
    there = warehouse(spark, "viewfs:///disk{}", tmp_path)
    made = tables.ensure(spark, there.model_copy(update={"warehouse": str(tmp_path / "else")}), "customers")
    log = left_by_a_killed_maker(tmp_path / "customers")
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(tables.ensure, spark, there, "customers")
        with pytest.raises(TimeoutError):
            waiting.result(1)
        assert {path.name for path in log.iterdir()} >= set(STRAYS)
        (log / "00000000000000000000.json").write_bytes((Path(made) / "_delta_log" / f"{0:020d}.json").read_bytes())
        assert waiting.result(60) == tables.path_of(there, "customers")
    assert {path.name for path in log.iterdir()} >= set(STRAYS)

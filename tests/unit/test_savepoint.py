from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app import folders
from app.errors import QualityGateError
from app.savepoint import recover, savepoint
from app.settings import Settings, load_settings

KEY = "etl.x-2024-01-01"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A warehouse of its own."""
    return load_settings().model_copy(update={"home": tmp_path})


def ends(spark: SparkSession, settings: Settings, versions: dict[str, int], error: BaseException | None) -> list[str]:
    """What is put back when a block over tables of these versions ends so."""
    back: list[str] = []

    def put_back(name: str, version: int) -> None:
        back.append(f"{name}@{version}")

    expected, told = nullcontext() if error is None else pytest.raises(type(error)), back.append
    with expected, savepoint(spark, settings, KEY, versions=versions, put_back=put_back, tell=told):
        if error is not None:
            raise error
    return back


def recovered(spark: SparkSession, settings: Settings) -> list[str]:
    """What is put back, and told, before a rerun begins."""
    seen: list[str] = []
    recover(spark, settings, KEY, put_back=lambda name, version: seen.append(f"{name}@{version}"), tell=seen.append)
    return seen


def notes(settings: Settings) -> list[str]:
    """What waits for a rerun."""
    return [path.name for path in Path(settings.warehouse_path, "_savepoints").glob("*.json")]


@pytest.mark.parametrize("error", [QualityGateError("no"), OSError("disk"), ValueError("bug")])
def test_whatever_stops_the_block_puts_back_and_forgets(
    spark: SparkSession, settings: Settings, error: Exception
) -> None:
    """Every table goes back to its version at the start, be it a gate, the machine or a bug."""
    assert ends(spark, settings, {"a": 1, "b": 2}, error) == ["a@1", "b@2"]
    assert notes(settings) == []


def test_a_good_end_forgets(spark: SparkSession, settings: Settings) -> None:
    """Nothing goes back, and nothing waits."""
    assert ends(spark, settings, {"a": 1}, None) == []
    assert notes(settings) == []


def test_an_interruption_puts_back_and_is_remembered_by_the_next_try(spark: SparkSession, settings: Settings) -> None:
    """What Java was committing may still appear: the rerun knows the last good versions."""
    assert ends(spark, settings, {"a": 1}, KeyboardInterrupt()) == ["a@1"]
    assert notes(settings) == ["etl.x-2024-01-01.json"]
    assert ends(spark, settings, {"a": 7}, KeyboardInterrupt()) == ["a@1"]
    assert ends(spark, settings, {"a": 9}, QualityGateError("no")) == ["a@1"]
    assert notes(settings) == []


def test_a_savepoint_that_cannot_be_put_back_waits(spark: SparkSession, settings: Settings) -> None:
    """Where the putting back fails, that is told, what stopped the block is raised, and the next try does it."""
    told: list[str] = []

    def fail(_name: str, _version: int) -> None:
        raise OSError("disk")

    failing = savepoint(spark, settings, KEY, versions={"a": 1}, put_back=fail, tell=told.append)
    with pytest.raises(QualityGateError), failing:
        raise QualityGateError("no")
    assert told == ["could not put back the tables of etl.x-2024-01-01: run the date again, which does so"]
    assert ends(spark, settings, {"a": 7}, ValueError("bug")) == ["a@1"]
    assert notes(settings) == []


def test_what_was_left_is_put_back_before_a_rerun_begins(spark: SparkSession, settings: Settings) -> None:
    """Once, and it is told; where nothing was left, nothing is done."""
    assert recovered(spark, settings) == []
    ends(spark, settings, {"a": 1, "b": 2}, KeyboardInterrupt())
    told = f"a run of {KEY} did not end: a and b are as they were before it"
    assert recovered(spark, settings) == ["a@1", "b@2", told]
    assert notes(settings) == recovered(spark, settings) == []


def test_a_run_that_is_at_work_is_left_alone(spark: SparkSession, settings: Settings) -> None:
    """Its note is no leftover, and it is not waited for: it puts back what is its own."""
    ends(spark, settings, {"a": 1}, KeyboardInterrupt())
    with folders.alone(settings, KEY, note=pytest.fail):
        assert recovered(spark, settings) == []
    assert notes(settings) == [f"{KEY}.json"]


def test_where_no_lock_tells_who_is_at_work_nothing_is_put_back(spark: SparkSession, settings: Settings) -> None:
    """Not even asked: a warehouse elsewhere may have a living run of another machine."""
    assert recovered(spark, settings.model_copy(update={"warehouse": "s3a://shop/warehouse"})) == []


def test_what_cannot_be_put_back_keeps_no_rerun_from_its_work(spark: SparkSession, settings: Settings) -> None:
    """It is told, and waits for the savepoint of the rerun."""
    ends(spark, settings, {"a": 1}, KeyboardInterrupt())
    told: list[str] = []

    def fail(_name: str, _version: int) -> None:
        raise OSError("disk")

    recover(spark, settings, KEY, put_back=fail, tell=told.append)
    assert told == [f"could not put back the tables of {KEY}: run the date again, which does so"]
    assert ends(spark, settings, {"a": 7}, ValueError("bug")) == ["a@1"]

from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.errors import QualityGateError
from app.savepoint import savepoint
from app.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A warehouse of its own."""
    return load_settings().model_copy(update={"home": tmp_path})


def ends(spark: SparkSession, settings: Settings, versions: dict[str, int], error: BaseException | None) -> list[str]:
    """What is put back when a block over tables of these versions ends so."""
    back: list[str] = []

    def put_back(name: str, version: int) -> None:
        back.append(f"{name}@{version}")

    expected = nullcontext() if error is None else pytest.raises(type(error))
    with expected, savepoint(spark, settings, "etl.x-2024-01-01", versions=versions, put_back=put_back):
        if error is not None:
            raise error
    return back


def notes(settings: Settings) -> list[str]:
    """What waits for a rerun."""
    return [path.name for path in Path(settings.warehouse_path, "_savepoints").glob("*.json")]


def test_a_gate_puts_back_and_forgets(spark: SparkSession, settings: Settings) -> None:
    """Every table goes back to its version at the start."""
    assert ends(spark, settings, {"a": 1, "b": 2}, QualityGateError("no")) == ["a@1", "b@2"]
    assert notes(settings) == []


def test_a_good_end_forgets(spark: SparkSession, settings: Settings) -> None:
    """Nothing goes back, and nothing waits."""
    assert ends(spark, settings, {"a": 1}, None) == []
    assert notes(settings) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk"), ValueError("bug")])
def test_any_other_end_is_remembered_by_the_next_try(
    spark: SparkSession, settings: Settings, error: BaseException
) -> None:
    """The rerun knows the last good versions, not those that the broken run left."""
    assert ends(spark, settings, {"a": 1}, error) == []
    assert notes(settings) == ["etl.x-2024-01-01.json"]
    assert ends(spark, settings, {"a": 7}, error) == []
    assert ends(spark, settings, {"a": 9}, QualityGateError("no")) == ["a@1"]
    assert notes(settings) == []


def test_a_savepoint_that_cannot_be_put_back_waits(spark: SparkSession, settings: Settings) -> None:
    """Where the putting back fails, the note stays for the next try."""

    def fail(_name: str, _version: int) -> None:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"), savepoint(spark, settings, "k", versions={"a": 1}, put_back=fail):
        raise QualityGateError("no")
    assert notes(settings) == ["k.json"]

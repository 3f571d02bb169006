from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from app.settings import load_settings
from app.spark import session
from tests.unit.telemetry.memory import InMemory

LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""Java compiles lightly. With one compiler it reserves 48 MB for code by default; streaming queries fill that."""


@pytest.fixture(scope="session", autouse=True)
def light_java() -> Iterator[None]:
    """Each driver of a test compiles lightly: most see a handful of rows once, and compiling takes half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", LIGHT)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one local session of all tests in this process: small, without an event log, otherwise as in a run."""
    folder: Path = tmp_path_factory.mktemp("spark")
    small = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.memory": "1g",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    settings = load_settings().model_copy(update={"home": folder})
    started = session.start(settings, name="tests", log_file=folder / "spark.jsonl", extra=small)
    yield started
    session.stop(started)


@pytest.fixture(autouse=True)
def no_open_telemetry() -> Iterator[None]:
    """The telemetry that a test built is closed: what it redirects does not reach the tests after it."""
    yield
    while InMemory.opened:
        InMemory.opened.pop().telemetry.close()

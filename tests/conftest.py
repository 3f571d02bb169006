from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.settings import load_settings
from app.spark import session
from tests.unit.telemetry.memory import InMemory


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
        # Most tests see a handful of rows once: to compile for them would cost more than all else.
        # With one compiler Java reserves 48 MB for its code; streaming queries fill that, and then Java ends.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
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

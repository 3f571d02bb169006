import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.errors import MachineError
from spark_app.spark.kafka import source_options
from spark_app.spark.stream_errors import FailedQuery, stream_failure
from tests.kafka import Broker, running_broker

RECORDS = 4000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that the records do not fit on; needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker with some records that compress badly."""
    folder = tmp_path / "broker"
    folder.mkdir()
    with running_broker(folder) as running:
        running.create("user_events")
        running.send("user_events", (secrets.token_bytes(200) for _ in range(RECORDS)))
        yield running


def run(spark: SparkSession, broker: Broker, disk: Path) -> None:
    """Appends all records to a Delta table; table and checkpoint are on the disk."""
    source = spark.readStream.format("kafka").options(**source_options(broker.kafka)).option("subscribe", "user_events")
    writer = source.load().writeStream.format("delta").option("checkpointLocation", str(disk / "checkpoint"))
    writer.trigger(availableNow=True).start(str(disk / "table")).awaitTermination()


def test_a_query_goes_on_when_the_disk_has_room_again(spark: SparkSession, broker: Broker, disk: Path) -> None:
    """One line tells that the disk is full, and that a new start may help; then no record is missing or there twice."""
    with pytest.raises(PySparkException) as raised:
        run(spark, broker, disk)
    failure = stream_failure(raised.value, FailedQuery("streaming.x", broker.servers, ("user_events",), str(disk)))
    assert failure is not None
    assert (type(failure.error), failure.is_transient) == (MachineError, True)
    assert str(failure.error).startswith("streaming.x: the disk is full: ")
    assert "\n" not in str(failure.error)

    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
    run(spark, broker, disk)
    offsets = [row.offset for row in spark.read.format("delta").load(str(disk / "table")).select("offset").collect()]
    assert sorted(offsets) == list(range(RECORDS))

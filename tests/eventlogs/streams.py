"""Streaming queries as a stranger would write them: `python streams.py PROGRAM planted|quiet FOLDER`.

Nothing of this project is used. Each program runs for some seconds, once with a planted cause and once without it, in
two threads; FOLDER gets its files. `every_field` is there for the fields of the progress, with each Spark, and
`always_late` for a query that never waits for its trigger, under the hook of `spark-app observe`.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

EVENTS: Final = "at timestamp, key long, value string"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(name: str, **settings: str) -> SparkSession:
    """A session of two threads; `_` stands for a dot."""
    builder = SparkSession.builder.appName(name).master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {"sql_shuffle_partitions": "2", **settings}.items():
        builder = builder.config(f"spark.{key.replace('_', '.')}", value)
    return builder.getOrCreate()


def landed(folder: Path, *, files: int, rows: int, minutes: int) -> str:
    """JSON Lines files with events that are some minutes apart from file to file; one file is read at a time."""
    folder.mkdir(parents=True)
    for number in range(files):
        hour, minute = divmod(number * minutes, 60)
        at = f"2026-01-01T{hour:02}:{minute:02}:00Z"
        lines = (json.dumps({"at": at, "key": number * rows + row, "value": "x"}) for row in range(rows))
        file = folder / f"{number:05}.json"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(file, (1.7e9 + number, 1.7e9 + number))  # files are read in the order of these times
    return str(folder)


def files_of(spark: SparkSession, folder: str) -> DataFrame:
    """The events of files, one file for each batch."""
    return spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(folder)


def drain(rows: DataFrame, folder: Path, name: str, **trigger: Any) -> None:
    """Reads what there is, and ends."""
    writer = rows.writeStream.queryName(name).format("noop").trigger(**(trigger or {"availableNow": True}))
    writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).start().awaitTermination()


def every_field(folder: Path, *, is_planted: bool) -> None:
    """Duplicates are dropped, windows are counted, values are observed."""
    spark = session("every field", sql_streaming_stateStore_providerClass=ROCKSDB)
    events = files_of(spark, landed(folder / "events", files=4, rows=20, minutes=30))
    events = events.observe("rows", F.count(F.lit(1)).alias("read"), F.collect_set("value").alias("values"))
    unique = events.withWatermark("at", "10 minutes").dropDuplicates(["key", "at"])
    drain(unique.groupBy(F.window("at", "10 minutes")).count(), folder, "counts")
    spark.stop()


def rate(spark: SparkSession, rows: int) -> DataFrame:
    """So many rows in each batch, with a number each."""
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(rows)).load()


def served(column: str) -> Column:
    """What a service of the JVM says of a row, which takes a millisecond: a column of the length of its answer."""
    return F.length(F.expr("reflect('java.lang.Thread', 'sleep', 1L)")) + F.col(column) % 7


def run(rows: DataFrame, folder: Path, name: str, *, batches: int, mode: str = "append", **trigger: Any) -> None:
    """Runs a query for so many batches."""
    writer = rows.writeStream.queryName(name).format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.outputMode(mode).trigger(**(trigger or {"processingTime": "0 seconds"})).start()
    while (query.lastProgress or {"batchId": 0})["batchId"] < batches:
        query.awaitTermination(1)
    query.stop()


def batch_longer_than_trigger(folder: Path, *, is_planted: bool) -> None:
    """After a while a service is asked about all rows of a batch, which does not fit into two seconds."""
    spark = session("prices")
    is_asked = F.col("value") % 8 == 0
    if is_planted:
        is_asked |= F.col("value") >= 12 * 5200
    rows = rate(spark, 5200).select(F.when(is_asked, served("value")))
    run(rows, folder, "prices", batches=16, processingTime="2 seconds")
    spark.stop()


def always_late(folder: Path, *, is_planted: bool) -> None:
    """Each batch takes 3.4 seconds at a trigger of one: it waits for a service while it writes."""
    spark = session("late")

    def write(rows: DataFrame, _: int) -> None:
        rows.count()
        time.sleep(3.4)

    writer = spark.readStream.format("rate").load().writeStream.queryName("late").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 second")
    query = writer.start()
    while (query.lastProgress or {"batchId": 0})["batchId"] < 5:
        query.awaitTermination(1)
    query.stop()
    spark.stop()


def topic(spark: SparkSession, per_second: int, *, at_once: int, wait: float = 0) -> DataFrame:
    """A topic that gets so many records per second; offsets are those of Kafka, and a batch takes some at once."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition  # Spark 3.5 has none

    class Reader(DataSourceStreamReader):
        def __init__(self) -> None:
            self.began = time.time()

        def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
            return {"orders": {"0": 0}}

        def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
            return {"orders": {"0": int((time.time() - self.began) * per_second)}}

        def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
            time.sleep(wait)
            last = self.reportLatestOffset()["orders"]["0"]
            return {"orders": {"0": min(last, start["orders"]["0"] + at_once)}}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            return [InputPartition((start["orders"]["0"], end["orders"]["0"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((number,) for number in range(*partition.value))

    class Topic(DataSource):
        @classmethod
        def name(cls) -> str:
            return "topic"

        def schema(self) -> str:
            return "value long"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return Reader()

    spark.dataSource.register(Topic)
    return spark.readStream.format("topic").load()


def falling_behind(folder: Path, *, is_planted: bool) -> None:
    """A topic gets five times as many records as a limit of somebody lets a batch take, or there is no limit."""
    spark = session("orders")
    orders = topic(spark, 12_000, at_once=1200 if is_planted else 100_000)
    run(orders, folder, "orders", batches=20, processingTime="500 milliseconds")
    spark.stop()


def batch_overhead(folder: Path, *, is_planted: bool) -> None:
    """A source that takes its time to say what is new."""
    spark = session("slow source")
    rows = topic(spark, 6000, at_once=20_000, wait=1.5 if is_planted else 0)
    run(rows.select(F.hash("value")), folder, "slow source", batches=11)
    spark.stop()


def growing_state(folder: Path, *, is_planted: bool) -> None:
    """Keys that are remembered for ever, or for ten minutes."""
    spark = session("unique")
    events = files_of(spark, landed(folder / "events", files=26, rows=6000, minutes=30))
    keys = events.dropDuplicates(["key"])
    if not is_planted:
        keys = events.withWatermark("at", "10 minutes").dropDuplicatesWithinWatermark(["key"])
    drain(keys, folder, "unique")
    spark.stop()


def stalled_watermark(folder: Path, *, is_planted: bool) -> None:
    """Two sources, of which one stops to bring rows."""
    spark = session("both")
    many = landed(folder / "many", files=14, rows=1500, minutes=30)
    other = landed(folder / "other", files=1 if is_planted else 14, rows=1500, minutes=30)
    sources = [files_of(spark, source).withWatermark("at", "10 minutes") for source in (many, other)]
    run(sources[0].union(sources[1]).groupBy(F.window("at", "10 minutes")).count(), folder, "both", batches=14)
    spark.stop()


def tiny_batches(folder: Path, *, is_planted: bool) -> None:
    """Files of a few rows, or of many; a service is asked about each fifth."""
    spark = session("few rows")
    events = files_of(spark, landed(folder / "events", files=24, rows=5 if is_planted else 2000, minutes=1))
    drain(events.select(F.when(F.col("key") % 5 == 0, served("key"))), folder, "few rows")
    spark.stop()


def skewed_state(folder: Path, *, is_planted: bool) -> None:
    """Visits of pages in each batch, of which nearly all are of one; a service is told of each visit."""
    spark = session("visits", sql_shuffle_partitions="4")
    page, part = F.col("value") % 64, F.floor(F.col("value") / 1500)
    pages = F.when(F.col("value") % 100 < 97, 0).otherwise(page) if is_planted else page
    visits = rate(spark, 1500).groupBy(pages.alias("page"), part.alias("part")).agg(F.count("value").alias("visits"))
    told = visits.select("page", F.expr("reflect('java.lang.Thread', 'sleep', visits)"))
    run(told, folder, "visits", batches=11, mode="update")
    spark.stop()


def many_state_partitions(folder: Path, *, is_planted: bool) -> None:
    """Counts of a few keys in forty partitions, or in two."""
    spark = session("counts", sql_shuffle_partitions="40" if is_planted else "2")
    keys = rate(spark, 2000).groupBy((F.col("value") % 1000).alias("key")).count()
    run(keys, folder, "counts", batches=14, mode="complete")
    spark.stop()


PROGRAMS: Final[dict[str, Callable[..., None]]] = {
    program.__name__: program
    for program in (
        every_field,
        always_late,
        batch_longer_than_trigger,
        falling_behind,
        growing_state,
        stalled_watermark,
        tiny_batches,
        batch_overhead,
        skewed_state,
        many_state_partitions,
    )
}
"""The programs; but for the first two, by the rule that must report the cause of each."""


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Path(sys.argv[3]), is_planted=sys.argv[2] == "planted")

"""Streaming queries that read what there is, and end: so both twins do the same work, and can be timed."""

import json
import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from truth.programs.common import digest, hashed, main, place, session

EVENTS = "at timestamp, key long, value string"


def landed(folder: Path, *, files: int, rows: int) -> str:
    """JSON Lines files, in the order in which they came, with rows in all."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        lines = (
            json.dumps({"at": f"2026-01-01T{row % 24:02}:00:00Z", "key": row, "value": "x"})
            for row in range(number, rows, files)
        )
        file = folder / f"{number:05}.json"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(file, (1.7e9 + number, 1.7e9 + number))
    return str(folder)


def tiny_batches(*, planted: bool, files: int = 60, rows: int = 3000) -> None:
    """Files with few rows, one in each batch, or all in one."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("events")
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1" if planted else str(files)).json(source)
    with place(spark):
        writer = read.select("key", digest("key")).writeStream.queryName("events").format("noop")
        writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def state_partitions(*, planted: bool, files: int = 12, rows: int = 6000, partitions: int = 100) -> None:
    """Counts by a thousand keys, whose state is in many partitions or in two."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("counts", sql_shuffle_partitions=str(partitions if planted else 2))
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(source)
    with place(spark):
        counts = read.groupBy((F.col("key") % 1000).alias("key")).count()
        writer = counts.writeStream.queryName("counts").format("noop").outputMode("complete")
        writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def small_files(*, planted: bool, files: int = 20, rows: int = 4000, partitions: int = 60) -> None:
    """Batches that write a file for each of some partitions, or one."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("copy")
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(source)
    with place(spark):
        writer = read.repartition(partitions if planted else 1).writeStream.queryName("copy").format("json")
        query = writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start("out")
        query.awaitTermination()
    spark.stop()


def external_wait(*, planted: bool, files: int = 4, rows: int = 8000) -> None:
    """Batches of rows about which a service is asked, which takes two milliseconds; or none is."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("answers")
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(source)

    def asked(batches: Any) -> Any:
        for batch in batches:
            if planted:
                time.sleep(0.002 * len(batch))
            yield batch.assign(answer=batch["key"].map(hashed))[["key", "answer"]]

    with place(spark):
        answers = read.repartition(2).mapInPandas(asked, "key long, answer long")
        writer = answers.writeStream.queryName("answers").format("noop").option("checkpointLocation", "checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def row_udf(*, planted: bool, files: int = 4, rows: int = 40_000, times: int = 300) -> None:
    """The checks of numbers of each row's days: by a Python function for each, or by Spark."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("checks", sql_execution_pythonUDF_arrow_enabled="false")
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(source).repartition(2)
    numbers = read.select(F.explode(F.sequence("key", F.col("key") + times - 1)).alias("number"))
    check: Any = F.udf(lambda number: (number * 31 + 7) % 65537, "long")
    with place(spark):
        checked = numbers.select(check("number") if planted else F.expr("(number * 31 + 7) % 65537"))
        writer = checked.writeStream.queryName("checks").format("noop").option("checkpointLocation", "checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def two_sinks(*, planted: bool, files: int = 5, rows: int = 10_000) -> None:
    """Batches that are counted and written twice; their rows are computed by each of these, or kept."""
    source = landed(Path("events"), files=files, rows=rows)
    spark = session("sinks")

    def sinks(batch: DataFrame, _: int) -> None:
        if not planted:
            batch = batch.persist()
        if batch.count():
            batch.write.mode("append").parquet("all")
            batch.where("key % 10 = 0").write.mode("append").parquet("some")
        batch.unpersist()

    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(source).repartition(2)
    with place(spark):
        scored = read.withColumn("score", F.udf(lambda key: hashed(key, 500), "int")("key"))
        writer = scored.writeStream.queryName("sinks").foreachBatch(sinks).option("checkpointLocation", "checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def late_windows(*, planted: bool, files: int = 14, rows: int = 84_000) -> None:
    """Counts of quarters of an hour, written when events are a day newer, or at once; a batch has half an hour."""
    folder = Path("events")
    folder.mkdir(exist_ok=True)
    for number in range(files):
        hour, minute = divmod(30 * number, 60)
        line = json.dumps({"at": f"2026-01-01T{hour:02}:{minute:02}:00Z", "key": number, "value": "x"})
        file = folder / f"{number:05}.json"
        file.write_text(f"{line}\n" * (rows // files), encoding="utf-8")
        os.utime(file, (1.7e9 + number, 1.7e9 + number))
    spark = session("windows", sql_shuffle_partitions="2")
    read = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", "1").json(str(folder))
    with place(spark):
        late = read.withWatermark("at", "24 hours" if planted else "5 minutes")
        counts = late.groupBy(F.window("at", "15 minutes")).count()
        writer = counts.writeStream.queryName("windows").format("json").outputMode("append")
        query = writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start("out")
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(tiny_batches, state_partitions, small_files, external_wait, row_udf, two_sinks, late_windows)

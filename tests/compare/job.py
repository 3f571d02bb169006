"""A small program whose runs are compared: `python job.py FOLDER PLANTED...`; PLANTED is JSON of what is out of order.

Most of its time it waits for a service at a fixed pace, so that it takes as long on a busy machine as on a calm one. It
needs nothing of this project, and no Python workers but for a planted function.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def main(folder: str, planted: dict[str, Any]) -> None:
    """Does the work once, with what is planted."""
    spark = SparkSession.builder.appName("shop").getOrCreate()
    context = spark.sparkContext
    sales = spark.read.parquet(f"{folder}/{planted.get('sales', 'sales')}")
    products = spark.read.parquet(f"{folder}/products")
    other = threading.Thread(target=occupy, args=(spark, planted.get("occupied_seconds", 0)))
    other.start()
    while not context.statusTracker().getActiveJobsIds() and other.is_alive():
        time.sleep(0.01)
    prices = asked() + failing() if "is_failing" in planted else asked()
    if "slow_milliseconds" in planted:
        prices = F.udf(slow_price(planted["slow_milliseconds"]), "int")(prices)
    hinted = products.hint(planted["hint"]) if "hint" in planted else products
    total(context, "price the sales", sales.join(hinted, "product").select(prices.alias("price"), "name"))
    time.sleep(planted.get("driver_seconds", 0))
    scores = asked() + collected(planted["collected_every"]) if "collected_every" in planted else asked()
    if "killed_seconds" in planted:
        threading.Timer(planted["killed_seconds"], kill_an_executor, [context]).start()
    total(context, "score the shops", sales.repartition("shop").select(scores.alias("score"), "sale"))
    if "sorted_rows" in planted:
        total(context, "rank the sales", ranked(spark, planted["sorted_rows"]))
    context.setJobDescription("count the lines")
    context._jsc.textFile(planted["lines"]).count()
    other.join()
    spark.stop()


def asked(milliseconds: int = 1) -> Column:
    """What a service answers, that takes its time for each row: a column of the length of its answer."""
    return F.length(F.expr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)")).alias("answer")


def collected(every: int) -> Column:
    """What a library costs that asks for a garbage collection every so many rows: a column of no meaning."""
    return F.when(F.col("sale") % every == 0, F.length(F.expr("reflect('java.lang.System', 'gc')"))).otherwise(0)


def failing() -> Column:
    """Fails the first two attempts of each task at the last row of its file, by marks that are left in the JVM."""
    mark = "reflect('java.lang.System', 'setProperty', concat('{} time ', spark_partition_id()), 'x') = 'null'"
    is_early = F.expr(mark.format("first")) | F.expr(mark.format("second"))
    failure = F.raise_error(F.lit("the first attempts fail on purpose")).cast("int")
    return F.when(F.col("is_last") & is_early, failure).otherwise(0)


def slow_price(milliseconds: int) -> Callable[[int], int]:
    """A Python function that takes its time for each row."""

    def price(answer: int) -> int:
        time.sleep(milliseconds / 1000)
        return answer

    return price


def total(context: Any, description: str, rows: DataFrame) -> None:
    """Has all rows made."""
    context.setJobDescription(description)
    rows.agg(F.sum(rows.columns[0]), F.max(rows.columns[1])).collect()


def ranked(spark: SparkSession, rows: int) -> DataFrame:
    """Numbers with their rank among those that are like them."""
    numbers = spark.range(rows, numPartitions=4).select(
        F.hash("id").alias("number"), (F.col("id") % 40).alias("kind"), F.repeat(F.lit("a note "), 10).alias("note")
    )
    like = Window.partitionBy("kind").orderBy("number")
    return numbers.select(F.row_number().over(like).alias("rank"), "note")


def occupy(spark: SparkSession, seconds: float) -> None:
    """Another job that holds all cores for a time."""
    if seconds:
        cores = spark.sparkContext.defaultParallelism
        rows = spark.range(cores, numPartitions=cores).select(asked(int(seconds * 1000)), "id")
        total(spark.sparkContext, "a job of somebody else", rows)


def kill_an_executor(context: Any) -> None:
    """Kills one of the executors, which in a local cluster are children of the JVM of the driver, beside short ones."""
    driver = context._gateway.proc.pid
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # a process may go while it is looked at
            above = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            if above == driver and b"ExecutorBackend" in stat.with_name("cmdline").read_bytes():
                os.kill(int(stat.parent.name), signal.SIGKILL)
                return
    raise ProcessLookupError(f"no executor is a child of the driver {driver}")


if __name__ == "__main__":
    for each in sys.argv[2:]:
        main(sys.argv[1], json.loads(each))

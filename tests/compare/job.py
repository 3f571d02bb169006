"""A small program whose runs are compared: `python job.py FOLDER PLANTED`; PLANTED is JSON of what is out of order.

Most of its time it waits for a service at a fixed pace, so that it takes as long on a busy machine as on a calm one. It
needs nothing of this project, and no Python worker where it can do without.
"""

import json
import sys
import threading
import time
from typing import Any

from pyspark import TaskContext
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
    total(context, "price the sales", sales.join(products, "product").select(asked(), "name"))
    time.sleep(planted.get("driver_seconds", 0))
    scores = asked() + collected(planted["collected_every"]) if "collected_every" in planted else asked()
    total(context, "score the shops", sales.repartition(8, "shop").select(scores.alias("score"), "sale"))
    if "sorted_rows" in planted:
        total(context, "rank the sales", ranked(spark, planted["sorted_rows"]))
    if "lines" in planted:
        context.setJobDescription("count the lines")
        context._jsc.textFile(planted["lines"]).count()
    if "lost_seconds" in planted:
        context.setJobDescription("check the sums")
        context.parallelize(range(8), 8).map(lambda number: checked(number, planted["lost_seconds"])).collect()
    other.join()
    spark.stop()


def asked(milliseconds: int = 1) -> Column:
    """What a service answers, that takes its time for each row: a column of the length of its answer."""
    return F.length(F.expr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)")).alias("answer")


def collected(every: int) -> Column:
    """What a library costs that asks for a garbage collection every so many rows: a column of no meaning."""
    return F.when(F.col("sale") % every == 0, F.length(F.expr("reflect('java.lang.System', 'gc')"))).otherwise(0)


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


def checked(number: int, lost_seconds: float) -> int:
    """A little work; the first attempt of half of the tasks fails when it is done."""
    context = TaskContext.get()
    if lost_seconds and number < 4 and context is not None and context.attemptNumber() == 0:
        time.sleep(lost_seconds)
        raise RuntimeError("the first attempt fails on purpose")
    return number


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

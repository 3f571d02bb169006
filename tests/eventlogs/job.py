"""A small program with most of what Spark can do: the event logs of it are what the readers are tested with.

It runs with any PySpark from 3.5 on, alone, and needs nothing of this project.
"""

import contextlib
import sys

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(folder: str) -> None:
    """Runs every kind of work once; one query fails on purpose."""
    spark = SparkSession.builder.appName("golden").getOrCreate()
    context = spark.sparkContext
    numbers = spark.range(2000).withColumn("key", F.col("id") % 7)
    context.setLocalProperty("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    context.setJobDescription("a join and an aggregate, written")
    names = spark.createDataFrame([(key, f"name {key}") for key in range(7)], ["key", "name"])
    numbers.join(names, "key").groupBy("name").agg(F.sum("id")).write.mode("overwrite").parquet(f"{folder}/sums")
    context.setLocalProperty("traceparent", None)  # type: ignore[arg-type]
    context.setJobDescription(None)
    context.setJobGroup("cached", "read twice")
    cached = numbers.where("id % 2 = 0").cache()
    cached.count()
    cached.groupBy("key").count().collect()
    cached.unpersist(blocking=True)
    context.setJobGroup(None, None)
    doubled = F.udf(lambda number: number * 2, "long")
    numbers.select(F.max(doubled("id"))).collect()
    pairs = context.parallelize(range(100), 4).map(lambda number: (number % 3, number))
    sums = pairs.reduceByKey(lambda one, other: one + other)
    sums.count()
    sums.collect()  # its first stage is skipped: the shuffle is there
    context.parallelize(range(4), 2).map(fails_once).collect()
    with contextlib.suppress(Exception):
        numbers.select(F.raise_error(F.lit("this query fails on purpose")).cast("int")).collect()
    spark.stop()


def fails_once(number: int) -> int:
    """Fails in the first attempt of the first task."""
    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails on purpose")
    return number


if __name__ == "__main__":
    main(sys.argv[1])

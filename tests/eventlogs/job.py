"""A small program with most of what Spark can do: the event logs of it are what the readers are tested with.

It runs with any PySpark from 3.5 on, alone, and needs nothing of this project.
"""

import contextlib
import sys

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def main(folder: str) -> None:
    """Runs every kind of work once; some of it fails on purpose."""
    spark = SparkSession.builder.appName("golden").getOrCreate()
    numbers = spark.range(2000).withColumn("key", F.col("id") % 7)
    a_step(spark, numbers, folder)
    cached(spark, numbers)
    rdds(spark)
    spark.sql(f"CREATE TABLE sums USING parquet LOCATION '{folder}/table' AS SELECT * FROM parquet.`{folder}/sums`")
    stream(spark, folder)
    failures(spark, numbers)
    spark.stop()


def a_step(spark: SparkSession, numbers: DataFrame, folder: str) -> None:
    """A join and an aggregate, written below a span that somebody else made."""
    context = spark.sparkContext
    context.setLocalProperty("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    context.setJobDescription("a join and an aggregate, written")
    names = spark.createDataFrame([(key, f"name {key}") for key in range(7)], ["key", "name"])
    numbers.join(names, "key").groupBy("name").agg(F.sum("id")).write.mode("overwrite").parquet(f"{folder}/sums")
    context.setLocalProperty("traceparent", None)  # type: ignore[arg-type]
    context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def cached(spark: SparkSession, numbers: DataFrame) -> None:
    """Read twice, computed once; a group of jobs."""
    spark.sparkContext.setJobGroup("cached", "read twice")
    even = numbers.where("id % 2 = 0").cache()
    even.count()
    even.groupBy("key").count().collect()
    even.unpersist(blocking=True)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def rdds(spark: SparkSession) -> None:
    """Jobs without SQL: a shuffle that is there the second time, and a task that fails once."""
    pairs = spark.sparkContext.parallelize(range(100), 4).map(lambda number: (number % 3, number))
    sums = pairs.reduceByKey(lambda one, other: one + other)
    sums.count()
    sums.collect()
    spark.sparkContext.parallelize(range(4), 2).map(fails_once).collect()


def stream(spark: SparkSession, folder: str) -> None:
    """Three batches, a file each."""
    spark.range(30).repartition(3).write.parquet(f"{folder}/files")
    files = spark.readStream.schema("id long").option("maxFilesPerTrigger", "1").parquet(f"{folder}/files")
    begun = files.writeStream.queryName("copied").format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    begun.trigger(availableNow=True).start().awaitTermination()


def failures(spark: SparkSession, numbers: DataFrame) -> None:
    """An error of Spark's own, and one of a Python function."""
    with contextlib.suppress(Exception):
        numbers.select(F.raise_error(F.lit("this query fails on purpose")).cast("int")).collect()
    with contextlib.suppress(Exception):
        spark.range(1).select(F.udf(fails, "long")("id")).collect()


def fails(number: int) -> int:
    """An error that is the user's own."""
    raise LookupError(f"no number {number}")


def fails_once(number: int) -> int:
    """Fails in the first attempt of the first task."""
    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails on purpose")
    return number


if __name__ == "__main__":
    main(sys.argv[1])

"""A job that knows nothing of spark-app: one key has nearly all rows, a partition spills, a task fails once.

It runs in a container of the cluster with `python -c` and the default configuration of Spark there.
"""

from collections.abc import Iterable

from pyspark import TaskContext
from pyspark.sql import SparkSession

ROWS = 6_000_000
HASHES = 12
"""Work on each row: the one long task costs 15 s and more, so that a fast machine reports it too (from 5 s on)."""


def fails_once(rows: Iterable[int]) -> Iterable[int]:
    """Fails in the first attempt of the first partition."""
    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails on purpose")
    return rows


builder = SparkSession.builder.appName("skewed").config("spark.sql.adaptive.enabled", "false")
builder = builder.config("spark.shuffle.spill.numElementsForceSpillThreshold", "1000000")
spark = builder.getOrCreate()
rows = spark.range(0, ROWS, 1, 8).selectExpr("CASE WHEN id % 50 < 49 THEN 0 ELSE id % 640 END AS key", "id")
hashes = f"{'sha2(' * HASHES}string(id){', 512)' * HASHES} AS hash"
hot = rows.repartition(64, "key").sortWithinPartitions("id").selectExpr("key", hashes)
hot.groupBy("key").agg({"hash": "max"}).write.format("noop").mode("overwrite").save()
spark.range(1000).mapInPandas(lambda frames: frames, "id long").write.format("noop").mode("overwrite").save()
spark.sparkContext.parallelize(range(4), 2).mapPartitions(fails_once).count()
spark.stop()

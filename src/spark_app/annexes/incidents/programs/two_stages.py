"""A count by key of rows with work in them: a short stage, then one in which an executor may go."""

import sys

from pyspark.sql import SparkSession

HASHES = 24

spark = SparkSession.builder.appName(sys.argv[1]).getOrCreate()
spark.range(0, 100_000, 1, 8).selectExpr("max(sha2(string(id), 256))").collect()
print("first stage done", flush=True)
value = f"{'sha2(' * HASHES}string(id){', 512)' * HASHES} AS value"
rows = spark.range(0, 3_000_000, 1, 24).selectExpr("id % 7 AS key", value)
rows.repartition(16, "key").groupBy("key").agg({"value": "max"}).write.format("noop").mode("overwrite").save()
spark.stop()

"""Sales with their shops: one shop has nearly all sales, so that one task of the join does nearly all the work."""

import sys

from pyspark.sql import SparkSession

ROWS = 2_000_000
HASHES = 12
"""Work on each row: the one long task costs 10 s and more, so that a fast machine reports it too (from 5 s on)."""

builder = SparkSession.builder.appName(sys.argv[1]).config("spark.sql.autoBroadcastJoinThreshold", "-1")
# As if the rows of the shop did not fit into memory, on any machine.
builder = builder.config("spark.shuffle.spill.numElementsForceSpillThreshold", "500000")
spark = builder.config("spark.sql.adaptive.enabled", "false").getOrCreate()
shops = spark.range(640).selectExpr("id AS shop", "concat('shop ', id) AS name")
sales = spark.range(0, ROWS, 1, 8).selectExpr("CASE WHEN id % 50 < 49 THEN 0 ELSE id % 640 END AS shop", "id")
receipt = f"{'sha2(' * HASHES}concat(name, id){', 512)' * HASHES} AS receipt"
joined = sales.repartition(32, "shop").join(shops.repartition(32, "shop"), "shop").selectExpr("shop", receipt)
joined.write.format("noop").mode("overwrite").save()
spark.stop()

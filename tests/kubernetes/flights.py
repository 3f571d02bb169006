"""Plain PySpark, as anybody writes it: it knows nothing of spark-app."""

import logging

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("flights").getOrCreate()
flights = spark.range(2_000_000, numPartitions=8).select((F.col("id") % 97).alias("airport"), F.rand(7).alias("delay"))
delays = flights.groupBy("airport").agg(F.avg("delay").alias("delay"), F.count("*").alias("flights"))
logging.getLogger("flights").warning("%d airports", delays.count())
print("airports:", len(delays.collect()))  # noqa: T201
spark.stop()

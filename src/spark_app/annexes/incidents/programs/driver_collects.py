"""Totals of sales by shop, which the driver computes of the rows themselves: of one day, then of all days."""

import sys
from collections import Counter

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ROWS_OF_A_DAY = 1_600_000
DAYS = 3

spark = SparkSession.builder.appName(sys.argv[1]).config("spark.driver.maxResultSize", "200m").getOrCreate()
for days in (1, DAYS):
    sales = spark.range(0, days * ROWS_OF_A_DAY, 1, 4)
    totals: Counter[int] = Counter()
    for row in sales.select("id", F.sha2(F.hex("id"), 256).alias("receipt")).collect():
        totals[row.id % 64] += len(row.receipt)
    print(f"{days} days: {totals.total()}", flush=True)
spark.stop()

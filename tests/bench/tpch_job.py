"""Queries of TPC-H on small tables, without a setting of its own: `tests/bench/tpch_job.py CUSTOMERS QUERY...`.

Tables and queries are those of `truth.programs.tpch`.
"""

import sys

from pyspark.sql import SparkSession

from truth.programs.tpch import QUERIES, tables


def main() -> None:
    """Runs each query to its end."""
    customers, *names = sys.argv[1:]
    spark = SparkSession.builder.appName("tpch").getOrCreate()
    tables(spark, int(customers))
    for name in names:
        spark.sql(QUERIES[name]).collect()
    spark.stop()


if __name__ == "__main__":
    main()

"""Queries of the benchmark TPC-H, on rows of its tables that are made up: with what somebody has done to them.

The queries are Q1, Q3, Q5, Q6, Q12 and Q18 with their default parameters, in Spark's words.
"""

from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from truth.programs.common import main, place, session

SQL: Final = Path(__file__).with_name("tpch.sql").read_text(encoding="utf-8")
PRICE: Final = "l_extendedprice * (1 - l_discount)"


def texts(kind: str, sql: str) -> dict[str, str]:
    """The tables or the queries of a file by their names."""
    parts = [part.partition("\n") for part in sql.split("-- ")]
    words = {tuple(first.split()): text for first, _, text in parts}
    return {first[1]: text for first, text in words.items() if first[:1] == (kind,)}


QUERIES: Final = texts("query", SQL)


def tables(spark: SparkSession, customers: int) -> None:
    """The tables as views."""
    for name, rows in texts("table", SQL).items():
        spark.sql(rows.format(customers=customers)).createOrReplaceTempView(name)


def too_many(*, planted: bool, customers: int = 15_000, partitions: int = 800) -> None:
    """Q3, Q5 and Q18 of small tables, in the number of partitions that was right for large ones."""
    settings = {"sql_shuffle_partitions": str(partitions if planted else 4), "sql_adaptive_enabled": "false"}
    spark = session("tpch", **settings)
    tables(spark, customers)
    with place(spark):
        for name in ("Q3", "Q5", "Q18"):
            spark.sql(QUERIES[name]).collect()
    spark.stop()


def row_udf(*, planted: bool, customers: int = 200_000) -> None:
    """Q1 with prices by a Python function."""
    spark = session("tpch", sql_execution_pythonUDF_arrow_enabled="false")
    tables(spark, customers)
    if planted:
        price: Any = F.udf(lambda full, discount: full * (1 - discount), "double")
        spark.udf.register("discounted", price)
    query = QUERIES["Q1"]
    if planted:
        query = query.replace(PRICE, "discounted(l_extendedprice, l_discount)")
    with place(spark):
        spark.sql(query).collect()
    spark.stop()


def repeated_scan(*, planted: bool, customers: int = 30_000) -> None:
    """Q1, Q6 and Q12 for each of some ship modes, of lines in CSV files, which are read for each or kept."""
    spark = session("tpch")
    tables(spark, customers)
    lines = spark.table("lineitem")
    folder = str(Path("lineitem").absolute())
    lines.write.mode("overwrite").csv(folder)
    read = spark.read.schema(lines.schema).csv(folder)
    (read if planted else read.cache()).createOrReplaceTempView("lineitem")
    with place(spark):
        for _ in range(3):
            for name in ("Q1", "Q6", "Q12"):
                spark.sql(QUERIES[name]).collect()
    spark.stop()


if __name__ == "__main__":
    main(too_many, row_udf, repeated_scan)

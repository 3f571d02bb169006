"""Queries of the benchmark TPC-DS, on rows of its tables that are made up: with what somebody has done to them.

The queries are Q3, Q42 and Q52, in Spark's words.
"""

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from truth.programs.common import main, place, session
from truth.programs.tpch import texts

SQL: Final = Path(__file__).with_name("tpcds.sql").read_text(encoding="utf-8")
QUERIES: Final = texts("query", SQL)


def tables(spark: SparkSession, sales: int) -> None:
    """The tables as views."""
    for name, rows in texts("table", SQL).items():
        spark.sql(rows.format(sales=sales)).createOrReplaceTempView(name)


def too_many(*, planted: bool, sales: int = 400_000, partitions: int = 1500) -> None:
    """The queries by shuffled joins of few rows, in the number of partitions that was right for many."""
    settings = {"sql_adaptive_enabled": "false", "sql_autoBroadcastJoinThreshold": "-1"}
    spark = session("tpcds", sql_shuffle_partitions=str(partitions if planted else 4), **settings)
    tables(spark, sales)
    with place(spark):
        for name in ("Q3", "Q42"):
            spark.sql(QUERIES[name]).collect()
    spark.stop()


def unpruned(*, planted: bool, days: int = 120, sales: int = 10_000_000) -> None:
    """Q42 and Q52 of sales in a folder for each day, without dynamic partition pruning."""
    first = 2450815 + 974  # the 1st of September 2000
    for day in range(days):
        folder = Path(f"store_sales/ss_sold_date_sk={first + day}")
        folder.mkdir(parents=True)
        lines = (f"{row * 37 % 18000},{row},{row % 20000 / 100}" for row in range(sales // days))
        (folder / "part-0.csv").write_text("\n".join(lines), encoding="utf-8")
    spark = session("tpcds", sql_optimizer_dynamicPartitionPruning_enabled=str(not planted).lower())
    tables(spark, 0)
    columns = "ss_item_sk int, ss_ticket_number long, ss_ext_sales_price double, ss_sold_date_sk int"
    spark.read.schema(columns).csv("store_sales").createOrReplaceTempView("store_sales")
    with place(spark):
        for name in ("Q42", "Q52"):
            spark.sql(QUERIES[name]).collect()
    spark.stop()


if __name__ == "__main__":
    main(too_many, unpruned)

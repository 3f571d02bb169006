"""The daily run as a plain PySpark script: the yardstick of `python -m tests.bench plain`.

It reads the same raw files and writes the same Delta tables as `spark-app etl`, the way most teams write such a job:
no expectations, no reconciliation, no telemetry, no event log. It stands by itself and imports nothing of `app`.

    python plain_script.py RAW WAREHOUSE DATE SPARK_DEFAULTS
"""

import json
import sys
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

TRANSACTION = """transaction_id string, customer_id string, product_id string, category string, quantity int,
    amount decimal(12, 2), currency string, status string, payment_method string, channel string, country string,
    created_at timestamp, updated_at timestamp"""
CUSTOMER = "customer_id string, segment string, country string, signed_up_at timestamp, updated_at timestamp"
REQUIRED = ["transaction_id", "customer_id", "amount", "currency", "status", "category", "created_at", "updated_at"]
STATUSES = ["completed", "pending", "failed", "refunded"]
SEGMENTS = ["consumer", "business", "vip"]
CURRENCY = "EUR"


def start_session(defaults: Path) -> SparkSession:
    """A local session with the project's Spark properties, without event log and log configuration."""
    builder = SparkSession.builder.master("local[*]").appName("plain daily sales")
    for line in defaults.read_text(encoding="utf-8").splitlines():
        name, _, value = line.strip().partition(" ")
        if name.startswith("spark.") and not name.startswith(("spark.eventLog.", "spark.driver.extraJavaOptions")):
            builder = builder.config(name, value.strip())
    return builder.getOrCreate()


def raw_rows(spark: SparkSession, folder: str, columns: str) -> DataFrame:
    """The JSON lines of a day; a line that does not fit the schema keeps its text in `_corrupt_record`."""
    return spark.read.schema(f"{columns}, _corrupt_record string").json(folder)


def has_values(names: list[str]) -> Column:
    """Whether a row parsed and none of these columns is null."""
    condition = F.col("_corrupt_record").isNull()
    for name in names:
        condition &= F.col(name).isNotNull()
    return condition


def replace_day(rows: DataFrame, path: str, column: str, date: str) -> None:
    """Overwrites the partition of one day."""
    writer = rows.write.format("delta").mode("overwrite").partitionBy(column)
    writer.option("replaceWhere", f"{column} = '{date}'").save(path)


def customer_versions(rows: DataFrame) -> DataFrame:
    """One row per customer and change, with the time from when to when it was true."""
    history = Window.partitionBy("customer_id").orderBy("updated_at")
    is_first = F.lag("updated_at").over(history).isNull()
    return (
        rows.dropDuplicates(["customer_id", "updated_at"])
        .withColumn(
            "valid_from", F.when(is_first, F.least("signed_up_at", "updated_at")).otherwise(F.col("updated_at"))
        )
        .withColumn("valid_to", F.lead("updated_at").over(history))
        .withColumn("is_current", F.col("valid_to").isNull())
    )


def update_customers(spark: SparkSession, rows: DataFrame, path: str) -> None:
    """Merges the customers of a day into the table with their history."""
    names = ["customer_id", "segment", "country", "signed_up_at", "updated_at"]
    new = rows.where(has_values(names) & F.col("segment").isin(SEGMENTS)).select(names)
    if not DeltaTable.isDeltaTable(spark, path):
        customer_versions(new).write.format("delta").save(path)
        return
    old = spark.read.format("delta").load(path).join(new.select("customer_id").distinct(), "customer_id", "left_semi")
    table = DeltaTable.forPath(spark, path).alias("old")
    changes = customer_versions(old.select(names).unionByName(new)).alias("new")
    same_version = "old.customer_id = new.customer_id AND old.updated_at = new.updated_at"
    table.merge(changes, same_version).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def transactions(bronze: DataFrame, customers: DataFrame, date: str) -> DataFrame:
    """The latest version of each valid transaction, with the customer as of its instant."""
    valid = bronze.where(
        has_values(REQUIRED)
        & (F.col("amount") > 0)
        & F.col("status").isin(STATUSES)
        & (F.col("currency") == CURRENCY)
        & (F.to_date("created_at") == F.lit(date).cast("date"))
    ).drop("_corrupt_record", "date")
    latest = Window.partitionBy("transaction_id").orderBy(F.col("updated_at").desc())
    versions = customers.select(
        "customer_id", "valid_from", "valid_to",
        F.col("segment").alias("customer_segment"), F.col("country").alias("customer_country"),
    )  # fmt: skip
    as_of = (F.col("created_at") >= F.col("valid_from")) & (
        F.col("valid_to").isNull() | (F.col("created_at") < F.col("valid_to"))
    )
    amount = F.col("amount")
    return (
        valid.withColumn("version", F.row_number().over(latest))
        .where("version = 1")
        .join(versions, "customer_id")
        .where(as_of)
        .drop("version", "valid_from", "valid_to")
        .withColumn("amount_category", F.when(amount < 100, "small").when(amount < 1000, "medium").otherwise("large"))
        .withColumn("processed_date", F.lit(date).cast("date"))
    )


def daily_sales(rows: DataFrame) -> DataFrame:
    """Count, total, mean and customers per size of amount and status, of completed and pending transactions."""
    sold = rows.where(F.col("status").isin("completed", "pending"))
    return sold.groupBy("processed_date", "amount_category", "status").agg(
        F.count("*").alias("transaction_count"),
        F.sum("amount").alias("total_amount"),
        F.avg("amount").cast("decimal(12, 2)").alias("avg_amount"),
        F.countDistinct("customer_id").alias("unique_customers"),
    )


def main(raw: str, warehouse: str, date: str, defaults: str) -> None:
    """Writes the four tables of one day; the last line that it prints is how many rows are in two of them."""
    spark = start_session(Path(defaults))
    update_customers(spark, raw_rows(spark, f"{raw}/customers/date={date}", CUSTOMER), f"{warehouse}/customers")
    bronze = raw_rows(spark, f"{raw}/transactions/date={date}", TRANSACTION)
    replace_day(bronze.withColumn("date", F.lit(date).cast("date")), f"{warehouse}/bronze", "date", date)
    table = spark.read.format("delta")
    of_day = table.load(f"{warehouse}/bronze").where(F.col("date") == date)
    published = transactions(of_day, table.load(f"{warehouse}/customers"), date)
    replace_day(published, f"{warehouse}/transactions", "processed_date", date)
    stored = table.load(f"{warehouse}/transactions").where(F.col("processed_date") == date)
    replace_day(daily_sales(stored), f"{warehouse}/daily_sales", "processed_date", date)
    rows = {"transactions": stored.count(), "customers": table.load(f"{warehouse}/customers").count()}
    stop(spark)
    print(json.dumps(rows))


def stop(spark: SparkSession) -> None:
    """Stops Spark and waits for its JVM, whose CPU time then counts as that of this process."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

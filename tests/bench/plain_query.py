"""`streaming.events` as a plain PySpark query: the yardstick of `python -m tests.bench throughput`.

It reads the same topic and appends the same rows to a Delta table, the way most teams write such a query: no check of
what does not parse, no expectations, no telemetry, no event log. It stands by itself and imports nothing of `app`.

    python plain_query.py SERVERS WAREHOUSE SPARK_DEFAULTS STREAMING_DEFAULTS
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

EVENT = "event_id string, user_id string, event_type string, timestamp timestamp, properties map<string, string>"
WATERMARK = "30 minutes"
RECORDS_PER_BATCH = "200000"


def start_session(defaults: list[Path]) -> SparkSession:
    """A local session with the project's Spark properties, without event log and log configuration."""
    builder = SparkSession.builder.master("local[*]").appName("plain events")
    for line in "\n".join(file.read_text(encoding="utf-8") for file in defaults).splitlines():
        name, _, value = line.strip().partition(" ")
        if name.startswith("spark.") and not name.startswith(("spark.eventLog.", "spark.driver.extraJavaOptions")):
            builder = builder.config(name, value.strip())
    return builder.getOrCreate()


def events(records: DataFrame, customers: DataFrame) -> DataFrame:
    """One row per event, with the customer of now."""
    parsed = records.select(F.from_json(F.col("value").cast("string"), EVENT).alias("event")).select("event.*")
    required = parsed.dropna(subset=["event_id", "user_id", "event_type", "timestamp"])
    single = required.withWatermark("timestamp", WATERMARK).dropDuplicatesWithinWatermark(["event_id"])
    current = customers.where("is_current").select(
        F.col("customer_id").alias("user_id"),
        F.col("segment").alias("customer_segment"),
        F.col("country").alias("customer_country"),
    )
    return single.join(current, "user_id", "left").withColumn("event_date", F.to_date("timestamp"))


def main(servers: str, warehouse: str, *defaults: str) -> None:
    """Appends all events that the topic has."""
    spark = start_session([Path(file) for file in defaults])
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    source = source.option("subscribe", "user_events").option("startingOffsets", "earliest")
    records = source.option("maxOffsetsPerTrigger", RECORDS_PER_BATCH).load()
    customers = spark.read.format("delta").load(f"{warehouse}/customers")
    writer = events(records, customers).writeStream.format("delta").partitionBy("event_date")
    writer = writer.option("checkpointLocation", f"{warehouse}/checkpoint").trigger(availableNow=True)
    writer.start(f"{warehouse}/events").awaitTermination()
    stop(spark)


def stop(spark: SparkSession) -> None:
    """Stops Spark and waits for its JVM, whose CPU time then counts as that of this process."""
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

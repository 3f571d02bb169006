"""What each user has spent so far.

Reads: the topic user_events.
Writes: balances.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app import purchases
from app.schemas import BALANCES, TOTAL
from app.topics import USER_EVENTS
from spark_app.pipeline import stream
from spark_app.pipeline.stream import BatchContext, StreamContext
from spark_app.warehouse.tables import Table

TOPICS: Final = (USER_EVENTS.name,)
READS: Final = ()
WRITES: Final = (Table("balances", BALANCES),)
TOTALS: Final = ("purchases", "spent", "last_purchase_at")
IS_SAME: Final = "old.user_id = new.user_id AND old.currency = new.currency"


class Config(stream.StreamConfig):
    """What an operator tunes: see `config/streaming/balances.yml`."""

    watermark: stream.Interval


def balances(old: DataFrame, new: DataFrame) -> DataFrame:
    """One row per user and currency with new purchases: the totals with them.

    Columns in: old: those of `BALANCES`; new: those of `PURCHASE`.
    Columns out: those of `BALANCES`.
    """
    added = new.groupBy("user_id", "currency").agg(
        F.count(F.lit(1)).alias("purchases"),
        F.sum("amount").alias("spent"),
        F.max("timestamp").alias("last_purchase_at"),
    )
    # A join, and no union: the micro-batch, with its state, must be computed once.
    known = old.select("user_id", "currency", *[F.col(name).alias(f"old_{name}") for name in TOTALS])
    totals = {name: F.coalesce(f"old_{name}", F.lit(0)) + F.col(name) for name in ("purchases", "spent")}
    totals["last_purchase_at"] = F.greatest("old_last_purchase_at", "last_purchase_at")
    rows = added.join(known, ["user_id", "currency"], "left").withColumns(totals)
    return rows.withColumn("spent", F.col("spent").cast(TOTAL)).select(*BALANCES.names)


def add(batch: BatchContext, new: DataFrame) -> None:
    """Adds the purchases of one micro-batch to the totals; a repeated batch adds nothing."""
    batch.merge(balances(batch.warehouse.table("balances"), new), "balances", condition=IS_SAME)


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Adds each purchase to the total of its user once, in one commit per micro-batch."""
    events = context.read_once(USER_EVENTS, config, watermark=config.watermark)
    return context.for_each_batch(purchases.purchases(events), add, config)

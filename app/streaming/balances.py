"""What each user has spent so far."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.purchases import purchases
from app.schemas import BALANCES, TOTAL
from spark_app import stream

TOTALS: Final = ("purchases", "spent", "last_purchase_at")


@stream.state(schema=BALANCES, key=("user_id", "currency"))
def balances(balances: DataFrame, user_events: DataFrame) -> DataFrame:
    """One row per user and currency with new purchases: the totals with them.

    Columns in: balances: those of `BALANCES`; user_events: those of `USER_EVENT`.
    Columns out: those of `BALANCES`.
    """
    added = (
        purchases(user_events)
        .groupBy("user_id", "currency")
        .agg(
            F.count(F.lit(1)).alias("purchases"),
            F.sum("amount").alias("spent"),
            F.max("timestamp").alias("last_purchase_at"),
        )
    )
    known = balances.select("user_id", "currency", *[F.col(name).alias(f"old_{name}") for name in TOTALS])
    totals = {name: F.coalesce(f"old_{name}", F.lit(0)) + F.col(name) for name in ("purchases", "spent")}
    totals["last_purchase_at"] = F.greatest("old_last_purchase_at", "last_purchase_at")
    rows = added.join(known, ["user_id", "currency"], "left").withColumns(totals)
    return rows.withColumn("spent", F.col("spent").cast(TOTAL)).select(*BALANCES.names)

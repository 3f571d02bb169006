"""Refunds as they become known, which are the labels of `ml.refunds`.

Reads: raw refunds of one date.
Writes: bronze_refunds, refund_events.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app import sources
from app.schemas import REFUND_EVENTS
from spark_app import daily, expect


@daily.source(
    sources.REFUNDS, expect=[expect.not_null(name) for name in ("transaction_id", "customer_id", "refunded_at")]
)
def bronze_refunds(rows: DataFrame) -> DataFrame:
    """One row per raw row.

    Columns in: those of `RAW_REFUNDS`.
    Columns out: those of `RAW_REFUNDS`.
    """
    return rows


@daily.table(schema=REFUND_EVENTS, partition_by="refunded_date", key="transaction_id")
def refund_events(bronze_refunds: DataFrame) -> DataFrame:
    """One row per refunded transaction: its first refund of the day.

    Columns in: those of `bronze_refunds`; rows of rank 1.
    Columns out: those of `REFUND_EVENTS`.
    """
    return bronze_refunds.withColumn("refunded_date", F.col("date")).select(*REFUND_EVENTS.names)

"""Refunds as they become known, which are the labels of `ml.refunds`.

Reads: raw refunds of one date.
Writes: refund_events.
"""

import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from app.schemas import RAW_REFUNDS, REFUND_EVENTS
from spark_app.pipeline import ingest
from spark_app.pipeline.context import DailyContext
from spark_app.quality import expectations as expect
from spark_app.settings import Schedule, Share
from spark_app.warehouse.tables import Table

SOURCES: Final = ("refunds",)
READS: Final = ()
WRITES: Final = (Table("refund_events", REFUND_EVENTS, ("refunded_date",)),)
UNREADABLE: Final = "refunds.readable"


class Config(BaseModel):
    """What an operator tunes: see `config/ml/refund_events.yml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    unreadable: Share
    schedule: Schedule | None


def refund_events(rows: DataFrame, *, date: datetime.date) -> DataFrame:
    """One row per refunded transaction: its first refund of the day.

    Left out are rows without a key, a customer or an instant.

    Columns in: those of `RAW_REFUNDS`.
    Columns out: those of `REFUND_EVENTS`.
    """
    first = Window.partitionBy("transaction_id").orderBy("refunded_at", "refund_id")
    known = rows.dropna(subset=["transaction_id", "customer_id", "refunded_at"])
    ranked = known.withColumn("position", F.row_number().over(first)).where("position = 1")
    return ranked.withColumn("refunded_date", F.lit(date)).select(*REFUND_EVENTS.names)


def run(context: DailyContext, config: Config) -> None:
    """Publishes the refunds of one date, or raises and leaves what was published as it was."""
    [table] = (table.name for table in WRITES)
    context.declare(table, [UNREADABLE])
    raw = context.read_raw("refunds", schema=RAW_REFUNDS, bronze=table, may_be_empty=True)
    rows = ingest.typed(raw, schema=RAW_REFUNDS).select(*RAW_REFUNDS.names).persist()
    try:
        with context.step("count refunds", kind="transform"):
            read, unreadable, distinct = rows.agg(*_counts()).collect()[0]
        context.enforce([expect.result(UNREADABLE, unreadable, read, {UNREADABLE: config.unreadable})], table=table)
        duplicates = read - unreadable - distinct
        context.reconcile(read=read, published=distinct, quarantined=unreadable, duplicates=duplicates)
        refunds = refund_events(rows, date=context.date)
        written = context.replace_partition(refunds, table, kind="publish", count=distinct)
        context.report_rows(published=written.rows)
    finally:
        rows.unpersist()


def _counts() -> list[Column]:
    is_known = F.col("transaction_id").isNotNull() & F.col("customer_id").isNotNull() & F.col("refunded_at").isNotNull()
    return [F.count(F.lit(1)), F.count_if(~is_known), F.count_distinct(F.when(is_known, F.col("transaction_id")))]

"""Generated sales and refunds as frames, without runs: what models are trained on in tests."""

import datetime
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app.demo import files, sales
from app.demo.ledger import Day
from app.demo.refunds import LATEST_DAYS, Refunds
from app.schemas import REFUND_EVENTS, TRANSACTIONS

FIRST: Final = datetime.date(2024, 1, 1)
DAY: Final = datetime.timedelta(days=1)


def of_day(date: datetime.date, *, rows: int = 1_000, seed: int = 7) -> Refunds:
    """The refunds of the sales of a day."""
    return Refunds(Day(date=date, rows=rows, seed=seed, formats={"transactions": "parquet"}))


def sold(spark: SparkSession, *dates: datetime.date, rows: int = 1_000, seed: int = 7) -> DataFrame:
    """The published sales of days, as in the table `transactions`."""
    parts = [_sold(of_day(date, rows=rows, seed=seed), date) for date in dates]
    frame = spark.createDataFrame(pa.concat_tables(parts).to_pandas())
    constant = {name: F.lit(None) for name in TRANSACTIONS.names if name not in frame.columns}
    typed = [F.col(field.name).cast(field.dataType) for field in TRANSACTIONS]
    return frame.withColumns(constant).select(*typed)


def _sold(day: Refunds, date: datetime.date) -> pa.Table:
    sold = day.truth().sold
    return pa.table(
        {
            "transaction_id": files.identifiers(f"t-{date:%Y%m%d}-", sold.number),
            "customer_id": files.identifiers("c-", sold.customer),
            "category": np.array(sales.CATEGORIES)[sold.category],
            "quantity": sold.quantity,
            "amount": files.money(sold.cents),
            "status": ["completed"] * len(sold.number),
            "payment_method": np.array(list(sales.PAYMENTS))[sold.payment],
            "channel": np.array(list(sales.CHANNELS))[sold.channel],
            "country": np.array(list(sales.COUNTRIES))[sold.country],
            "created_at": files.instants(sold.created),
            "updated_at": files.instants(sold.updated),
            "customer_segment": np.array(["consumer", "business", "vip"])[sold.customer % 3],
            "customer_country": np.array(["DE", "FR"])[sold.customer % 2],
            "processed_date": [date] * len(sold.number),
        }
    )


def refunded(spark: SparkSession, *dates: datetime.date, rows: int = 1_000, seed: int = 7) -> DataFrame:
    """The refunds of the sales of days, as in the table `refund_events`."""
    parts: list[pa.RecordBatch] = []
    for date in dates:
        start = files.midnight(date)
        parts += of_day(date, rows=rows, seed=seed).between(start, start + (LATEST_DAYS + 1) * files.DAY_US)
    frame = spark.createDataFrame(pa.Table.from_batches(parts).to_pandas())
    return frame.withColumn("refunded_date", F.to_date("refunded_at")).select(
        *(F.col(field.name).cast(field.dataType) for field in REFUND_EVENTS)
    )

import datetime
from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app.features import WINDOW_DAYS, purchases
from app.schemas import REFUND_EVENTS, TRANSACTIONS
from spark_app.execution import pipelines
from tests import models
from tests.shop_rows import DAY, FIRST, refunded, sold

DAYS: Final = (FIRST, FIRST + DAY)
KNOWN: Final = purchases.examples.known
TABLES: Final = {table.name: table for table in pipelines.declared_tables()}


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Two days of sales, and the refunds of them."""
    sales, refunds = sold(spark, *DAYS, rows=300).persist(), refunded(spark, *DAYS, rows=300).persist()
    yield sales, refunds
    sales.unpersist()
    refunds.unpersist()


def test_training_batches_and_streams_see_the_same_features(
    spark: SparkSession, shop: tuple[DataFrame, DataFrame]
) -> None:
    """All rows at once, the rows of one day, and a few requests in other partitions: equal to the last digit."""
    frames = dict(zip(purchases.reads, shop, strict=True))
    trained, batch = (
        {row.transaction_id: row for row in purchases.of_days(frames, TABLES, first, DAYS[1]).collect()}
        for first in DAYS
    )
    day = frames["transactions"].where(F.col("processed_date") == F.lit(DAYS[1])).select(*KNOWN)
    requested = spark.createDataFrame(day.limit(20).collect(), day.schema).repartition(2)
    found = purchases.of_requests(requested, frames, TABLES, [DAYS[1]]).collect()
    stream = {row.transaction_id: row for row in found}
    assert len(stream) == 20
    assert batch.items() <= trained.items()
    assert stream.items() <= batch.items()
    assert any(row.customer_refund_ratio != 0.05 for row in stream.values())


def test_without_examples_there_are_no_features(shop: tuple[DataFrame, DataFrame]) -> None:
    """As in a micro-batch of which no request can be scored."""
    frames = dict(zip(purchases.reads, shop, strict=True))
    found = purchases.of_requests(shop[0].where("false"), frames, TABLES, [], keep=["status"])
    assert (found.columns, found.count()) == ([*models.SCHEMA.names, "status"], 0)


def test_history_counts_the_whole_days_of_the_window_before_the_day(spark: SparkSession) -> None:
    """An event of the day itself does not count; one a microsecond before midnight does; other customers do not.

    What is exactly as old as the window is long counts, and what is older does not.
    """
    at = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    midnight, micro = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(microseconds=1)
    oldest = midnight - WINDOW_DAYS * DAY
    bought = [
        ("c-1", midnight - micro), ("c-1", midnight), ("c-2", midnight - micro), ("c-1", oldest),
        ("c-1", oldest - micro),
    ]  # fmt: skip
    returned = [("c-1", midnight - micro), ("c-1", at - micro), ("c-1", oldest - micro)]
    values = dict.fromkeys(KNOWN) | {"transaction_id": "t-1", "customer_id": "c-1", "created_at": at}
    kinds = StructType([TRANSACTIONS[name] for name in KNOWN])
    rows = spark.createDataFrame([tuple(values[name] for name in KNOWN)], kinds)
    events = (
        spark.createDataFrame(bought, StructType([TRANSACTIONS["customer_id"], TRANSACTIONS["created_at"]])),
        spark.createDataFrame(returned, StructType([REFUND_EVENTS["customer_id"], REFUND_EVENTS["refunded_at"]])),
    )
    [found] = purchases(rows, *events).select(*(each.column for each in purchases.features)).collect()
    assert found.customer_refund_ratio == (1 + 0.05 * 20) / (2 + 20)
    assert (found.quantity, found.amount_log, found.is_abroad, found.category) == (1.0, 0.0, 0.0, None)


def test_the_declared_schema_is_that_of_the_rows(shop: tuple[DataFrame, DataFrame]) -> None:
    """Names, types and order."""
    found = purchases.of_days(dict(zip(purchases.reads, shop, strict=True)), TABLES, *DAYS)
    assert [(field.name, field.dataType) for field in found.schema] == [
        (field.name, field.dataType) for field in models.SCHEMA
    ]

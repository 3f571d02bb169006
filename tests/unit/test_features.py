import datetime
from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app.features import KNOWN, SCHEMA, WINDOW_DAYS, customer_events, features
from app.schemas import TRANSACTIONS
from tests.shop_rows import DAY, FIRST, refunded, sold

DAYS: Final = (FIRST, FIRST + DAY)


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
    transactions, refunds = shop
    events = customer_events(transactions, refunds)
    trained = {row.transaction_id: row for row in features(transactions, events).collect()}
    day = transactions.where(F.col("processed_date") == F.lit(DAYS[1]))
    batch = {row.transaction_id: row for row in features(day, events).collect()}
    requested = spark.createDataFrame(day.select(*KNOWN).limit(20).collect(), day.select(*KNOWN).schema)
    stream = {row.transaction_id: row for row in features(requested.repartition(2), events).collect()}
    assert len(stream) == 20
    assert batch.items() <= trained.items()
    assert stream.items() <= batch.items()
    assert any(row.customer_refund_ratio != 0.05 for row in stream.values())


def test_history_counts_the_whole_days_of_the_window_before_the_day(spark: SparkSession) -> None:
    """An event of the day itself does not count; one a microsecond before midnight does; other customers do not.

    What is exactly as old as the window is long counts, and what is older does not.
    """
    at = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    midnight, micro = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(microseconds=1)
    oldest = midnight - WINDOW_DAYS * DAY
    events = [
        ("c-1", midnight - micro, 1, 0), ("c-1", midnight - micro, 0, 1), ("c-1", midnight, 1, 0),
        ("c-1", at - micro, 0, 1), ("c-2", midnight - micro, 1, 0),
        ("c-1", oldest, 1, 0), ("c-1", oldest - micro, 1, 0), ("c-1", oldest - micro, 0, 1),
    ]  # fmt: skip
    known = spark.createDataFrame(events, "customer_id string, at timestamp, purchases long, refunds long")
    values = dict.fromkeys(KNOWN) | {"transaction_id": "t-1", "customer_id": "c-1", "created_at": at}
    kinds = StructType([TRANSACTIONS[name] for name in KNOWN])
    rows = spark.createDataFrame([tuple(values[name] for name in KNOWN)], kinds)
    [found] = features(rows, known).collect()
    assert found.customer_refund_ratio == (1 + 0.05 * 20) / (2 + 20)
    assert (found.quantity, found.amount_log, found.is_abroad, found.category) == (1.0, 0.0, 0.0, None)


def test_the_declared_schema_is_that_of_the_rows(shop: tuple[DataFrame, DataFrame]) -> None:
    """Names, types and order."""
    found = features(shop[0], customer_events(*shop))
    assert [(field.name, field.dataType) for field in found.schema] == [
        (field.name, field.dataType) for field in SCHEMA
    ]

import datetime
from collections.abc import Callable
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app.features import KNOWN, SCHEMA, WINDOW_DAYS, customer_events, features
from app.warehouse.schemas import TRANSACTIONS
from tests.shop_rows import DAY, FIRST, refunded, sold

Transform = Callable[[DataFrame, DataFrame], DataFrame]
CUT: Final = datetime.datetime(2024, 1, 2, 15, tzinfo=datetime.UTC)
DAYS: Final = (FIRST, FIRST + DAY)


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Two days of sales, and the refunds of them."""
    return sold(spark, *DAYS, rows=300).persist(), refunded(spark, *DAYS, rows=300).persist()


def leaking(transform: Transform, transactions: DataFrame, refunds: DataFrame) -> set[str]:
    """The features of transactions before an instant that depend on what happened after it.

    They are computed twice: with all that is known now, and with what was known then, when nothing later had happened
    and columns that are set later had other values.
    """
    past = transactions.where(F.col("created_at") < F.lit(CUT))
    then = past.withColumns({"status": F.lit("pending"), "updated_at": F.col("created_at")})
    events = customer_events(transactions, refunds)
    now_rows = {row.transaction_id: row for row in transform(past, events).collect()}
    then_rows = {row.transaction_id: row for row in transform(then, events.where(F.col("at") < F.lit(CUT))).collect()}
    assert now_rows.keys() == then_rows.keys()
    return {
        name for key, row in now_rows.items() for name, value in row.asDict().items() if value != then_rows[key][name]
    }


def knows_the_status(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Features and one that is set later: a leak."""
    return features(rows, events).join(rows.select("transaction_id", "status"), "transaction_id")


def knows_all_refunds(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Features and one that counts later refunds, too: a leak."""
    ever = events.groupBy("customer_id").agg(F.sum("refunds").alias("refunds_ever"))
    return features(rows, events).join(ever, "customer_id")


def knows_the_same_day(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Features and a window that ends at midnight and not at the instant: a leak."""
    day = Window.partitionBy("customer_id", F.to_date("at"))
    daily = events.withColumn("purchases_today", F.sum("purchases").over(day)).where("purchases = 1")
    keyed = daily.select("customer_id", F.col("at").alias("created_at"), "purchases_today").distinct()
    return features(rows, events).join(keyed, ["customer_id", "created_at"])


def test_no_feature_knows_the_future(shop: tuple[DataFrame, DataFrame]) -> None:
    """What happens after a transaction changes none of its features."""
    assert leaking(features, *shop) == set()


@pytest.mark.parametrize(
    ("leak", "name"),
    [
        (knows_the_status, "status"),
        (knows_all_refunds, "refunds_ever"),
        (knows_the_same_day, "purchases_today"),
    ],
)
def test_a_planted_leak_is_found(shop: tuple[DataFrame, DataFrame], leak: Transform, name: str) -> None:
    """A column that is set later, refunds that come later, and a window that is too long are each found."""
    assert leaking(leak, *shop) == {name}


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


def test_history_counts_what_is_in_the_window_before_the_instant(spark: SparkSession) -> None:
    """An event of the same microsecond is not before; one a microsecond earlier is; other customers do not count.

    What is exactly as old as the window is long counts, and what is older does not.
    """
    at = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    micro = datetime.timedelta(microseconds=1)
    oldest = at - WINDOW_DAYS * DAY
    events = [
        ("c-1", at - micro, 1, 0), ("c-1", at - micro, 0, 1), ("c-1", at, 1, 0), ("c-2", at - micro, 1, 0),
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

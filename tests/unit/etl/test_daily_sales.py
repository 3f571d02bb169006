import datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from app.etl import daily_sales as pipeline
from app.etl.customers import customer_versions
from app.etl.daily_sales import amount_category, daily_sales, expectations, transactions
from app.schemas import DAILY_SALES, RAW_CUSTOMERS, RAW_TRANSACTIONS, TRANSACTIONS
from app.sources import TRANSACTIONS as TRANSACTIONS_SOURCE
from spark_app.engine import ingest
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.settings import load_settings

DAY = datetime.date(2024, 1, 1)
GOOD: dict[str, Any] = {
    "transaction_id": "t-20240101-0000001",
    "customer_id": "c-0000001",
    "product_id": None,
    "category": "toys",
    "quantity": "2",
    "amount": "19.99",
    "currency": "EUR",
    "status": "completed",
    "payment_method": "card",
    "channel": "web",
    "country": "DE",
    "created_at": "2024-01-01T08:00:00.000001Z",
    "updated_at": "2024-01-01T09:00:00Z",
}


def at(hour: int) -> datetime.datetime:
    """An instant of the day."""
    return datetime.datetime(2024, 1, 1, hour, tzinfo=datetime.UTC)


def reasons(
    spark: SparkSession, *, malformed: bool = False, found: str | None = "c-0000001", **changes: Any
) -> list[str]:
    """What is wrong with a good row after some changes."""
    text = "struct<" + ",".join(f"{name}:string" for name in RAW_TRANSACTIONS.names) + ">"
    values = tuple({**GOOD, **changes}[name] for name in RAW_TRANSACTIONS.names)
    read = spark.createDataFrame(
        [(values, malformed, found)], f"text {text}, is_malformed boolean, customer_found string"
    )
    typed = read.select(
        "text", "is_malformed", "customer_found", F.lit(DAY).alias("date"), *expect.typed(RAW_TRANSACTIONS)
    )
    rules = [rule for rule in expectations(load_settings()) if isinstance(rule, Expectation)]
    own = [*rules, *expect.readable_columns(RAW_TRANSACTIONS)]
    row = typed.select(expect.violations(own).alias("violations")).collect()[0]
    return list(row.violations)


def published(spark: SparkSession, *rows: tuple[str, str, str | None]) -> DataFrame:
    """Published transactions from (amount, status, customer)."""
    full = [
        Row(
            **dict.fromkeys(TRANSACTIONS.names)
            | {"amount": Decimal(amount), "status": status, "customer_id": customer, "processed_date": DAY}
            | {"amount_category": "small"}
        )
        for amount, status, customer in rows
    ]
    return spark.createDataFrame(full, TRANSACTIONS)


def bronze(spark: SparkSession, **changes: Any) -> DataFrame:
    """One valid row of bronze."""
    typed = {"quantity": 2, "amount": Decimal("19.99"), "created_at": at(8), "updated_at": at(9)}
    none = dict.fromkeys(pipeline.bronze.table.schema.names)
    return spark.createDataFrame(
        [Row(**{**none, **GOOD, **typed, "violations": [], "date": DAY, **changes})], pipeline.bronze.table.schema
    )


def test_a_good_row_breaks_nothing(spark: SparkSession) -> None:
    """A column that no expectation is about may be null."""
    assert reasons(spark) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": None}, "amount.not_null"),
        ({"status": None}, "status.not_null"),
        ({"amount": "abc"}, "amount.type"),
        ({"amount": "12,50"}, "amount.type"),
        ({"amount": "12.505"}, "amount.type"),
        ({"amount": "99999999999.00"}, "amount.type"),
        ({"quantity": "two"}, "quantity.type"),
        ({"created_at": "yesterday"}, "created_at.type"),
        ({"amount": "-0.01"}, "amount.range"),
        ({"amount": "0.00"}, "amount.range"),
        ({"quantity": "-5"}, "quantity.range"),
        ({"quantity": "0"}, "quantity.range"),
        ({"created_at": "2099-01-01T08:00:00Z"}, "created_at.day"),
        ({"transaction_id": "1; DROP TABLE"}, "transaction_id.pattern"),
        ({"currency": "USD"}, "currency.allowed"),
        ({"status": "chargeback"}, "status.allowed"),
        ({"created_at": "2024-01-02T00:00:00Z"}, "created_at.day"),
        ({"found": None}, "customer_id.known"),
        ({"malformed": True}, "malformed"),
    ],
)
def test_each_promise_tells_its_own_reason(spark: SparkSession, changes: dict[str, Any], reason: str) -> None:
    """A row with one fault has exactly one reason."""
    assert reasons(spark, **changes) == [reason]


def test_a_null_key_is_not_an_unknown_customer(spark: SparkSession) -> None:
    """Without a customer or an instant there is nobody to look up."""
    assert reasons(spark, customer_id=None, found=None) == ["customer_id.not_null"]
    assert reasons(spark, created_at=None, found=None) == ["created_at.not_null"]


def test_the_customer_is_the_one_of_that_instant(spark: SparkSession) -> None:
    """A change at noon is not seen in the morning; a version begins at its first instant."""
    rows = [("c-0000001", segment, "DE", at(0), at(hour)) for segment, hour in (("consumer", 0), ("vip", 12))]
    versions = customer_versions(spark.createDataFrame(rows, RAW_CUSTOMERS))
    bought = spark.createDataFrame(
        [("c-0000001", at(11)), ("c-0000001", at(12)), (None, at(12))], "customer_id string, created_at timestamp"
    )
    found = pipeline.bronze(bought, versions).select("created_at", "customer_segment", "customer_found")
    expected = [(at(11), "consumer", "c-0000001"), (at(12), "vip", "c-0000001"), (at(12), None, None)]
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema))


def published_versions(rows: DataFrame) -> DataFrame:
    """The transactions that are published of some rows of bronze."""
    ranked = ingest.with_version_rank(rows, key=["transaction_id"], newest_first=TRANSACTIONS_SOURCE.order)
    return transactions(ranked.where("version_rank = 1"))


def test_the_version_that_was_updated_last_is_published(spark: SparkSession) -> None:
    """One row per key; exact duplicates and older versions are ranked behind it."""
    rows = bronze(spark, status="pending").unionByName(bronze(spark, updated_at=at(10))).unionByName(bronze(spark))
    result = published_versions(rows).select("status", F.hour("updated_at")).collect()
    assert [tuple(row) for row in result] == [("completed", 10)]


def test_versions_of_one_instant_do_not_depend_on_order(spark: SparkSession) -> None:
    """Two contents of one key and instant: always the same one wins."""
    pending, completed = bronze(spark, status="pending"), bronze(spark, status="completed")
    ahead, behind = pending.unionByName(completed), completed.unionByName(pending)
    assertDataFrameEqual(published_versions(ahead), published_versions(behind))


def test_amount_categories_have_sharp_bounds(spark: SparkSession) -> None:
    """Small < 100 <= medium < 1000 <= large, to the cent."""
    amounts = spark.createDataFrame(
        [(Decimal(a),) for a in ("99.99", "100.00", "999.99", "1000.00")], "amount decimal(12,2)"
    )
    found = [row[0] for row in amounts.select(amount_category()).collect()]
    assert found == ["small", "medium", "medium", "large"]


def test_only_completed_and_pending_sales_count_and_money_is_exact(spark: SparkSession) -> None:
    """Sums are exact decimals, means are rounded half up, a customer counts once."""
    rows = published(
        spark,
        ("0.10", "completed", "c-1"),
        ("0.20", "completed", "c-1"),
        ("0.015e2", "pending", "c-2"),
        ("9.99", "failed", "c-3"),
        ("9.99", "refunded", None),
    )
    expected = [
        (DAY, "small", "completed", 2, Decimal("0.30"), Decimal("0.15"), 1),
        (DAY, "small", "pending", 1, Decimal("1.50"), Decimal("1.50"), 1),
    ]
    assertDataFrameEqual(daily_sales(rows), spark.createDataFrame(expected, DAILY_SALES))


def test_a_mean_is_rounded_half_up(spark: SparkSession) -> None:
    """0.01 and 0.02 have the mean 0.015, which is 0.02."""
    rows = published(spark, ("0.01", "completed", "c-1"), ("0.02", "completed", "c-2"))
    assert daily_sales(rows).select(F.col("avg_amount")).collect()[0][0] == Decimal("0.02")


def test_a_mean_is_rounded_once(spark: SparkSession) -> None:
    """20,001 sales for 300.01 have the mean 0.01499975, which is 0.01; by way of six places it would be 0.02."""
    one = published(spark, ("0.01", "completed", "c-1")).drop("amount")
    amount = F.when(F.col("id") < 10_000, "0.02").otherwise("0.01").cast("decimal(12,2)").alias("amount")
    rows = one.crossJoin(spark.range(20_001).select(amount))
    found = daily_sales(rows).select("transaction_count", "total_amount", "avg_amount").collect()
    assert [tuple(row) for row in found] == [(20_001, Decimal("300.01"), Decimal("0.01"))]

import datetime
import random
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from app.etl.daily_sales import STATUSES
from app.ml.refunds import refunded
from app.schemas import REFUND_EVENTS, TRANSACTIONS
from spark_app.engine.code_location import DeclarationError
from spark_app.execution import pipelines

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)
AT = datetime.datetime(2024, 1, 2, 12)  # noqa: DTZ001 - the session is in UTC


def frames(spark: SparkSession, bought: list[dict[str, Any]], refunds: list[dict[str, Any]]) -> dict[str, DataFrame]:
    """The tables with these transactions and refunds; columns that are not stated are null."""
    transactions = [
        dict.fromkeys(TRANSACTIONS.names) | {"processed_date": each["created_at"].date()} | each for each in bought
    ]
    events = [
        dict.fromkeys(REFUND_EVENTS.names) | {"refunded_date": each["refunded_at"].date()} | each for each in refunds
    ]
    return {
        "transactions": spark.createDataFrame(transactions, TRANSACTIONS),
        "refund_events": spark.createDataFrame(events, REFUND_EVENTS),
    }


def test_a_refund_counts_if_it_is_known_in_time(spark: SparkSession) -> None:
    """The first one, up to `label_days` after the transaction; a later one and none are the same."""
    bought = [{"transaction_id": f"t-{key}", "created_at": AT} for key in range(4)]
    returned = [(0, 2 * DAY), (1, 2 * DAY + DAY / 86_400), (2, 3 * DAY), (2, DAY)]
    refunds = [{"transaction_id": f"t-{key}", "refunded_at": AT + after} for key, after in returned]
    found = refunded(*frames(spark, bought, refunds).values(), label_days=2)
    labels = {row.transaction_id: row.label for row in found.collect()}
    assert labels == {"t-0": True, "t-1": False, "t-2": True, "t-3": None}


def test_samples_are_all_purchases_whatever_became_of_them(spark: SparkSession) -> None:
    """Those that failed or were refunded later, too: at its instant nobody knows the status that a purchase will have.

    Keys, labels and what is known of the customer are those of a plain loop over the rows.
    """
    draws, days = random.Random(3), (AT.date(), AT.date() + DAY)
    bought: list[dict[str, Any]] = [
        {
            "transaction_id": f"t-{key}", "customer_id": f"c-{draws.randrange(9)}", "status": draws.choice(STATUSES),
            "created_at": AT + draws.randrange(2 * 24 * 60) * MINUTE,
        }
        for key in range(300)
    ]  # fmt: skip
    for each in bought:
        each["updated_at"] = each["created_at"] + draws.randrange(3 * 24 * 60) * MINUTE
    refunds = [
        {name: each[name] for name in ("transaction_id", "customer_id")}
        | {"refunded_at": each["created_at"] + draws.randrange(1, 3 * 24 * 60) * MINUTE}
        for each in draws.sample(bought, 60)
    ]
    tables = frames(spark, bought, refunds)
    given = (tables, {table.name: table for table in pipelines.declared_tables()}, *days)
    rows = refunded.inputs.of_days(*given).join(refunded.labels(*given, label_days=1), "transaction_id")
    found = {row.transaction_id: (row.label, row.customer_refund_ratio) for row in rows.collect()}
    expected = {
        each["transaction_id"]: (is_refunded(each, refunds), pytest.approx(refund_ratio(each, bought, refunds)))
        for each in bought
        if each["created_at"].date() in days
    }
    assert found == expected
    assert {each["status"] for each in bought if found.get(each["transaction_id"], (0,))[0]} == set(STATUSES)


def is_refunded(purchase: dict[str, Any], refunds: list[dict[str, Any]]) -> float:
    """Whether a refund is known within a day, by an event or by the status."""
    known = [each["refunded_at"] for each in refunds if each["transaction_id"] == purchase["transaction_id"]]
    known += [purchase["updated_at"]] if purchase["status"] == "refunded" else []
    return float(any(at <= purchase["created_at"] + DAY for at in known))


def refund_ratio(purchase: dict[str, Any], bought: list[dict[str, Any]], refunds: list[dict[str, Any]]) -> float:
    """One refund in twenty purchases, and those of the customer in the two days before its day."""

    def count(rows: list[dict[str, Any]], at: str) -> int:
        day = datetime.datetime.combine(purchase["created_at"], datetime.time())
        return sum(each["customer_id"] == purchase["customer_id"] and day - 2 * DAY <= each[at] < day for each in rows)

    return (count(refunds, "refunded_at") + 1) / (count(bought, "created_at") + 20)


def test_a_function_that_leaves_a_column_out_is_named(spark: SparkSession) -> None:
    """With its place, and what it returns."""
    given = (frames(spark, [], []), {table.name: table for table in pipelines.declared_tables()}, AT.date(), AT.date())
    unlabelled = replace(refunded, function=lambda rows, *, label_days: rows.limit(label_days))
    with pytest.raises(DeclarationError, match=r"app/ml/refunds\.py:11: <lambda> returns no column label; it returns "):
        unlabelled.labels(*given, label_days=1)
    cut = replace(refunded.inputs, function=lambda rows: rows.drop("amount"))
    missing = r"features\.py:\d+: <lambda> returns no column amount, purchases_before, refunds_before, which its rows "
    with pytest.raises(DeclarationError, match=missing):
        cut.of_days(*given)

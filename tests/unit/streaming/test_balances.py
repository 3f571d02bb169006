from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

from app.schemas import BALANCES
from app.streaming import balances
from spark_app.engine.stream import BatchContext
from tests.unit.streaming.drained import Drained, at, event, events

COLUMNS = ("user_id", "currency", "purchases", "spent", "minute(last_purchase_at)")


def test_totals_are_per_user_and_currency(spark: SparkSession) -> None:
    """Only users with new purchases come out; every cent is kept."""
    old = spark.createDataFrame(
        [("c-0000001", "EUR", 2, Decimal("0.10"), at(1)), ("c-0000009", "EUR", 1, Decimal(1), at(1))], BALANCES
    )
    new = events(
        spark,
        event(1, 3, "purchase", 1, amount="0.20", currency="EUR"),
        event(2, 2, "purchase", 1, amount="5", currency="USD"),
        event(3, 2, "purchase", 2, amount="9999999999.99", currency="EUR"),
        event(4, 2, "view", 1, amount="7", currency="EUR"),
    )
    found = balances.balances(old, new).selectExpr(*COLUMNS)
    assert sorted(tuple(row) for row in found.collect()) == [
        ("c-0000001", "EUR", 3, Decimal("0.30"), 3),
        ("c-0000001", "USD", 1, Decimal("5.00"), 2),
        ("c-0000002", "EUR", 1, Decimal("9999999999.99"), 2),
    ]


def test_a_repeated_batch_adds_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """As after a kill between the commit of the table and that of the checkpoint; the next batch adds its own."""
    query = Drained(tmp_path, spark, balances)
    context = query.context
    for number, batch_id in enumerate([0, 0, 1, 1]):
        batch = BatchContext(spark, context.warehouse, context, "query", batch_id)
        new = events(spark, event(number, 1, "purchase", amount="10.00", currency="EUR"))
        query.pipeline.update(batch, new, {})
    rows = context.warehouse.table("balances").selectExpr(*COLUMNS).collect()
    assert [tuple(row) for row in rows] == [("c-0000001", "EUR", 2, Decimal("20.00"), 1)]


def test_a_purchase_is_added_once(tmp_path: Path, spark: SparkSession) -> None:
    """Though it is sent again, in the same micro-batch and in a later one; what has no amount adds nothing."""
    query = Drained(tmp_path, spark, balances)
    paid = event(1, 1, "purchase", amount="10.00", currency="EUR")
    query.deliver("user_events", paid, paid, event(2, 1, "purchase", amount="much", currency="EUR"))
    query.drain()
    query.deliver("user_events", paid, event(3, 2, "purchase", amount="0.01", currency="EUR"))
    query.drain()
    assert query.rows("balances", *COLUMNS) == [("c-0000001", "EUR", 2, Decimal("10.01"), 2)]
    made_of = {(origin.input, origin.column) for origin in query.columns()["balances"]["spent"]}
    assert ("balances", "spent") in made_of
    assert ("user_events (topic)", "properties") in made_of

import json
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

from app.streaming import alerts
from app.topics import USER_EVENTS
from spark_app.declarations.query import messages
from spark_app.engine import records
from spark_app.settings import load_settings
from spark_app.warehouse.schemas import RECORD
from tests.unit.streaming.drained import NOON, Drained, config, event, observed


def bought(number: int, amount: str, currency: str = "EUR") -> dict[str, object]:
    """The value of a purchase."""
    return event(number, 1.5, "purchase", amount=amount, currency=currency)


def test_a_purchase_of_the_limit_is_alerted(spark: SparkSession) -> None:
    """Each currency has its limit; what is not in the list is never big. The key is that of the event."""
    values = [
        bought(1, "2000.00"), bought(2, "1999.99"), bought(3, "500", "CHF"), bought(4, "9999", "USD"),
        event(5, 0, "add_to_cart", amount="9999", currency="EUR"), bought(1, "2000.00"),
    ]  # fmt: skip
    limits = {"EUR": Decimal("2000.00"), "CHF": Decimal("500.00")}
    headers = [("traceparent", b"00-1-2-01")]
    rows = [(b"k", json.dumps(value).encode(), headers, "user_events", 0, 1, NOON) for value in values]
    read = records.valid(spark.createDataFrame(rows, RECORD), USER_EVENTS, keep=["headers"])
    found = messages(alerts.purchase_alerts(read, limits=limits), alerts.purchase_alerts).collect()
    assert [bytes(row.key) for row in found] == [b"e-1", b"e-3", b"e-1"]
    assert json.loads(bytes(found[0].value)) == {
        "event_id": "e-1",
        "user_id": "c-0000001",
        "amount": "2000.00",
        "currency": "EUR",
        "timestamp": "2024-01-01T12:01:30.000Z",
    }
    assert [bytes(header.value) for header in found[0].headers] == [b"00-1-2-01"]


def test_alerts_are_lines_of_a_file_without_kafka(tmp_path: Path, spark: SparkSession) -> None:
    """A micro-batch without alerts writes no file; a purchase without an amount is counted."""
    query = Drained(tmp_path, spark, alerts)
    query.deliver("user_events", bought(1, "5000"), bought(4, "much"), event(2), b"broken")
    assert max(batch["without_amount"] for batch in observed(query.drain(), "purchases")) == 1
    query.deliver("user_events", event(3))
    query.drain()
    assert [json.loads(line)["event_id"] for line in query.lines("purchase_alerts")] == ["e-1"]


def test_a_query_in_real_time_has_the_interval_of_its_commits(tmp_path: Path, spark: SparkSession) -> None:
    """An alert on a query that is stuck would fire after some of its triggers; a query that drains has none."""
    kafka = load_settings().kafka.model_copy(update={"servers": "localhost:1"})
    query = Drained(tmp_path, spark, alerts, kafka)
    given = config(alerts, query.home, trigger="1 second", real_time="5 minutes")
    assert query.context.trigger_seconds(given) is None
    query.context.is_draining = False
    assert query.context.trigger_seconds(given) == 300
    assert query.context.trigger_seconds(given.model_copy(update={"real_time": None})) == 1

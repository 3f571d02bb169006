from decimal import Decimal

from pyspark.sql import SparkSession

from app.purchases import purchases
from tests.unit.streaming.drained import event, events


def test_a_purchase_has_an_amount_and_a_currency(spark: SparkSession) -> None:
    """An amount is a decimal, to the cent; none is rounded, and an exponent, which a cast would write out, is none."""
    rows = events(
        spark,
        event(1, 0, "purchase", amount="10.10", currency="EUR"),
        event(2, 0, "purchase", amount="ten", currency="EUR"),
        event(3, 0, "purchase", amount="10.10"),
        event(4, 0, "purchase"),
        event(5, 0, "add_to_cart", amount="10.10", currency="EUR"),
        *(
            event(6, 0, "purchase", amount=text, currency="EUR")
            for text in ("1e-999999999", "1e999", "1.005", "1.00\n")
        ),
    )
    assert [(row.event_id, row.amount) for row in purchases(rows).collect()] == [("e-1", Decimal("10.10"))]

import datetime

from pyspark.sql import SparkSession

from app.ml.refunds import labels
from app.warehouse.schemas import REFUND_EVENTS, TRANSACTIONS

DAY = datetime.timedelta(days=1)
AT = datetime.datetime(2024, 1, 2, 12)  # noqa: DTZ001 - the session is in UTC


def test_a_refund_counts_if_it_is_known_in_time(spark: SparkSession) -> None:
    """The first one, up to `label_days` after the transaction; a later one and none are the same."""
    sold = [
        dict.fromkeys(TRANSACTIONS.names)
        | {"transaction_id": f"t-{key}", "created_at": AT, "processed_date": AT.date()}
        for key in range(4)
    ]
    refunded = [(0, 2 * DAY), (1, 2 * DAY + DAY / 86_400), (2, 3 * DAY), (2, DAY)]
    refunds = [
        dict.fromkeys(REFUND_EVENTS.names)
        | {"transaction_id": f"t-{key}", "refunded_at": AT + after, "refunded_date": (AT + after).date()}
        for key, after in refunded
    ]
    tables = {
        "transactions": spark.createDataFrame(sold, TRANSACTIONS),
        "refund_events": spark.createDataFrame(refunds, REFUND_EVENTS),
    }
    found = labels(**tables, first=AT.date(), last=AT.date(), label_days=2)
    assert {row.transaction_id: row.label for row in found.collect()} == {"t-0": 1, "t-1": 0, "t-2": 1, "t-3": 0}

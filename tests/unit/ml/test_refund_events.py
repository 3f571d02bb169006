import datetime

from pyspark.sql import SparkSession

from app.ml.refund_events import refund_events
from app.schemas import RAW_REFUNDS

DAY = datetime.date(2024, 1, 2)


def test_a_transaction_is_refunded_once_a_day(spark: SparkSession) -> None:
    """The first refund counts; rows without a key, a customer or an instant are left out."""
    early, late = (datetime.datetime(2024, 1, 2, hour, tzinfo=datetime.UTC) for hour in (8, 9))
    rows = [
        ("r-1", "t-1", "c-1", None, late),
        ("r-2", "t-1", "c-1", None, early),
        ("r-3", "t-2", "c-2", None, late),
        ("r-4", None, "c-1", None, early),
        ("r-5", "t-3", None, None, early),
        ("r-6", "t-4", "c-1", None, None),
    ]
    found = refund_events(spark.createDataFrame(rows, RAW_REFUNDS), date=DAY).orderBy("transaction_id").collect()
    assert [(row.refund_id, row.refunded_at, row.refunded_date) for row in found] == [
        ("r-2", early.replace(tzinfo=None), DAY),
        ("r-3", late.replace(tzinfo=None), DAY),
    ]

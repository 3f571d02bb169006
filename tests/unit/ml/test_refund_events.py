import datetime

from pyspark.sql import Row, SparkSession

from app.ml.refund_events import bronze_refunds, refund_events
from app.sources import REFUNDS
from spark_app.engine import ingest

DAY = datetime.date(2024, 1, 2)


def test_a_transaction_is_refunded_once_a_day(spark: SparkSession) -> None:
    """The first refund counts; of two at the same instant that with the smaller key."""
    early, late = (datetime.datetime(2024, 1, 2, hour, tzinfo=datetime.UTC) for hour in (8, 9))
    refunds = [("r-1", "t-1", late), ("r-3", "t-1", early), ("r-2", "t-1", early), ("r-4", "t-2", late)]
    none = dict.fromkeys(bronze_refunds.table.schema.names) | {"violations": [], "date": DAY}
    rows = [
        Row(**none | {"refund_id": refund, "transaction_id": transaction, "refunded_at": at})
        for refund, transaction, at in refunds
    ]
    bronze = spark.createDataFrame(rows, bronze_refunds.table.schema)
    ranked = ingest.with_version_rank(bronze, key=REFUNDS.key, newest_first=REFUNDS.order)
    found = refund_events(ranked.where("version_rank = 1")).orderBy("transaction_id").collect()
    assert [(row.refund_id, row.refunded_at, row.refunded_date) for row in found] == [
        ("r-2", early.replace(tzinfo=None), DAY),
        ("r-4", late.replace(tzinfo=None), DAY),
    ]

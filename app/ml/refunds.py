"""Will this transaction be refunded?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app import features
from spark_app import model


@model.labels(features.purchases, scores="refund_scores")
def refunded(rows: DataFrame, refund_events: DataFrame, *, label_days: int) -> DataFrame:
    """One row per transaction: whether its refund is known within `label_days`.

    A refund is known from its event, or from the status of the transaction at the instant of its last change.

    Columns in: those of `TRANSACTIONS`; refund_events: those of `REFUND_EVENTS`.
    Columns out: transaction_id, label.
    """
    earliest = refund_events.groupBy("transaction_id").agg(F.min("refunded_at").alias("refunded_at"))
    by_status = F.when(F.col("status") == "refunded", F.col("updated_at"))
    known_at = F.least("refunded_at", by_status)  # of those that are not null
    is_in_time = known_at <= F.col("created_at") + F.make_dt_interval(days=F.lit(label_days))
    return rows.join(earliest, "transaction_id", "left").select("transaction_id", is_in_time.alias("label"))

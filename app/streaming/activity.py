"""What users do, in windows of time: events and users by event type, and how many viewers purchase."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.schemas import ACTIVITY
from spark_app import stream


@stream.table(schema=ACTIVITY)
def activity(user_events: DataFrame, *, window: stream.Interval = "5 minutes") -> DataFrame:
    """One row per window and event type, and one per window about all event types, which has the conversion.

    Users are estimated by HLL sketches of 4,096 registers, whose standard error is 1.6 %; below some hundred users the
    sketch keeps their hashes, and is exact but for collisions. Exact distinct counts are not possible in a stream. The
    conversion is above 1 where users purchase what they viewed in an earlier window. A window is appended when the
    watermark has passed its end; what comes later is dropped, and counted.

    Columns in: those of `USER_EVENT`.
    Columns out: those of `ACTIVITY`.
    """
    both = F.explode(F.array("event_type", F.lit(None).cast("string")))
    rows = user_events.withColumn("done", F.col("event_type")).withColumn("event_type", both)
    windows = rows.groupBy(F.window("timestamp", window), "event_type").agg(
        F.count(F.lit(1)).alias("events"),
        F.hll_sketch_agg("user_id").alias("users_sketch"),
        _users("view").alias("viewers"),
        _users("purchase").alias("purchasers"),
    )
    ratio = F.try_divide("purchasers", "viewers")
    return windows.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "event_type",
        "events",
        F.hll_sketch_estimate("users_sketch").alias("users"),
        F.when(F.col("event_type").isNull(), ratio).alias("conversion_ratio"),
        "users_sketch",
    )


def _users(event_type: str) -> Column:
    """The number of different users of one event type, estimated."""
    return F.hll_sketch_estimate(F.hll_sketch_agg(F.when(F.col("done") == event_type, F.col("user_id"))))

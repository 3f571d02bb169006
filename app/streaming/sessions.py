"""Sessions of users: events without a long gap between them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.schemas import SESSIONS
from spark_app import stream


@stream.table(schema=SESSIONS)
def sessions(user_events: DataFrame, *, gap: stream.Interval = "30 minutes") -> DataFrame:
    """One row per user and session; a session ends where the next event of the user comes after more than the gap.

    It is appended when the watermark has passed its end and the gap after it.

    Columns in: those of `USER_EVENT`.
    Columns out: those of `SESSIONS`.
    """
    per_session = user_events.groupBy("user_id", F.session_window("timestamp", gap))
    return per_session.agg(
        F.min("timestamp").alias("started_at"),
        F.max("timestamp").alias("ended_at"),
        F.count(F.lit(1)).alias("events"),
        F.count_if(F.col("event_type") == "purchase").alias("purchases"),
    ).drop("session_window")

"""Sessions of users: events without a long gap between them.

Reads: the topic user_events.
Writes: sessions.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.schemas import SESSIONS
from app.topics import USER_EVENTS
from spark_app.pipeline import stream
from spark_app.pipeline.stream import StreamContext
from spark_app.warehouse.tables import Table

TOPICS: Final = (USER_EVENTS.name,)
READS: Final = ()
WRITES: Final = (Table("sessions", SESSIONS),)


class Config(stream.StreamConfig):
    """What an operator tunes: see `config/streaming/sessions.yml`."""

    watermark: stream.Interval
    gap: stream.Interval


def sessions(events: DataFrame, config: Config) -> DataFrame:
    """One row per user and session; a session ends where the next event of the user comes after more than the gap.

    Columns in: those of `USER_EVENT`.
    Columns out: those of `SESSIONS`.
    """
    per_session = events.groupBy("user_id", F.session_window("timestamp", config.gap))
    return per_session.agg(
        F.min("timestamp").alias("started_at"),
        F.max("timestamp").alias("ended_at"),
        F.count(F.lit(1)).alias("events"),
        F.count_if(F.col("event_type") == "purchase").alias("purchases"),
    ).drop("session_window")


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Appends each session when the watermark has passed its end and the gap after it."""
    events = context.read_once(USER_EVENTS, config, watermark=config.watermark)
    return context.append(sessions(events, config), "sessions", config)

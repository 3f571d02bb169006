"""Alerts about big purchases, as soon as they are seen.

Reads: the topic user_events.
Writes: the topic purchase_alerts, each alert at least once; its key is that of the event.
"""

from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Annotated, Final

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.purchases import purchases
from app.schemas import MONEY, PURCHASE
from app.topics import PURCHASE_ALERTS, USER_EVENTS
from spark_app.pipeline import records, stream
from spark_app.pipeline.stream import StreamContext
from spark_app.pipeline.topics import Topic

TOPICS: Final = (USER_EVENTS.name,)
READS: Final = ()
WRITES: Final = ()
FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSX"

Limit = Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=2)]


class Config(stream.RealTimeConfig):
    """What an operator tunes: see `config/streaming/alerts.yml`."""

    limits: dict[str, Limit] = Field(min_length=1)


def alerts(read: DataFrame, config: Config, topic: Topic = USER_EVENTS) -> DataFrame:
    """One record per purchase of at least the limit of its currency; repetitions have equal keys.

    Columns in: those of `RECORD`.
    Columns out: key, value, headers.
    """
    events = records.valid(read, topic, keep=["headers"])
    big = purchases(events, keep=["headers"]).where(_is_big(config))
    return big.select(F.col("event_id").cast("binary").alias("key"), _value().cast("binary").alias("value"), "headers")


def _is_big(config: Config) -> Column:
    return reduce(
        or_,
        [
            (F.col("currency") == currency) & (F.col("amount") >= F.lit(limit).cast(MONEY))
            for currency, limit in config.limits.items()
        ],
    )


def _value() -> Column:
    """The purchase as a JSON object; its amount is text, which keeps every digit."""
    columns = [F.col(name).cast("string").alias(name) if name == "amount" else F.col(name) for name in PURCHASE.names]
    return F.to_json(F.struct(*columns), {"timestampFormat": FORMAT})


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Sends an alert for each big purchase; in real time if that is configured and the records come from Kafka."""
    topic = context.bounded(USER_EVENTS)
    return context.publish(alerts(context.read(topic.name, config), config, topic), PURCHASE_ALERTS, config)

"""The topics that streaming queries read: the columns of their values, and what every value must have."""

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.types import StructType

from app.errors import ConfigError
from app.settings import Interval, Stream
from app.warehouse import schemas

EVENT_TIME_AFTER_MAX: Final = "10 minutes"
"""Shorter than the watermarks of the queries: an event that is let in never makes one late that comes in time."""


@dataclass(frozen=True)
class Topic:
    """A topic whose records have a JSON object as value.

    Attributes:
        name: The name of the topic, and of the folder of its files.
        schema: The columns of a value.
        key: The column that identifies a value; records with equal keys are repetitions.
        event_time: The column with the instant at which it happened.
        optional: Columns that a value may leave out.
        faults: What may be wrong with a value whose columns are of their types: an SQL condition about `row`, its
            columns, and `timestamp`, that of the record, and the reason.
        event_time_after_max: How much later than its record a value may say that it happened, as
            `message.timestamp.after.max.ms` bounds the timestamp of a record in Kafka; None for any time.
    """

    name: str
    schema: StructType
    key: str
    event_time: str = "timestamp"
    optional: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    event_time_after_max: Interval | None = EVENT_TIME_AFTER_MAX

    @property
    def required(self) -> list[str]:
        """The columns without which a value is malformed."""
        return [name for name in self.schema.names if name not in self.optional]


OLDEST_YEARS: Final = 10
"""A request may be so much older than its record. Features are read from the day of the oldest request of a micro-batch
on: one of 1970, which is what a clock that was never set says, would read all days of the tables. So long, since a
record may be sent again, and a demo stream begins when the user says."""

USER_EVENTS: Final = Topic("user_events", schemas.USER_EVENT, "event_id", optional=("properties",))
IMPRESSIONS: Final = Topic("impressions", schemas.IMPRESSION, "impression_id")
CLICKS: Final = Topic("clicks", schemas.CLICK, "click_id")
PREDICTION_REQUESTS: Final = Topic(
    "prediction_requests",
    schemas.PREDICTION_REQUEST,
    "request_id",
    event_time="created_at",
    optional=(
        "transaction_id", "category", "quantity", "payment_method", "channel", "country", "customer_segment",
        "customer_country",
    ),
    faults=(
        ("row.amount <= 0", "an amount that is not positive"),
        ("row.quantity < 1", "a quantity below 1"),
        ("row.created_at < TIMESTAMP '1970-01-01 00:00:00Z'", "an instant before 1970"),
        (f"row.created_at < `timestamp` - INTERVAL '{OLDEST_YEARS}' YEAR", f"more than {OLDEST_YEARS} years old"),
    ),
)  # fmt: skip
INCOMING: Final = (USER_EVENTS, IMPRESSIONS, CLICKS, PREDICTION_REQUESTS)
"""All topics that producers write."""
DEAD_LETTERS: Final = "dead_letters"
PURCHASE_ALERTS: Final = "purchase_alerts"
PREDICTIONS: Final = "predictions"
OUTGOING: Final = (DEAD_LETTERS, PURCHASE_ALERTS, PREDICTIONS)
"""All topics that queries write."""


def bounded(topic: Topic, stream: Stream) -> Topic:
    """A topic with the configured bound of its event time.

    Raises:
        ConfigError: A topic is configured that no producer writes.
    """
    configured, known = stream.event_time_after_max_of, [each.name for each in INCOMING]
    for name in configured.keys() - set(known):
        raise ConfigError(f"stream.event_time_after_max_of: there is no topic {name}; allowed are {', '.join(known)}")
    return replace(topic, event_time_after_max=configured.get(topic.name, stream.event_time_after_max))

"""The topics that streaming queries read: the columns of their values, and what every value must have."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from app.warehouse import schemas


@dataclass(frozen=True)
class Topic:
    """A topic whose records have a JSON object as value.

    Attributes:
        name: The name of the topic, and of the folder of its files.
        schema: The columns of a value.
        key: The column that identifies a value; records with equal keys are repetitions.
        optional: Columns that a value may leave out.
        faults: What may be wrong with a value whose columns are of their types: an SQL condition about `row`, its
            columns, and `timestamp`, that of the record, and the reason.
    """

    name: str
    schema: StructType
    key: str
    optional: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()

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
    optional=(
        "transaction_id", "category", "quantity", "payment_method", "channel", "country", "customer_segment",
        "customer_country",
    ),
    faults=(
        ("row.amount <= 0", "an amount that is not positive"),
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

"""The topics of the shop: those that its producers write, and those that its queries write."""

from typing import Final

from app import schemas
from spark_app import Topic

OLDEST_YEARS: Final = 10
"""A request may be so much older than its record. Features are read from the day of the oldest request of a micro-batch
on: one of 1970, which is what a clock that was never set says, would read all days of the tables. So long, since a
record may be sent again, and a demo stream begins when the user says."""

USER_EVENTS: Final = Topic("user_events", schema=schemas.USER_EVENT, key="event_id", optional=("properties",))
IMPRESSIONS: Final = Topic("impressions", schema=schemas.IMPRESSION, key="impression_id")
CLICKS: Final = Topic("clicks", schema=schemas.CLICK, key="click_id")
PREDICTION_REQUESTS: Final = Topic(
    "prediction_requests",
    schema=schemas.PREDICTION_REQUEST,
    key="request_id",
    event_time="created_at",
    optional=(
        "transaction_id", "category", "quantity", "payment_method", "channel", "country", "customer_segment",
        "customer_country",
    ),
    malformed_if=(
        ("row.amount <= 0", "an amount that is not positive"),
        ("row.quantity < 1", "a quantity below 1"),
        ("row.created_at < TIMESTAMP '1970-01-01 00:00:00Z'", "an instant before 1970"),
        (f"row.created_at < `timestamp` - INTERVAL '{OLDEST_YEARS}' YEAR", f"more than {OLDEST_YEARS} years old"),
    ),
)  # fmt: skip
INCOMING: Final = (USER_EVENTS, IMPRESSIONS, CLICKS, PREDICTION_REQUESTS)
"""All topics that producers write."""
PURCHASE_ALERTS: Final = "purchase_alerts"
PREDICTIONS: Final = "predictions"
OUTGOING: Final = ("dead_letters", PURCHASE_ALERTS, PREDICTIONS)
"""All topics that queries write."""

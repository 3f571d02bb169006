"""Events of users, each once, with the customer who caused it."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.schemas import EVENTS
from spark_app import expect, stream

EVENT_TYPES: Final = ("view", "add_to_cart", "remove_from_cart", "purchase")


@stream.table(
    schema=EVENTS,
    partition_by="event_date",
    expect=[expect.matches("user_id", r"c-\d{7,}"), expect.allowed("event_type", EVENT_TYPES)],
    starts_first=True,
)
def events(user_events: DataFrame, customers: DataFrame) -> DataFrame:
    """One row per event, with the customer of now; an event of an unknown user has no customer.

    Columns in: user_events: those of `EXTENDED_EVENT`; customers: those of `CUSTOMERS`.
    Columns out: those of `EVENTS`.
    """
    known = customers.where("is_current").select(
        F.col("customer_id").alias("user_id"),
        F.col("segment").alias("customer_segment"),
        F.col("country").alias("customer_country"),
    )
    dated = user_events.withColumn("event_date", F.to_date("timestamp"))
    return dated.join(known, "user_id", "left").select(*EVENTS.names)

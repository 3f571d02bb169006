"""Events of users, each once, with the customer who caused it.

Reads: the topic user_events, customers.
Writes: events.
"""

from typing import ClassVar, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.schemas import EVENTS
from app.topics import USER_EVENTS
from spark_app.pipeline import records, stream
from spark_app.pipeline.stream import StreamContext
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.warehouse.tables import Table

TOPICS: Final = (USER_EVENTS.name,)
STARTS_FIRST: Final = True
"""People look at its rows first."""
READS: Final = ("customers",)
EVENT_TYPES: Final = ("view", "add_to_cart", "remove_from_cart", "purchase")
WRITES: Final = (Table("events", EVENTS, ("event_date",)),)


def expectations() -> list[Expectation]:
    """What every event must meet; one that does not is kept, and counted."""
    return [expect.matches("user_id", r"c-\d{7,}"), expect.allowed("event_type", EVENT_TYPES)]


class Config(stream.CheckedConfig):
    """What an operator tunes: see `config/streaming/events.yml`."""

    expectation_names: ClassVar = [expectation.name for expectation in expectations()]

    watermark: stream.Interval


def events(valid: DataFrame, customers: DataFrame) -> DataFrame:
    """One row per event, with the customer of now; an event of an unknown user has no customer.

    Columns in: valid: those of `EXTENDED_EVENT`; customers: those of `CUSTOMERS`.
    Columns out: those of `EVENTS`.
    """
    known = customers.where("is_current").select(
        F.col("customer_id").alias("user_id"),
        F.col("segment").alias("customer_segment"),
        F.col("country").alias("customer_country"),
    )
    dated = valid.withColumn("event_date", F.to_date("timestamp"))
    return dated.join(known, "user_id", "left").select(*EVENTS.names)


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Appends each event once; one that comes later than the watermark is dropped, and counted."""
    valid = context.read_once(USER_EVENTS, config, watermark=config.watermark, keep=[records.EXTRA])
    checked = context.expect(valid, "events", expectations(), config)
    customers = context.table("customers")
    if customers.isEmpty():
        context.note(
            f"{context.name}: the table customers is empty, so that events have no segment and no country of their "
            "customers until `make run-etl` (`spark-app etl customers`) publishes some"
        )
    return context.append(events(checked, customers), "events", config)

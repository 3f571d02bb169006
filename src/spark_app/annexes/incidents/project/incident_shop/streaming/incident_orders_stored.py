"""Orders, each once."""

from pyspark.sql import DataFrame

from spark_app import stream


@stream.table(
    schema="order_id string, amount double, timestamp timestamp",
    watermark="1 minute",
)
def incident_orders_stored(incident_orders: DataFrame) -> DataFrame:
    """One row per order."""
    return incident_orders.select("order_id", "amount", "timestamp")

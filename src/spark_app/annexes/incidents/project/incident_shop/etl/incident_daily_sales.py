"""Sales of a day."""

from pyspark.sql import DataFrame

from spark_app import daily, expect

from ..sources import SALES


@daily.source(SALES, expect=[expect.not_null("customer_id"), expect.at_least("amount", "0.01")])
def bronze_incident_sales(rows: DataFrame) -> DataFrame:
    """Every raw row, with the expectations that it violates."""
    return rows


@daily.table(
    schema="""
        day date, sale_id string, customer_id string, amount double, pieces int, created_at timestamp,
        is_returned boolean
    """,
    partition_by="day",
    key="sale_id",
)
def incident_sales(bronze_incident_sales: DataFrame) -> DataFrame:
    """One row per sale."""
    return bronze_incident_sales.withColumnRenamed("date", "day")

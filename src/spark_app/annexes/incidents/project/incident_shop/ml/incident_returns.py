"""Will this sale be returned?"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app import model

from ..etl import incident_daily_sales

FEATURES: Final = (
    model.number("amount", "price", "price, in EUR", lambda amount: amount),
    model.number("pieces", "product", "pieces bought", lambda pieces: pieces.cast("double")),
)


@model.features(
    incident_daily_sales.incident_sales,
    key="sale_id",
    entity="customer_id",
    at="created_at",
    known=("amount", "pieces"),
    window_days=1,
    features=FEATURES,
)
def incident_purchases(rows: DataFrame) -> DataFrame:
    """The sales themselves."""
    return rows


@model.labels(
    incident_purchases,
    scores="incident_return_scores",
    candidates={"logistic_regression": {"regParam": [0.01], "maxIter": [10]}},
)
def incident_returned(rows: DataFrame, *, label_days: int) -> DataFrame:  # noqa: ARG001 - whatever the days
    """One row per sale: whether it was returned."""
    return rows.select("sale_id", F.col("is_returned").alias("label"))

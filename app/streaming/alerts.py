"""Alerts about big purchases, as soon as they are seen."""

from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.purchases import purchases
from app.schemas import MONEY, PURCHASE
from spark_app import stream

Limits = Annotated[
    dict[str, Annotated[Decimal, Field(gt=0, max_digits=12, decimal_places=2)]],
    Field(min_length=1),
]


@stream.topic(schema=PURCHASE, key="event_id")
def purchase_alerts(user_events: DataFrame, *, limits: Limits) -> DataFrame:
    """One row per purchase of at least the limit of its currency; repetitions have equal keys.

    Columns in: those of `RECEIVED_EVENT`.
    Columns out: event_id, user_id, amount, currency, timestamp, headers.
    """
    is_big = [
        (F.col("currency") == currency) & (F.col("amount") >= F.lit(limit).cast(MONEY))
        for currency, limit in limits.items()
    ]
    return purchases(user_events, keep=["headers"]).where(reduce(or_, is_big))

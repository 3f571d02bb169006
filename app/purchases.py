"""Purchases among the events of users."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from app.schemas import MONEY, PURCHASE

DIGITS: Final = r"^-?0*\d{1,10}(\.\d{1,2}0*)?\z"
"""A number that has room in `MONEY`, all its digits kept."""


def purchases(events: DataFrame, *, keep: Sequence[str] = ()) -> DataFrame:
    """One row per event that is a purchase with an amount and a currency; purchases without are counted.

    Columns in: those of `USER_EVENT`.
    Columns out: those of `PURCHASE`; those to keep.
    """
    text = F.col("properties")["amount"]
    # The cast writes all digits of 1e-999999999 out: it takes hours, or fails with an overflow.
    amount = F.when(text.rlike(DIGITS), text.try_cast(MONEY))
    rows = events.withColumns({"amount": amount, "currency": F.col("properties")["currency"]})
    is_purchase = F.col("event_type") == "purchase"
    is_priced = F.col("amount").isNotNull() & F.col("currency").isNotNull()
    # The observation also keeps the filter from moving below the watermark, which all events move on.
    counted = rows.observe(
        "purchases",
        F.count_if(is_purchase & is_priced).alias("purchases"),
        F.count_if(is_purchase & ~is_priced).alias("without_amount"),
    )
    return counted.where(is_purchase & is_priced).select(*PURCHASE.names, *keep)

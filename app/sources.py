"""The sources of the shop: raw files of a day."""

from typing import Final

from app.schemas import RAW_CUSTOMERS, RAW_REFUNDS, RAW_TRANSACTIONS
from spark_app import Source

TRANSACTIONS: Final = Source("transactions", schema=RAW_TRANSACTIONS, key="transaction_id", newest="updated_at")

CUSTOMERS: Final = Source(
    "customers",
    schema=RAW_CUSTOMERS,
    key=("customer_id", "updated_at"),  # a row is a change, and rows of the same instant contradict each other
    newest=("segment", "country", "signed_up_at"),
    may_be_empty=True,  # a day on which no customer changed
)

REFUNDS: Final = Source(
    "refunds",
    schema=RAW_REFUNDS,
    key="transaction_id",  # which is refunded once
    oldest=("refunded_at", "refund_id"),
    may_be_empty=True,  # a day on which nothing came back
)

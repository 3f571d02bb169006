"""The sources of the shop: raw files of a day."""

from typing import Final

from app.schemas import RAW_TRANSACTIONS
from spark_app import Source

TRANSACTIONS: Final = Source("transactions", schema=RAW_TRANSACTIONS, key="transaction_id", newest="updated_at")

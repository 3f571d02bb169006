"""The raw files of the shop."""

from typing import Final

from spark_app import Source

SALES: Final = Source(
    "incident_sales",
    schema="""
        sale_id string COMMENT 'key of a sale',
        customer_id string COMMENT 'who bought',
        amount double COMMENT 'price, in EUR',
        pieces int COMMENT 'pieces bought',
        created_at timestamp COMMENT 'instant of the sale, UTC',
        is_returned boolean COMMENT 'whether it was returned within a day'
    """,
    key="sale_id",
    newest="created_at",
)

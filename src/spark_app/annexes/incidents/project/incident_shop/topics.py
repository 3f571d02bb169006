"""The records of the shop."""

from typing import Final

from spark_app import Topic

ORDERS: Final = Topic(
    "incident_orders",
    schema="""
        order_id string COMMENT 'key of an order',
        amount double COMMENT 'price, in EUR',
        timestamp timestamp COMMENT 'instant of the order, UTC'
    """,
    key="order_id",
)

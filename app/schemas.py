"""The schemas of the shop, one per table and topic; the meaning and unit of a column is its comment."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from spark_app.warehouse.schemas import RECORD, bronze, column

MONEY: Final = DecimalType(12, 2)
TOTAL: Final = DecimalType(22, 2)


RAW_TRANSACTIONS: Final = StructType(
    [
        column("transaction_id", StringType(), "key of a transaction"),
        column("customer_id", StringType(), "key of the customer who bought"),
        column("product_id", StringType(), "key of the product bought"),
        column("category", StringType(), "category of the product"),
        column("quantity", IntegerType(), "pieces bought"),
        column("amount", MONEY, "price of all pieces, in the currency of the row"),
        column("currency", StringType(), "ISO 4217 code"),
        column("status", StringType(), "completed, pending, failed or refunded"),
        column("payment_method", StringType(), "how it is paid"),
        column("channel", StringType(), "web, app or store"),
        column("country", StringType(), "ISO 3166 code of where it is shipped to"),
        column("created_at", TimestampType(), "instant of the purchase, UTC"),
        column("updated_at", TimestampType(), "instant of the last change, UTC"),
    ]
)

RAW_CUSTOMERS: Final = StructType(
    [
        column("customer_id", StringType(), "key of a customer"),
        column("segment", StringType(), "consumer, business or vip"),
        column("country", StringType(), "ISO 3166 code of the home country"),
        column("signed_up_at", TimestampType(), "instant of the sign-up, UTC"),
        column("updated_at", TimestampType(), "instant of the last change, UTC"),
    ]
)

CUSTOMER_THEN: Final = StructType(
    [
        column("customer_segment", StringType(), "segment of the customer at the instant of the transaction"),
        column("customer_country", StringType(), "home country of the customer at the instant of the transaction"),
    ]
)

BRONZE: Final = bronze([*RAW_TRANSACTIONS.fields, *CUSTOMER_THEN.fields])

CUSTOMERS: Final = StructType(
    [
        *RAW_CUSTOMERS.fields,
        column("valid_from", TimestampType(), "first instant of this version, UTC"),
        column("valid_to", TimestampType(), "first instant after this version, UTC; null for the current one"),
        column("is_current", BooleanType(), "whether this is the latest version"),
    ]
)

TRANSACTIONS: Final = StructType(
    [
        *RAW_TRANSACTIONS.fields,
        *CUSTOMER_THEN.fields,
        column("amount_category", StringType(), "small < 100 <= medium < 1000 <= large"),
        column("processed_date", DateType(), "date of the run that published the row"),
    ]
)

SOLD: Final = ("completed", "pending")
DAILY_SALES: Final = StructType(
    [
        column("processed_date", DateType(), "date of the run that published the row"),
        column("amount_category", StringType(), "small < 100 <= medium < 1000 <= large"),
        column("status", StringType(), "completed or pending"),
        column("transaction_count", LongType(), "number of transactions"),
        column("total_amount", TOTAL, "sum of the amounts, in the configured currency"),
        column("avg_amount", MONEY, "mean of the amounts, rounded half up, in the configured currency"),
        column("unique_customers", LongType(), "number of different customers"),
    ]
)

USER_EVENT: Final = StructType(
    [
        column("event_id", StringType(), "key of an event"),
        column("user_id", StringType(), "key of the user, as customer_id"),
        column("event_type", StringType(), "view, add_to_cart, remove_from_cart or purchase"),
        column("timestamp", TimestampType(), "instant of the event, UTC"),
        column("properties", MapType(StringType(), StringType()), "further values of the event, as text"),
    ]
)

_EXTRA: Final = column("extra", MapType(StringType(), StringType()), "fields that are not in the schema, as text")

EXTENDED_EVENT: Final = StructType([*USER_EVENT.fields, _EXTRA])

RECEIVED_EVENT: Final = StructType([*USER_EVENT.fields, RECORD["headers"]])

EVENTS: Final = StructType(
    [
        *USER_EVENT.fields,
        column("customer_segment", StringType(), "segment of the customer at the micro-batch; null for unknown users"),
        column("customer_country", StringType(), "home country of the customer; null for unknown users"),
        column("event_date", DateType(), "day of the event, UTC"),
        _EXTRA,
    ]
)

IMPRESSION: Final = StructType(
    [
        column("impression_id", StringType(), "key of an impression"),
        column("ad_id", StringType(), "key of the ad that was shown"),
        column("user_id", StringType(), "key of the user who saw it, as customer_id"),
        column("timestamp", TimestampType(), "instant that it was shown, UTC"),
    ]
)

CLICK: Final = StructType(
    [
        column("click_id", StringType(), "key of a click"),
        column("impression_id", StringType(), "key of the impression that was clicked"),
        column("timestamp", TimestampType(), "instant of the click, UTC"),
    ]
)

PREDICTION_REQUEST: Final = StructType(
    [
        column("request_id", StringType(), "key of a request"),
        *(
            TRANSACTIONS[name]
            for name in (
                "transaction_id", "customer_id", "category", "quantity", "amount", "payment_method", "channel",
                "country", "created_at", "customer_segment", "customer_country",
            )
        ),
    ]
)  # fmt: skip

PURCHASE: Final = StructType(
    [
        column("event_id", StringType(), "key of the event"),
        column("user_id", StringType(), "key of the user, as customer_id"),
        column("amount", MONEY, "what was paid, in the currency of the row"),
        column("currency", StringType(), "ISO 4217 code"),
        column("timestamp", TimestampType(), "instant of the purchase, UTC"),
    ]
)

ACTIVITY: Final = StructType(
    [
        column("window_start", TimestampType(), "first instant of the window, UTC"),
        column("window_end", TimestampType(), "first instant after the window, UTC"),
        column("event_type", StringType(), "what users did; null for the row about all event types"),
        column("events", LongType(), "number of events"),
        column("users", LongType(), "number of different users, estimated: exact for a few, standard error 1.6 %"),
        column(
            "conversion_ratio",
            DoubleType(),
            "users who purchased / users who viewed; in the row about all event types, null without viewers",
        ),
        column("users_sketch", BinaryType(), "HLL sketch of users, for numbers over several windows: hll_union_agg"),
    ]
)

SESSIONS: Final = StructType(
    [
        column("user_id", StringType(), "key of the user, as customer_id"),
        column("started_at", TimestampType(), "instant of the first event, UTC"),
        column("ended_at", TimestampType(), "instant of the last event, UTC"),
        column("events", LongType(), "number of events"),
        column("purchases", LongType(), "number of purchases"),
    ]
)

ABANDONED_CARTS: Final = StructType(
    [
        column("user_id", StringType(), "key of the user, as customer_id"),
        column("started_at", TimestampType(), "instant that the first product was added, UTC"),
        column("last_added_at", TimestampType(), "instant that the last product was added, UTC"),
        column("abandoned_at", TimestampType(), "instant until which nothing was purchased, UTC"),
        column("product_ids", ArrayType(StringType()), "keys of the products left in the cart, in order"),
    ]
)

BALANCES: Final = StructType(
    [
        column("user_id", StringType(), "key of the user, as customer_id"),
        column("currency", StringType(), "ISO 4217 code"),
        column("purchases", LongType(), "number of purchases"),
        column("spent", TOTAL, "sum of the amounts, in the currency of the row"),
        column("last_purchase_at", TimestampType(), "instant of the newest purchase, UTC"),
    ]
)

ATTRIBUTIONS: Final = StructType(
    [
        column("impression_id", StringType(), "key of the impression"),
        column("ad_id", StringType(), "key of the ad that was shown"),
        column("user_id", StringType(), "key of the user who saw it, as customer_id"),
        column("shown_at", TimestampType(), "instant of the impression, UTC"),
        column("click_id", StringType(), "key of a click on it; null for an impression without clicks"),
        column("clicked_at", TimestampType(), "instant of the click, UTC; null without clicks"),
    ]
)

RAW_REFUNDS: Final = StructType(
    [
        column("refund_id", StringType(), "key of a refund"),
        column("transaction_id", StringType(), "key of the transaction that is refunded"),
        column("customer_id", StringType(), "key of the customer who bought"),
        column("amount", MONEY, "what is paid back, in the currency of the transaction"),
        column("refunded_at", TimestampType(), "instant of the refund, UTC"),
    ]
)

BRONZE_REFUNDS: Final = bronze(RAW_REFUNDS.fields)

REFUND_EVENTS: Final = StructType(
    [*RAW_REFUNDS.fields, column("refunded_date", DateType(), "day of the raw folder that the refund came in")]
)

"""The schemas of the shop, one per table and topic; the meaning and unit of a column is its comment."""

from typing import Final

from pyspark.sql.types import DecimalType, StructType

from spark_app import schema

MONEY: Final = DecimalType(12, 2)
TOTAL: Final = DecimalType(22, 2)

RAW_TRANSACTIONS: Final = schema(
    """
        transaction_id string COMMENT 'key of a transaction',
        customer_id string COMMENT 'key of the customer who bought',
        product_id string COMMENT 'key of the product bought',
        category string COMMENT 'category of the product',
        quantity int COMMENT 'pieces bought',
        amount decimal(12, 2) COMMENT 'price of all pieces, in the currency of the row',
        currency string COMMENT 'ISO 4217 code',
        status string COMMENT 'completed, pending, failed or refunded',
        payment_method string COMMENT 'how it is paid',
        channel string COMMENT 'web, app or store',
        country string COMMENT 'ISO 3166 code of where it is shipped to',
        created_at timestamp COMMENT 'instant of the purchase, UTC',
        updated_at timestamp COMMENT 'instant of the last change, UTC'
    """
)

RAW_CUSTOMERS: Final = schema(
    """
        customer_id string COMMENT 'key of a customer',
        segment string COMMENT 'consumer, business or vip',
        country string COMMENT 'ISO 3166 code of the home country',
        signed_up_at timestamp COMMENT 'instant of the sign-up, UTC',
        updated_at timestamp COMMENT 'instant of the last change, UTC'
    """
)

CUSTOMER_THEN: Final = schema(
    """
        customer_segment string COMMENT 'segment of the customer at the instant of the transaction',
        customer_country string COMMENT 'home country of the customer at the instant of the transaction'
    """
)

CUSTOMERS: Final = StructType(
    [
        *RAW_CUSTOMERS.fields,
        *schema(
            """
                valid_from timestamp COMMENT 'first instant of this version, UTC',
                valid_to timestamp COMMENT 'first instant after this version, UTC; null for the current one',
                is_current boolean COMMENT 'whether this is the latest version'
            """
        ).fields,
    ]
)

TRANSACTIONS: Final = StructType(
    [
        *RAW_TRANSACTIONS.fields,
        *CUSTOMER_THEN.fields,
        *schema(
            """
                amount_category string COMMENT 'small < 100 <= medium < 1000 <= large',
                processed_date date COMMENT 'date of the run that published the row'
            """
        ).fields,
    ]
)

SOLD: Final = ("completed", "pending")
DAILY_SALES: Final = schema(
    """
        processed_date date COMMENT 'date of the run that published the row',
        amount_category string COMMENT 'small < 100 <= medium < 1000 <= large',
        status string COMMENT 'completed or pending',
        transaction_count bigint COMMENT 'number of transactions',
        total_amount decimal(22, 2) COMMENT 'sum of the amounts, in the configured currency',
        avg_amount decimal(12, 2) COMMENT 'mean of the amounts, rounded half up, in the configured currency',
        unique_customers bigint COMMENT 'number of different customers'
    """
)

USER_EVENT: Final = schema(
    """
        event_id string COMMENT 'key of an event',
        user_id string COMMENT 'key of the user, as customer_id',
        event_type string COMMENT 'view, add_to_cart, remove_from_cart or purchase',
        timestamp timestamp COMMENT 'instant of the event, UTC',
        properties map<string, string> COMMENT 'further values of the event, as text'
    """
)

EXTENDED_EVENT: Final = StructType(
    [
        *USER_EVENT.fields,
        *schema(
            """
                extra map<string, string> COMMENT 'fields that are not in the schema, as text'
            """
        ).fields,
    ]
)

RECEIVED_EVENT: Final = StructType(
    [
        *USER_EVENT.fields,
        *schema(
            """
                headers array<struct<key:string,value:binary>> COMMENT 'headers of the record'
            """
        ).fields,
    ]
)

EVENTS: Final = StructType(
    [
        *USER_EVENT.fields,
        *schema(
            """
                customer_segment string COMMENT 'segment of the customer at the micro-batch; null for unknown users',
                customer_country string COMMENT 'home country of the customer; null for unknown users',
                event_date date COMMENT 'day of the event, UTC',
                extra map<string, string> COMMENT 'fields that are not in the schema, as text'
            """
        ).fields,
    ]
)

IMPRESSION: Final = schema(
    """
        impression_id string COMMENT 'key of an impression',
        ad_id string COMMENT 'key of the ad that was shown',
        user_id string COMMENT 'key of the user who saw it, as customer_id',
        timestamp timestamp COMMENT 'instant that it was shown, UTC'
    """
)

CLICK: Final = schema(
    """
        click_id string COMMENT 'key of a click',
        impression_id string COMMENT 'key of the impression that was clicked',
        timestamp timestamp COMMENT 'instant of the click, UTC'
    """
)

PREDICTION_REQUEST: Final = StructType(
    [
        *schema("request_id string COMMENT 'key of a request'").fields,
        *(
            TRANSACTIONS[name]
            for name in (
                "transaction_id", "customer_id", "category", "quantity", "amount", "payment_method", "channel",
                "country", "created_at", "customer_segment", "customer_country",
            )
        ),
    ]
)  # fmt: skip

PURCHASE: Final = schema(
    """
        event_id string COMMENT 'key of the event',
        user_id string COMMENT 'key of the user, as customer_id',
        amount decimal(12, 2) COMMENT 'what was paid, in the currency of the row',
        currency string COMMENT 'ISO 4217 code',
        timestamp timestamp COMMENT 'instant of the purchase, UTC'
    """
)

ACTIVITY: Final = schema(
    """
        window_start timestamp COMMENT 'first instant of the window, UTC',
        window_end timestamp COMMENT 'first instant after the window, UTC',
        event_type string COMMENT 'what users did; null for the row about all event types',
        events bigint COMMENT 'number of events',
        users bigint COMMENT 'number of different users, estimated: exact for a few, standard error 1.6 %',
        conversion_ratio double COMMENT 'purchasers / viewers, for all event types together; null without viewers',
        users_sketch binary COMMENT 'HLL sketch of users, for numbers over several windows: hll_union_agg'
    """
)

SESSIONS: Final = schema(
    """
        user_id string COMMENT 'key of the user, as customer_id',
        started_at timestamp COMMENT 'instant of the first event, UTC',
        ended_at timestamp COMMENT 'instant of the last event, UTC',
        events bigint COMMENT 'number of events',
        purchases bigint COMMENT 'number of purchases'
    """
)

ABANDONED_CARTS: Final = schema(
    """
        user_id string COMMENT 'key of the user, as customer_id',
        started_at timestamp COMMENT 'instant that the first product was added, UTC',
        last_added_at timestamp COMMENT 'instant that the last product was added, UTC',
        abandoned_at timestamp COMMENT 'instant until which nothing was purchased, UTC',
        product_ids array<string> COMMENT 'keys of the products left in the cart, in order'
    """
)

BALANCES: Final = schema(
    """
        user_id string COMMENT 'key of the user, as customer_id',
        currency string COMMENT 'ISO 4217 code',
        purchases bigint COMMENT 'number of purchases',
        spent decimal(22, 2) COMMENT 'sum of the amounts, in the currency of the row',
        last_purchase_at timestamp COMMENT 'instant of the newest purchase, UTC'
    """
)

ATTRIBUTIONS: Final = schema(
    """
        impression_id string COMMENT 'key of the impression',
        ad_id string COMMENT 'key of the ad that was shown',
        user_id string COMMENT 'key of the user who saw it, as customer_id',
        shown_at timestamp COMMENT 'instant of the impression, UTC',
        click_id string COMMENT 'key of a click on it; null for an impression without clicks',
        clicked_at timestamp COMMENT 'instant of the click, UTC; null without clicks'
    """
)

RAW_REFUNDS: Final = schema(
    """
        refund_id string COMMENT 'key of a refund',
        transaction_id string COMMENT 'key of the transaction that is refunded',
        customer_id string COMMENT 'key of the customer who bought',
        amount decimal(12, 2) COMMENT 'what is paid back, in the currency of the transaction',
        refunded_at timestamp COMMENT 'instant of the refund, UTC'
    """
)

REFUND_EVENTS: Final = StructType(
    [
        *RAW_REFUNDS.fields,
        *schema(
            """
                refunded_date date COMMENT 'day of the raw folder that the refund came in'
            """
        ).fields,
    ]
)

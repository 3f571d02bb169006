"""One schema per table; the meaning and unit of a column is its comment."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

MONEY: Final = DecimalType(12, 2)
TOTAL: Final = DecimalType(22, 2)


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, metadata={"comment": comment})


RAW_TRANSACTIONS: Final = StructType(
    [
        _column("transaction_id", StringType(), "key of a transaction"),
        _column("customer_id", StringType(), "key of the customer who bought"),
        _column("product_id", StringType(), "key of the product bought"),
        _column("category", StringType(), "category of the product"),
        _column("quantity", IntegerType(), "pieces bought"),
        _column("amount", MONEY, "price of all pieces, in the currency of the row"),
        _column("currency", StringType(), "ISO 4217 code"),
        _column("status", StringType(), "completed, pending, failed or refunded"),
        _column("payment_method", StringType(), "how it is paid"),
        _column("channel", StringType(), "web, app or store"),
        _column("country", StringType(), "ISO 3166 code of where it is shipped to"),
        _column("created_at", TimestampType(), "instant of the purchase, UTC"),
        _column("updated_at", TimestampType(), "instant of the last change, UTC"),
    ]
)

RAW_CUSTOMERS: Final = StructType(
    [
        _column("customer_id", StringType(), "key of a customer"),
        _column("segment", StringType(), "consumer, business or vip"),
        _column("country", StringType(), "ISO 3166 code of the home country"),
        _column("signed_up_at", TimestampType(), "instant of the sign-up, UTC"),
        _column("updated_at", TimestampType(), "instant of the last change, UTC"),
    ]
)

_QUARANTINED: Final = [
    _column("violations", ArrayType(StringType()), "expectations that the row violates; empty for a valid row"),
    _column("raw", StringType(), "the row as it was read; only for rows with violations"),
    _column("source_file", StringType(), "file that the row was read from"),
    _column("date", DateType(), "day of the raw folder"),
]

_JUDGED: Final = [
    _column("version_rank", IntegerType(), "1 for the valid row of a key that is published, 2 and more for the others"),
    _column("extra", MapType(StringType(), StringType()), "columns that are not in the schema, as text"),
    *_QUARANTINED,
]

_CUSTOMER_THEN: Final = [
    _column("customer_segment", StringType(), "segment of the customer at the instant of the transaction"),
    _column("customer_country", StringType(), "home country of the customer at the instant of the transaction"),
]

BRONZE: Final = StructType(RAW_TRANSACTIONS.fields + _CUSTOMER_THEN + _JUDGED)

BRONZE_CUSTOMERS: Final = StructType(RAW_CUSTOMERS.fields + _JUDGED)

CUSTOMERS: Final = StructType(
    [
        *RAW_CUSTOMERS.fields,
        _column("valid_from", TimestampType(), "first instant of this version, UTC"),
        _column("valid_to", TimestampType(), "first instant after this version, UTC; null for the current one"),
        _column("is_current", BooleanType(), "whether this is the latest version"),
    ]
)

TRANSACTIONS: Final = StructType(
    [
        *RAW_TRANSACTIONS.fields,
        *_CUSTOMER_THEN,
        _column("amount_category", StringType(), "small < 100 <= medium < 1000 <= large"),
        _column("processed_date", DateType(), "date of the run that published the row"),
    ]
)

SOLD: Final = ("completed", "pending")
"""The statuses of a transaction that count as sold."""

DAILY_SALES: Final = StructType(
    [
        _column("processed_date", DateType(), "date of the run that published the row"),
        _column("amount_category", StringType(), "small < 100 <= medium < 1000 <= large"),
        _column("status", StringType(), "completed or pending"),
        _column("transaction_count", LongType(), "number of transactions"),
        _column("total_amount", TOTAL, "sum of the amounts, in the configured currency"),
        _column("avg_amount", MONEY, "mean of the amounts, rounded half up, in the configured currency"),
        _column("unique_customers", LongType(), "number of different customers"),
    ]
)

QUARANTINE: Final = StructType(
    [
        _column("source", StringType(), "transactions or customers"),
        *_QUARANTINED,
    ]
)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

RECORD: Final = StructType(
    [
        _column("key", BinaryType(), "key of the record; null for a line of a file"),
        _column("value", BinaryType(), "value of the record, as it came"),
        _column("headers", ArrayType(_HEADER), "headers of the record; of a line of a file its path, as file"),
        _column("topic", StringType(), "topic of the record"),
        _column("partition", IntegerType(), "partition of the topic; null for a line of a file"),
        _column("offset", LongType(), "offset in the partition; null for a line of a file"),
        _column("timestamp", TimestampType(), "instant of the record, or of the last change of its file, UTC"),
    ]
)

USER_EVENT: Final = StructType(
    [
        _column("event_id", StringType(), "key of an event"),
        _column("user_id", StringType(), "key of the user, as customer_id"),
        _column("event_type", StringType(), "view, add_to_cart, remove_from_cart or purchase"),
        _column("timestamp", TimestampType(), "instant of the event, UTC"),
        _column("properties", MapType(StringType(), StringType()), "further values of the event, as text"),
    ]
)

_EXTRA: Final = _column("extra", MapType(StringType(), StringType()), "fields that are not in the schema, as text")

EXTENDED_EVENT: Final = StructType([*USER_EVENT.fields, _EXTRA])

EVENTS: Final = StructType(
    [
        *USER_EVENT.fields,
        _column("customer_segment", StringType(), "segment of the customer at the micro-batch; null for unknown users"),
        _column("customer_country", StringType(), "home country of the customer; null for unknown users"),
        _column("event_date", DateType(), "day of the event, UTC"),
        _EXTRA,
    ]
)

IMPRESSION: Final = StructType(
    [
        _column("impression_id", StringType(), "key of an impression"),
        _column("ad_id", StringType(), "key of the ad that was shown"),
        _column("user_id", StringType(), "key of the user who saw it, as customer_id"),
        _column("timestamp", TimestampType(), "instant that it was shown, UTC"),
    ]
)

CLICK: Final = StructType(
    [
        _column("click_id", StringType(), "key of a click"),
        _column("impression_id", StringType(), "key of the impression that was clicked"),
        _column("timestamp", TimestampType(), "instant of the click, UTC"),
    ]
)

PREDICTION_REQUEST: Final = StructType(
    [
        _column("request_id", StringType(), "key of a request"),
        *(
            TRANSACTIONS[name]
            for name in (
                "transaction_id", "customer_id", "category", "quantity", "amount", "payment_method", "channel",
                "country", "created_at", "customer_segment", "customer_country",
            )
        ),
    ]
)  # fmt: skip

JUDGED_RECORD: Final = StructType(
    [*RECORD.fields, _column("problem", StringType(), "what is wrong with the value; null for a well-formed one")]
)

JUDGED_REQUEST: Final = StructType(
    [
        *PREDICTION_REQUEST.fields,
        _column("problem", StringType(), "why it cannot be scored; null where it can"),
        _column("dead_letter_id", StringType(), "key of the dead letter that it is; null where it can be scored"),
        RECORD["headers"],
        RECORD["timestamp"],
    ]
)

PREDICTION: Final = StructType(
    [
        _column("request_id", StringType(), "key of the request; null where it could not be read"),
        _column("transaction_id", StringType(), "key of the transaction; null where the request has none"),
        _column("is_flagged", BooleanType(), "whether the probability reaches the threshold of the model"),
        _column("probability", DoubleType(), "estimated probability that the transaction will be refunded"),
        _column("model_version", LongType(), "version of the model that was in production"),
        _column(
            "history_until",
            TimestampType(),
            "instant until which the tables knew what had happened to customers, at most the start of the day of the "
            "request, UTC; null if they had no day before it, or there is an error",
        ),
        _column(
            "is_stale",
            BooleanType(),
            "whether that is not the start of the day: the model knew less than when it was judged; null with an error",
        ),
        _column(
            "latency_ms",
            LongType(),
            "from the timestamp of the request to the reply, in milliseconds; null if it is ahead",
        ),
        _column("error", StringType(), "why there is no probability; null where there is one"),
        _column("dead_letter_id", StringType(), "key of the dead letter that the request is; null where it was scored"),
    ]
)

REPLY: Final = StructType([*PREDICTION.fields, RECORD["headers"]])

DEAD_LETTERS: Final = StructType(
    [
        _column(
            "dead_letter_id",
            StringType(),
            "topic-partition-offset; of a line of a file topic-SHA-256 of path and line, of equal lines numbered",
        ),
        _column("reason", StringType(), "what is wrong with the value"),
        *RECORD.fields,
        _column("query", StringType(), "query that leaves the record out; null for a record that no query can parse"),
    ]
)

DEAD_LETTER_REPLAYS: Final = StructType(
    [
        _column("dead_letter_id", StringType(), "key of the dead letter that was sent again"),
        _column("replayed_at", TimestampType(), "instant that it was sent again, UTC"),
    ]
)

PURCHASE: Final = StructType(
    [
        _column("event_id", StringType(), "key of the event"),
        _column("user_id", StringType(), "key of the user, as customer_id"),
        _column("amount", MONEY, "what was paid, in the currency of the row"),
        _column("currency", StringType(), "ISO 4217 code"),
        _column("timestamp", TimestampType(), "instant of the purchase, UTC"),
    ]
)

ACTIVITY: Final = StructType(
    [
        _column("window_start", TimestampType(), "first instant of the window, UTC"),
        _column("window_end", TimestampType(), "first instant after the window, UTC"),
        _column("event_type", StringType(), "what users did; null for the row about all event types"),
        _column("events", LongType(), "number of events"),
        _column("users", LongType(), "number of different users, estimated: exact for a few, standard error 1.6 %"),
        _column(
            "conversion_ratio",
            DoubleType(),
            "users who purchased / users who viewed; in the row about all event types, null without viewers",
        ),
        _column("users_sketch", BinaryType(), "HLL sketch of users, for numbers over several windows: hll_union_agg"),
    ]
)

SESSIONS: Final = StructType(
    [
        _column("user_id", StringType(), "key of the user, as customer_id"),
        _column("started_at", TimestampType(), "instant of the first event, UTC"),
        _column("ended_at", TimestampType(), "instant of the last event, UTC"),
        _column("events", LongType(), "number of events"),
        _column("purchases", LongType(), "number of purchases"),
    ]
)

ABANDONED_CARTS: Final = StructType(
    [
        _column("user_id", StringType(), "key of the user, as customer_id"),
        _column("started_at", TimestampType(), "instant that the first product was added, UTC"),
        _column("last_added_at", TimestampType(), "instant that the last product was added, UTC"),
        _column("abandoned_at", TimestampType(), "instant until which nothing was purchased, UTC"),
        _column("product_ids", ArrayType(StringType()), "keys of the products left in the cart, in order"),
    ]
)

BALANCES: Final = StructType(
    [
        _column("user_id", StringType(), "key of the user, as customer_id"),
        _column("currency", StringType(), "ISO 4217 code"),
        _column("purchases", LongType(), "number of purchases"),
        _column("spent", TOTAL, "sum of the amounts, in the currency of the row"),
        _column("last_purchase_at", TimestampType(), "instant of the newest purchase, UTC"),
    ]
)

ATTRIBUTIONS: Final = StructType(
    [
        _column("impression_id", StringType(), "key of the impression"),
        _column("ad_id", StringType(), "key of the ad that was shown"),
        _column("user_id", StringType(), "key of the user who saw it, as customer_id"),
        _column("shown_at", TimestampType(), "instant of the impression, UTC"),
        _column("click_id", StringType(), "key of a click on it; null for an impression without clicks"),
        _column("clicked_at", TimestampType(), "instant of the click, UTC; null without clicks"),
    ]
)

RAW_REFUNDS: Final = StructType(
    [
        _column("refund_id", StringType(), "key of a refund"),
        _column("transaction_id", StringType(), "key of the transaction that is refunded"),
        _column("customer_id", StringType(), "key of the customer who bought"),
        _column("amount", MONEY, "what is paid back, in the currency of the transaction"),
        _column("refunded_at", TimestampType(), "instant of the refund, UTC"),
    ]
)

REFUND_EVENTS: Final = StructType(
    [*RAW_REFUNDS.fields, _column("refunded_date", DateType(), "day of the raw folder that the refund came in")]
)

CUSTOMER_EVENTS: Final = StructType(
    [
        _column("customer_id", StringType(), "key of the customer"),
        _column("at", TimestampType(), "instant that it happened, UTC"),
        _column("purchases", LongType(), "1 for a purchase, else 0"),
        _column("refunds", LongType(), "1 for a refund, else 0"),
    ]
)

MODELS: Final = StructType(
    [
        _column("model", StringType(), "name of the model, which is its pipeline: ml.refunds"),
        _column("version", LongType(), "number of the version, from 1"),
        _column("trained_at", TimestampType(), "instant that it was trained, UTC"),
        _column("fingerprint", StringType(), "SHA-256 of what determines the model: tables, configuration, features"),
        _column("artifact", StringType(), "folder of the fitted pipeline, relative to the warehouse"),
        _column("algorithm", StringType(), "name of the algorithm that was chosen"),
        _column("parameters", MapType(StringType(), StringType()), "its parameters that were chosen"),
        _column("metrics", MapType(StringType(), DoubleType()), "scores of the cross-validation"),
        _column("features", MapType(StringType(), StringType()), "type of each feature, by its name"),
        _column("table_versions", MapType(StringType(), LongType()), "versions of the tables that it was trained on"),
        _column("git_commit", StringType(), "commit of the program; null where it is not known"),
        _column("run_id", StringType(), "the run that trained it"),
        _column("trace_id", StringType(), "trace of that run; null without telemetry"),
        _column("card", StringType(), "the whole model card, as JSON"),
    ]
)

MODEL_EVALUATIONS: Final = StructType(
    [
        _column("model", StringType(), "name of the model"),
        _column("version", LongType(), "version that was evaluated"),
        _column("evaluated_at", TimestampType(), "instant of the evaluation, UTC"),
        _column("run_id", StringType(), "the run that evaluated it"),
        _column("metrics", MapType(StringType(), DoubleType()), "scores on the held-out rows"),
        _column("evaluation", StringType(), "curves, intervals and slices, as JSON"),
    ]
)

MODEL_PROMOTIONS: Final = StructType(
    [
        _column("model", StringType(), "name of the model"),
        _column("promotion", LongType(), "number of the change, from 1; the last one says what is in production"),
        _column("version", LongType(), "version in production from then on"),
        _column("action", StringType(), "promoted or rolled_back"),
        _column("promoted_at", TimestampType(), "instant of the change, UTC"),
        _column("run_id", StringType(), "the run that changed it"),
    ]
)

REFUND_SCORES: Final = StructType(
    [
        _column("transaction_id", StringType(), "key of the transaction"),
        _column("customer_id", StringType(), "key of the customer who bought"),
        _column("created_at", TimestampType(), "instant of the transaction, UTC"),
        _column("probability", DoubleType(), "estimated probability that it will be refunded"),
        _column("is_flagged", BooleanType(), "whether the probability reaches the threshold of the model"),
        _column("model_version", LongType(), "version of the model"),
        _column("processed_date", DateType(), "day of the transactions"),
    ]
)

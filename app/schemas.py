"""One schema per table; the meaning and unit of a column is its comment."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
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

_JUDGED: Final = [
    _column("problems", ArrayType(StringType()), "promises that the row breaks; empty for a valid row"),
    _column("raw", StringType(), "the row as it was read; only for rows with problems"),
    _column("extra", MapType(StringType(), StringType()), "columns that no schema knows, as text"),
    _column("source_file", StringType(), "file that the row was read from"),
    _column("date", DateType(), "day of the raw folder"),
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
        *[field for field in _JUDGED if field.name != "extra"],
    ]
)

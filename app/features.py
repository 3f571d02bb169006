"""What is known of a transaction at its instant: pure transforms, declared once for training, batch and streams.

Point in time: a feature of a transaction is computed from its own columns in `KNOWN`, which are set when it is made,
and from what happened to its customer in the `WINDOW_DAYS` whole days before its day, in UTC. Nothing else enters, so
nothing later can; and a feature does not grow with the age of the tables, as a count of all that ever happened would.

Whole days, since that is what the tables have when a transaction is made: the pipelines publish a day after it has
ended. So a model is trained and judged on what it is served.
"""

import datetime
import math
from collections.abc import Callable, Sequence
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from app.schemas import CUSTOMER_EVENTS, TRANSACTIONS
from spark_app.models.inputs import Examples, Feature

KNOWN: Final = (
    "transaction_id",
    "customer_id",
    "category",
    "quantity",
    "amount",
    "payment_method",
    "channel",
    "country",
    "created_at",
    "customer_segment",
    "customer_country",
)
"""The columns of a transaction that are known at its instant; others, such as its status, change afterwards.

`transactions` keeps the newest version of each, so an amount that was corrected afterwards is known too early: in the
demo shop that of 0.15 % of the sales.
"""
EXAMPLES: Final = Examples(
    table="transactions",
    key="transaction_id",
    entity="customer_id",
    at="created_at",
    known=KNOWN,
    as_made={"status": "pending"},
)
KEYS: Final = EXAMPLES.keys
WINDOW_DAYS: Final = 2
"""How many whole days before that of a transaction count: they must be there before the first row, too.

Short, so that the demo shop, whose customers buy some twenty times a day, needs few days. A longer one knows customers
better: over eight days it brings 0.01 of ROC AUC.
"""
DAY: Final = datetime.timedelta(days=1)
DAY_MICROS: Final = 24 * 60 * 60 * 1_000_000
PRIOR_RATIO: Final = 0.05
PRIOR_PURCHASES: Final = 20
"""A customer without a history is taken for one of whose so many purchases this share was refunded."""

Group = Literal["product", "price", "payment", "place", "time", "customer"]


def _amount() -> Column:
    return F.col("amount").cast("double")


def _pieces() -> Column:
    return F.greatest(F.coalesce("quantity", F.lit(1)), F.lit(1)).cast("double")


def _hour_angle() -> Column:
    minutes = F.hour("created_at") * 60 + F.minute("created_at")
    return minutes * F.lit(2 * math.pi / (24 * 60))


def _refund_ratio() -> Column:
    prior = F.lit(PRIOR_RATIO * PRIOR_PURCHASES)
    return (F.col("refunds_before") + prior) / (F.col("purchases_before") + F.lit(PRIOR_PURCHASES))


def _is_abroad() -> Column:
    return (F.col("country") != F.col("customer_country")).cast("double")


def _category(name: str, group: Group, meaning: str) -> Feature:
    return Feature(name, "category", group, meaning, lambda: F.col(name))


def _number(name: str, group: Group, meaning: str, value: Callable[[], Column]) -> Feature:
    return Feature(name, "number", group, meaning, lambda: F.coalesce(value().cast("double"), F.lit(0.0)))


FEATURES: Final = (
    _category("category", "product", "category of the product"),
    _number("quantity", "product", "pieces bought; 1 where unknown", _pieces),
    _number("amount_log", "price", "logarithm of the price of all pieces, in the currency", lambda: F.log1p(_amount())),
    _number("piece_log", "price", "logarithm of the price of one piece", lambda: F.log1p(_amount() / _pieces())),
    _category("payment_method", "payment", "how it is paid"),
    _category("channel", "payment", "web, app or store"),
    _category("country", "place", "ISO 3166 code of where it is shipped to"),
    _number("is_abroad", "place", "1 if it is shipped to another country than the customer's", _is_abroad),
    _number("hour_sin", "time", "time of day in UTC on a circle, sine", lambda: F.sin(_hour_angle())),
    _number("hour_cos", "time", "time of day in UTC on a circle, cosine", lambda: F.cos(_hour_angle())),
    _category("customer_segment", "customer", "segment of the customer at the instant of the transaction"),
    _number(
        "customer_purchases_log",
        "customer",
        "logarithm of the customer's purchases in the days before",
        lambda: F.log1p(F.col("purchases_before")),
    ),
    _number(
        "customer_refund_ratio", "customer", "refunds known from the days before, per purchase in them", _refund_ratio
    ),
)
CATEGORIES: Final = tuple(feature.name for feature in FEATURES if feature.kind == "category")
NUMBERS: Final = tuple(feature.name for feature in FEATURES if feature.kind == "number")
SCHEMA: Final = StructType(
    [
        *(TRANSACTIONS[name] for name in KEYS),
        *(
            StructField(
                feature.name,
                StringType() if feature.kind == "category" else DoubleType(),
                metadata={"comment": feature.meaning},
            )
            for feature in FEATURES
        ),
    ]
)


def in_window(
    transactions: DataFrame, refunds: DataFrame, first: datetime.date, last: datetime.date
) -> tuple[DataFrame, DataFrame]:
    """The transactions of days and of the window before them, and the refunds since the window began.

    Whatever their status: it is that of today, and at its instant a transaction that failed later is like any other.

    Columns in: those of `TRANSACTIONS`; refunds: those of `REFUND_EVENTS`.
    Columns out: the same.
    """
    since = first - WINDOW_DAYS * DAY
    asked = transactions.where(F.col("processed_date").between(since, last))
    return asked, refunds.where(F.col("refunded_date") >= since)


def customer_events(transactions: DataFrame, refunds: DataFrame) -> DataFrame:
    """One row per purchase of a customer, and one per refund at the instant that it became known.

    Columns in: those of `TRANSACTIONS`; refunds: those of `REFUND_EVENTS`.
    Columns out: those of `CUSTOMER_EVENTS`.
    """
    one, none = F.lit(1).cast(LongType()), F.lit(0).cast(LongType())
    purchases = transactions.select("customer_id", F.col("created_at").alias("at"), one, none)
    known = refunds.select("customer_id", F.col("refunded_at").alias("at"), none, one)
    return purchases.union(known).toDF(*CUSTOMER_EVENTS.names)


def with_history(rows: DataFrame, events: DataFrame) -> DataFrame:
    """The same rows, with what happened to the customer of each in the days of the window before its day.

    One pass over events and rows together, sorted by customer and instant, where a row is at the start of its day.

    Columns in: those of `KNOWN`; events: those of `CUSTOMER_EVENTS`.
    Columns out: those of the rows; purchases_before, refunds_before.
    """
    asked = rows.select(F.struct(*rows.columns).alias("row"))
    none = F.lit(0).cast(LongType())
    asked = asked.select("row.customer_id", F.date_trunc("day", "row.created_at").alias("at"), none, none, "row")
    kind = asked.schema["row"].dataType
    happened = events.select(*CUSTOMER_EVENTS.names, F.lit(None).cast(kind).alias("row"))
    customer = Window.partitionBy("customer_id").orderBy(F.unix_micros("at"))
    before = customer.rangeBetween(-WINDOW_DAYS * DAY_MICROS, -1)
    counts = {f"{name}_before": F.coalesce(F.sum(name).over(before), none) for name in ("purchases", "refunds")}
    return happened.union(asked).withColumns(counts).where("row is not null").select("row.*", *counts)


def features(rows: DataFrame, events: DataFrame, *, keep: Sequence[str] = ()) -> DataFrame:
    """One row per transaction: what a model is told of it.

    Columns in: those of `KNOWN`; events: those of `CUSTOMER_EVENTS`.
    Columns out: those of `SCHEMA`; those that are kept.

    Args:
        rows: The transactions.
        events: What happened to their customers.
        keep: Further columns of the rows, which no model sees.
    """
    known = with_history(rows.select(*KNOWN, *keep), events)
    return known.select(*KEYS, *(feature.value().alias(feature.name) for feature in FEATURES), *keep)

"""Sales of one day: the valid transactions, one version of each with its customer, and their totals.

Reads: raw transactions of one date, customers.
Writes: bronze, transactions, daily_sales.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app import sources
from app.etl.customers import as_of
from app.schemas import CUSTOMER_THEN, DAILY_SALES, MONEY, SOLD, TOTAL, TRANSACTIONS
from spark_app import Settings, daily, expect

STATUSES: Final = ("completed", "pending", "failed", "refunded")
REQUIRED: Final = (
    "transaction_id",
    "customer_id",
    "amount",
    "currency",
    "status",
    "category",
    "created_at",
    "updated_at",
)


def expectations(settings: Settings) -> list[expect.Rule]:
    """What the rows of the source must meet; `customer_found` is the customer that a row was joined with."""

    def is_unknown() -> Column:
        return F.col("customer_id").isNotNull() & F.col("created_at").isNotNull() & F.col("customer_found").isNull()

    return [
        *(expect.not_null(name) for name in REQUIRED),
        expect.matches("transaction_id", r"t-\d+-\d+"),
        expect.at_least("amount", "0.01"),
        expect.at_least("quantity", 1),
        expect.allowed("currency", [settings.currency]),
        expect.allowed("status", STATUSES),
        expect.of_day("created_at"),
        expect.known("customer_id", is_unknown),
        expect.fresh("created_at"),
        expect.outliers("amount", sigmas=3),
    ]


@daily.source(sources.TRANSACTIONS, adds=CUSTOMER_THEN, expect=expectations)
def bronze(rows: DataFrame, customers: DataFrame) -> DataFrame:
    """One row per raw row, with its customer as of the instant of the transaction.

    Columns in: those of `RAW_TRANSACTIONS`; customers: those of `CUSTOMERS`.
    Columns out: those of the rows, customer_segment, customer_country, customer_found (null if there is none).
    """
    is_current = as_of(customers, customer=rows["customer_id"], instant=rows["created_at"])
    return rows.join(customers, is_current, "left").select(
        *[rows[name] for name in rows.columns],
        customers["segment"].alias("customer_segment"),
        customers["country"].alias("customer_country"),
        customers["customer_id"].alias("customer_found"),
    )


@daily.table(schema=TRANSACTIONS, partition_by=("processed_date", "amount_category"), key="transaction_id")
def transactions(bronze: DataFrame) -> DataFrame:
    """One row per transaction: the version that was updated last.

    Columns in: those of `bronze`; rows of rank 1.
    Columns out: those of `TRANSACTIONS`.
    """
    rows = bronze.withColumns({"amount_category": amount_category(), "processed_date": F.col("date")})
    return rows.select(*TRANSACTIONS.names)


def amount_category() -> Column:
    """The size of an amount: small < 100 <= medium < 1000 <= large."""
    amount = F.col("amount")
    return F.when(amount < 100, "small").when(amount < 1000, "medium").otherwise("large")


@daily.table(schema=DAILY_SALES, partition_by="processed_date")
def daily_sales(transactions: DataFrame) -> DataFrame:
    """One row per size of amount and status: how many were sold, for how much, to how many customers.

    Left out are transactions that are neither completed nor pending.

    Columns in: those of `TRANSACTIONS`.
    Columns out: those of `DAILY_SALES`.
    """
    groups = transactions.where(F.col("status").isin(*SOLD)).groupBy("processed_date", "amount_category", "status")
    return groups.agg(
        F.count(F.lit(1)).alias("transaction_count"),
        F.sum("amount").cast(TOTAL).alias("total_amount"),
        # `avg` of a decimal is rounded to 6 places first, and would be rounded twice.
        (F.sum("amount") / F.count(F.lit(1))).cast(MONEY).alias("avg_amount"),
        F.count_distinct("customer_id").alias("unique_customers"),
    ).select(*DAILY_SALES.names)

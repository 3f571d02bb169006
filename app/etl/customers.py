"""Customers with their history: which version of a customer was true when.

Reads: raw customers of one date, customers.
Writes: bronze_customers, customers.
"""

import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from app import sources
from app.schemas import CUSTOMERS, RAW_CUSTOMERS
from spark_app import daily, expect

SEGMENTS: Final = ("consumer", "business", "vip")


@daily.source(
    sources.CUSTOMERS,
    expect=[
        *(expect.not_null(name) for name in RAW_CUSTOMERS.names),
        expect.matches("customer_id", r"c-\d{7,}"),
        expect.allowed("segment", SEGMENTS),
    ],
)
def bronze_customers(rows: DataFrame) -> DataFrame:
    """One row per raw row.

    Columns in: those of `RAW_CUSTOMERS`.
    Columns out: those of `RAW_CUSTOMERS`.
    """
    return rows


@daily.state(schema=CUSTOMERS, key=sources.CUSTOMERS.key)
def customers(customers: DataFrame, bronze_customers: DataFrame) -> DataFrame:
    """The versions that the table does not hold yet, or holds with other values.

    Columns in: those of `CUSTOMERS`; bronze_customers: those of `RAW_CUSTOMERS`.
    Columns out: those of `CUSTOMERS`.
    """
    touched = bronze_customers.select("customer_id").distinct()
    known = customers.join(touched, "customer_id", "left_semi")
    rows = known.select(*RAW_CUSTOMERS.names).unionByName(bronze_customers.select(*RAW_CUSTOMERS.names))
    is_same = [F.col(f"version.{name}").eqNullSafe(F.col(f"known.{name}")) for name in CUSTOMERS.names]
    versions = customer_versions(rows).alias("version")
    return versions.join(known.alias("known"), is_same, "left_anti").select(*CUSTOMERS.names)


def customer_versions(rows: DataFrame) -> DataFrame:
    """One row per customer and change: from when to when it was true.

    Left out are further rows of the same customer and instant. The first version holds from the sign-up on. The result
    depends on the set of rows only, not on the order in which they came.

    Columns in: those of `RAW_CUSTOMERS`, none null.
    Columns out: those of `CUSTOMERS`; valid_to is null for the current version.
    """
    same_instant = Window.partitionBy(*sources.CUSTOMERS.key).orderBy(*sources.CUSTOMERS.order)
    history = Window.partitionBy("customer_id").orderBy("updated_at")
    single = rows.withColumn("version_rank", F.row_number().over(same_instant)).where("version_rank = 1")
    later = F.lead("updated_at").over(history)
    first = F.lag("updated_at").over(history).isNull()
    return single.select(
        *RAW_CUSTOMERS.names,
        F.when(first, F.least("signed_up_at", "updated_at")).otherwise(F.col("updated_at")).alias("valid_from"),
        later.alias("valid_to"),
        later.isNull().alias("is_current"),
    )


def as_of(versions: DataFrame, *, customer: Column, instant: Column) -> Column:
    """The condition that joins a customer's version that was true at an instant."""
    ended = F.coalesce(versions["valid_to"], F.lit(datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)))
    return (versions["customer_id"] == customer) & (versions["valid_from"] <= instant) & (instant < ended)

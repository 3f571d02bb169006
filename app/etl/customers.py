"""Customers with their history: which version of a customer was true when.

Reads: raw customers of one date, customers.
Writes: bronze_customers, customers.
"""

import datetime
from typing import ClassVar, Final

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from app import bronze, quality
from app.bronze import Feed, Seen
from app.context import Context
from app.quality import Promise
from app.schemas import CUSTOMERS, RAW_CUSTOMERS

SEGMENTS: Final = ("consumer", "business", "vip")
KEY: Final = ["customer_id", "updated_at"]
ATTRIBUTES: Final = ["segment", "country", "signed_up_at"]


def promises() -> list[Promise]:
    """What every row of the feed keeps."""
    return [
        *(quality.not_null(name) for name in RAW_CUSTOMERS.names),
        *quality.readable_columns(RAW_CUSTOMERS),
        quality.matches("customer_id", r"c-\d{7,}"),
        quality.allowed("segment", SEGMENTS),
    ]


class Config(bronze.Config):
    """What an operator tunes: see `config/etl/customers.yml`."""

    promised: ClassVar = bronze.promised(promises(), quality.DUPLICATES)


def customer_versions(rows: DataFrame) -> DataFrame:
    """One row per customer and change: from when to when it was true.

    Left out are further rows of the same customer and instant. The first version holds from the sign-up on. The result
    depends on the set of rows only, not on the order in which they came.

    Columns in: those of `RAW_CUSTOMERS`, none null.
    Columns out: those of `CUSTOMERS`; valid_to is null for the current version.
    """
    same_instant = Window.partitionBy(*KEY).orderBy(*[F.col(name).desc() for name in ATTRIBUTES])
    history = Window.partitionBy("customer_id").orderBy("updated_at")
    single = rows.withColumn("place", F.row_number().over(same_instant)).where("place = 1")
    later = F.lead("updated_at").over(history)
    first = F.lag("updated_at").over(history).isNull()
    return single.select(
        *RAW_CUSTOMERS.names,
        F.when(first, F.least("signed_up_at", "updated_at")).otherwise(F.col("updated_at")).alias("valid_from"),
        later.alias("valid_to"),
        later.isNull().alias("is_current"),
    )


def changed_versions(old: DataFrame, new: DataFrame) -> DataFrame:
    """The versions that the table does not hold yet, or holds otherwise.

    Columns in: those of `CUSTOMERS`; new: those of `RAW_CUSTOMERS`.
    Columns out: those of `CUSTOMERS`.
    """
    touched = new.select("customer_id").distinct()
    known = old.join(touched, "customer_id", "left_semi")
    versions = customer_versions(known.select(*RAW_CUSTOMERS.names).unionByName(new.select(*RAW_CUSTOMERS.names)))
    is_same = [F.col(f"version.{name}").eqNullSafe(F.col(f"known.{name}")) for name in CUSTOMERS.names]
    return versions.alias("version").join(known.alias("known"), is_same, "left_anti").select(*CUSTOMERS.names)


def run(context: Context, config: Config) -> None:
    """Brings the customers of one date into the table with their history."""
    feed = Feed.declared(
        context,
        config,
        source="customers",
        table="bronze_customers",
        schema=RAW_CUSTOMERS,
        promises=promises(),
    )
    # A day on which no customer changed may have no rows; it changes nothing.
    raw = context.read_raw(feed.source, schema=feed.schema, bronze=feed.table, may_be_empty=True)
    with context.step("transform customers", kind="transform"):
        typed = bronze.typed(raw, schema=feed.schema)
        judged = bronze.judged(typed, columns=feed.schema.names, promises=feed.promises, date=context.date)
    seen = bronze.write(context, judged, feed)
    _publish(context, feed, seen)


def _publish(context: Context, feed: Feed, seen: Seen) -> None:
    """Merges the versions of the date if not too many rows repeat others."""
    taken, kept = Observation(), Observation()
    with context.step("transform versions", kind="transform"):
        valid = bronze.valid(context, feed).select(*RAW_CUSTOMERS.names)
        versions = customer_versions(valid.observe(taken, F.count(F.lit(1)).alias("rows")))
        unique = versions.select(*RAW_CUSTOMERS.names).observe(kept, F.count(F.lit(1)).alias("rows")).localCheckpoint()
        changes = changed_versions(context.table("customers"), unique)
    published = kept.get["rows"]
    duplicates = taken.get["rows"] - published
    if feed.is_checked:
        context.report_rows(duplicate=duplicates)
        where = bronze.repeated(context, feed, key=KEY)
        figure = quality.share(quality.DUPLICATES, duplicates, seen.rows, feed.limits, where=where)
        context.judge([figure], table=feed.table)
    context.account(read=seen.rows, written=published, quarantined=seen.quarantined, duplicate=duplicates)
    context.merge(changes, "customers", condition=" AND ".join(f"old.{name} = new.{name}" for name in KEY))
    context.report_rows(written=published)


def as_of(versions: DataFrame, *, customer: Column, instant: Column) -> Column:
    """The condition that joins a customer's version that was true at an instant."""
    ended = F.coalesce(versions["valid_to"], F.lit(datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)))
    return (versions["customer_id"] == customer) & (versions["valid_from"] <= instant) & (instant < ended)

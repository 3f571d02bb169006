"""Customers with their history: which version of a customer was true when.

Reads: raw customers of one date, customers.
Writes: bronze_customers, customers.
"""

import datetime
from typing import ClassVar, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from app.schemas import BRONZE_CUSTOMERS, CUSTOMERS, RAW_CUSTOMERS
from spark_app.pipeline import ingest
from spark_app.pipeline.context import DailyContext
from spark_app.pipeline.ingest import IngestSpec
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.warehouse.tables import Table

SOURCES: Final = ("customers",)
READS: Final = ()
WRITES: Final = (
    Table("bronze_customers", BRONZE_CUSTOMERS, ("date",), source="customers"),
    Table("customers", CUSTOMERS),
)
SEGMENTS: Final = ("consumer", "business", "vip")
KEY: Final = ["customer_id", "updated_at"]
ATTRIBUTES: Final = ["segment", "country", "signed_up_at"]


def expectations() -> list[Expectation]:
    """What every row of the source must meet."""
    return [
        *(expect.not_null(name) for name in RAW_CUSTOMERS.names),
        *expect.readable_columns(RAW_CUSTOMERS),
        expect.matches("customer_id", r"c-\d{7,}"),
        expect.allowed("segment", SEGMENTS),
    ]


class Config(ingest.Config):
    """What an operator tunes: see `config/etl/customers.yml`."""

    expectation_names: ClassVar = ingest.declared_expectations(expectations(), expect.DUPLICATES)


def newest_first() -> list[Column]:
    """The order of rows about the same customer and instant, of which the first is taken."""
    return [F.col(name).desc() for name in ATTRIBUTES]


def customer_versions(rows: DataFrame) -> DataFrame:
    """One row per customer and change: from when to when it was true.

    Left out are further rows of the same customer and instant. The first version holds from the sign-up on. The result
    depends on the set of rows only, not on the order in which they came.

    Columns in: those of `RAW_CUSTOMERS`, none null.
    Columns out: those of `CUSTOMERS`; valid_to is null for the current version.
    """
    same_instant = Window.partitionBy(*KEY).orderBy(*newest_first())
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


def changed_versions(old: DataFrame, new: DataFrame) -> DataFrame:
    """The versions that the table does not hold yet, or holds with other values.

    Columns in: those of `CUSTOMERS`; new: those of `RAW_CUSTOMERS`.
    Columns out: those of `CUSTOMERS`.
    """
    touched = new.select("customer_id").distinct()
    known = old.join(touched, "customer_id", "left_semi")
    versions = customer_versions(known.select(*RAW_CUSTOMERS.names).unionByName(new.select(*RAW_CUSTOMERS.names)))
    is_same = [F.col(f"version.{name}").eqNullSafe(F.col(f"known.{name}")) for name in CUSTOMERS.names]
    return versions.alias("version").join(known.alias("known"), is_same, "left_anti").select(*CUSTOMERS.names)


def run(context: DailyContext, config: Config) -> None:
    """Merges the customers of one date into the table with their history, or raises and leaves it as it was."""
    spec = IngestSpec.declare(
        context,
        config,
        source="customers",
        table="bronze_customers",
        schema=RAW_CUSTOMERS,
        key=KEY,
        expectations=expectations(),
    )
    commit = context.replace_partition(_bronze_rows(context, spec), spec.table)
    with context.step(f"audit {spec.table}", kind="transform"):
        audit = ingest.audit(context, spec, commit)
    if spec.is_checked:
        context.enforce(ingest.results(context, spec, audit), table=spec.table)
    latest = ingest.latest(context, spec, audit).select(*RAW_CUSTOMERS.names)
    context.reconcile(
        read=commit.rows, published=audit.latest, quarantined=audit.quarantined, duplicates=audit.duplicates
    )
    is_same_key = " AND ".join(f"old.{name} = new.{name}" for name in KEY)
    merged = context.merge(lambda old: changed_versions(old, latest), "customers", condition=is_same_key)
    with context.step("count customers", kind="transform"):
        # The merge writes what changed, which may be less or more than the rows of the day.
        published = latest.join(context.table("customers", version=merged.version), KEY, "left_semi").count()
    context.report_rows(published=published)
    context.confirm("customers", merged, count=audit.latest, published=published)


def _bronze_rows(context: DailyContext, spec: IngestSpec) -> DataFrame:
    # A day on which no customer changed may have no rows; it changes nothing.
    raw = context.read_raw(spec.source, schema=spec.schema, bronze=spec.table, may_be_empty=True)
    with context.step("transform customers", kind="transform"):
        rows = ingest.with_violations(
            ingest.typed(raw, schema=spec.schema),
            columns=spec.schema.names,
            expectations=spec.expectations,
            date=context.date,
        )
        ranked = ingest.with_version_rank(rows, key=spec.key, newest_first=newest_first())
        return ranked.select(*BRONZE_CUSTOMERS.names)


def as_of(versions: DataFrame, *, customer: Column, instant: Column) -> Column:
    """The condition that joins a customer's version that was true at an instant."""
    ended = F.coalesce(versions["valid_to"], F.lit(datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)))
    return (versions["customer_id"] == customer) & (versions["valid_from"] <= instant) & (instant < ended)

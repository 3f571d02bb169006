"""Sales of one day: the valid transactions, one version of each with its customer, and their totals.

Reads: raw transactions of one date, customers.
Writes: bronze, transactions, daily_sales.
"""

import datetime
from typing import ClassVar, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from app.etl.customers import as_of
from app.schemas import BRONZE, DAILY_SALES, MONEY, RAW_TRANSACTIONS, SOLD, TOTAL, TRANSACTIONS
from spark_app.pipeline import ingest
from spark_app.pipeline.context import DailyContext
from spark_app.pipeline.ingest import Audit, IngestSpec
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.quality.results import DAY_SECONDS, FRESHNESS, ExpectationResult
from spark_app.warehouse.tables import Table

SOURCES: Final = ("transactions",)
READS: Final = ("customers",)
WRITES: Final = (
    Table("bronze", BRONZE, ("date",), source="transactions"),
    Table("transactions", TRANSACTIONS, ("processed_date", "amount_category")),
    Table("daily_sales", DAILY_SALES, ("processed_date",)),
)
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
SIGMAS: Final = 3


def expectations(date: datetime.date, *, currency: str) -> list[Expectation]:
    """What every row of the source must meet; `customer_found` is the customer that the row was joined with."""

    def is_unknown() -> Column:
        return F.col("customer_id").isNotNull() & F.col("created_at").isNotNull() & F.col("customer_found").isNull()

    return [
        *(expect.not_null(name) for name in REQUIRED),
        *expect.readable_columns(RAW_TRANSACTIONS),
        expect.matches("transaction_id", r"t-\d+-\d+"),
        expect.at_least("amount", "0.01"),
        expect.at_least("quantity", 1),
        expect.allowed("currency", [currency]),
        expect.allowed("status", STATUSES),
        expect.on_date("created_at", date),
        expect.known("customer_id", is_unknown),
    ]


class Config(ingest.Config):
    """What an operator tunes: see `config/etl/daily_sales.yml`."""

    expectation_names: ClassVar = ingest.declared_expectations(
        expectations(datetime.date.min, currency=""),  # whose names are the same on any day, in any currency
        expect.DUPLICATES,
        expect.OUTLIERS,
        FRESHNESS,
    )


def with_customers(rows: DataFrame, versions: DataFrame) -> DataFrame:
    """Typed transactions with their customer as of the instant of the transaction.

    Columns in: those of `RAW_TRANSACTIONS`; versions: those of `CUSTOMERS`.
    Columns out: those of the rows, customer_segment, customer_country, customer_found (null if there is none).
    """
    is_current = as_of(versions, customer=rows["customer_id"], instant=rows["created_at"])
    return rows.join(versions, is_current, "left").select(
        *[rows[name] for name in rows.columns],
        versions["segment"].alias("customer_segment"),
        versions["country"].alias("customer_country"),
        versions["customer_id"].alias("customer_found"),
    )


def newest_first() -> list[Column]:
    """The order of the versions of a transaction, of which the first is published.

    Versions of the same instant are ordered by their content, so that the same rows give the same result in whatever
    order they come.
    """
    return [F.col("updated_at").desc(), F.xxhash64(*RAW_TRANSACTIONS.names).desc()]


def transactions(latest: DataFrame, *, date: datetime.date) -> DataFrame:
    """One row per transaction: the version that was updated last.

    Columns in: those of `BRONZE`; rows of rank 1.
    Columns out: those of `TRANSACTIONS`.
    """
    return latest.withColumns({"amount_category": amount_category(), "processed_date": F.lit(date)}).select(
        *TRANSACTIONS.names
    )


def amount_category() -> Column:
    """The size of an amount: small < 100 <= medium < 1000 <= large."""
    amount = F.col("amount")
    return F.when(amount < 100, "small").when(amount < 1000, "medium").otherwise("large")


def daily_sales(published: DataFrame) -> DataFrame:
    """One row per size of amount and status: how many were sold, for how much, to how many customers.

    Left out are transactions that are neither completed nor pending.

    Columns in: those of `TRANSACTIONS`.
    Columns out: those of `DAILY_SALES`.
    """
    groups = published.where(F.col("status").isin(*SOLD)).groupBy("processed_date", "amount_category", "status")
    return groups.agg(
        F.count(F.lit(1)).alias("transaction_count"),
        F.sum("amount").cast(TOTAL).alias("total_amount"),
        # `avg` of a decimal is rounded to 6 places first, and would be rounded twice.
        (F.sum("amount") / F.count(F.lit(1))).cast(MONEY).alias("avg_amount"),
        F.count_distinct("customer_id").alias("unique_customers"),
    ).select(*DAILY_SALES.names)


def run(context: DailyContext, config: Config) -> None:
    """Publishes the sales of one date, or raises and leaves what was published as it was."""
    spec = IngestSpec.declare(
        context,
        config,
        source="transactions",
        table="bronze",
        schema=RAW_TRANSACTIONS,
        key=["transaction_id"],
        expectations=expectations(context.date, currency=context.settings.currency),
    )
    commit = context.replace_partition(_bronze_rows(context, spec), spec.table)
    with context.step(f"audit {spec.table}", kind="transform"):
        audit = ingest.audit(context, spec, commit, measures=measures())
        latest = transactions(ingest.latest(context, spec, audit), date=context.date)
        published, outliers = latest.agg(F.count(F.lit(1)), F.count_if(_is_outlier(audit))).collect()[0]
    if spec.is_checked:
        context.enforce(_results(context, spec, audit, published, outliers), table=spec.table)
    context.reconcile(read=commit.rows, published=published, quarantined=audit.quarantined, duplicates=audit.duplicates)
    written = context.replace_partition(latest, "transactions", count=published)
    sales = daily_sales(context.partition("transactions", version=written.version))
    context.replace_partition(sales, "daily_sales", kind="publish")
    context.report_rows(published=written.rows)


def _bronze_rows(context: DailyContext, spec: IngestSpec) -> DataFrame:
    raw = context.read_raw(spec.source, schema=spec.schema, bronze=spec.table)
    with context.step("transform transactions", kind="transform"):
        rows = with_customers(ingest.typed(raw, schema=spec.schema), context.table("customers"))
        columns = [*spec.schema.names, "customer_segment", "customer_country"]
        judged = ingest.with_violations(rows, columns=columns, expectations=spec.expectations, date=context.date)
        ranked = ingest.with_version_rank(judged, key=spec.key, newest_first=newest_first())
        return ranked.select(*BRONZE.names)


def measures() -> list[Column]:
    """Aggregates over the valid rows: mean and standard deviation of the amounts, and the newest instant in seconds."""
    amount = F.col("amount").cast("double")
    newest = F.max("created_at").cast("double")
    return [F.avg(amount).alias("mean"), F.stddev_samp(amount).alias("sigma"), newest.alias("newest")]


def _is_outlier(audit: Audit) -> Column:
    """Whether an amount is further than three standard deviations from the mean of the day's valid amounts."""
    mean, sigma = audit.measures.get("mean"), audit.measures.get("sigma")
    return F.abs(F.col("amount").cast("double") - F.lit(mean)) > SIGMAS * F.lit(sigma)


def _results(
    context: DailyContext, spec: IngestSpec, audit: Audit, published: int, outliers: int
) -> list[ExpectationResult]:
    context.facts |= {name: audit.measures[name] for name in ("mean", "sigma") if audit.measures.get(name) is not None}
    bound = SIGMAS * context.facts.get("sigma", 0)
    where = f"abs(double(amount) - {context.facts.get('mean', 0.0)!r}D) > {bound!r}D and version_rank = 1"
    return [
        *ingest.results(context, spec, audit),
        _freshness(context, spec, audit),
        expect.result(expect.OUTLIERS, outliers, published, spec.limits, where=where),
    ]


def _freshness(context: DailyContext, spec: IngestSpec, audit: Audit) -> ExpectationResult:
    """Seconds from the newest valid row to the end of the day; the whole day if no row is valid."""
    start = datetime.datetime.combine(context.date, datetime.time(), datetime.UTC).timestamp()
    newest, where = audit.measures.get("newest"), "size(violations) > 0"
    if newest is not None:
        where = f"size(violations) = 0 and unix_micros(created_at) = {round(newest * 1_000_000)}"
    age = DAY_SECONDS - (0 if newest is None else newest - start)
    context.run.record_freshness("transactions", seconds=age, as_of=start + DAY_SECONDS)
    return ExpectationResult(FRESHNESS, age, spec.limits[FRESHNESS], where=where)

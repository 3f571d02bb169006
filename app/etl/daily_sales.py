"""Sales of one day: every raw transaction judged, the valid ones once per key with their customer, and the totals.

Reads: raw transactions of one date, customers.
Writes: bronze, transactions, daily_sales.
"""

import datetime
from typing import ClassVar, Final

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from app import bronze, quality
from app.bronze import Feed, Seen
from app.commits import Written
from app.context import Context
from app.etl.customers import as_of
from app.figures import DAY_SECONDS, FRESHNESS, Figure
from app.quality import Promise
from app.schemas import BRONZE, DAILY_SALES, MONEY, RAW_TRANSACTIONS, TOTAL, TRANSACTIONS

STATUSES: Final = ("completed", "pending", "failed", "refunded")
SOLD: Final = ("completed", "pending")
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


def promises(date: datetime.date, *, currency: str) -> list[Promise]:
    """What every row of the feed keeps; the customer is looked up beside the row, as `customer_found`."""

    def is_unknown() -> Column:
        return F.col("customer_id").isNotNull() & F.col("created_at").isNotNull() & F.col("customer_found").isNull()

    return [
        *(quality.not_null(name) for name in REQUIRED),
        *quality.readable_columns(RAW_TRANSACTIONS),
        quality.matches("transaction_id", r"t-\d+-\d+"),
        quality.at_least("amount", "0.01"),
        quality.allowed("currency", [currency]),
        quality.allowed("status", STATUSES),
        quality.on_date("created_at", date),
        quality.known("customer_id", is_unknown),
    ]


class Config(bronze.Config):
    """What an operator tunes: see `config/etl/daily_sales.yml`."""

    promised: ClassVar = bronze.promised(
        promises(datetime.date.min, currency=""),  # whose names are the same on any day, in any currency
        quality.DUPLICATES,
        quality.OUTLIERS,
        FRESHNESS,
    )


def with_customers(rows: DataFrame, versions: DataFrame) -> DataFrame:
    """Typed transactions with their customer as of the instant of the transaction.

    Columns in: those of `RAW_TRANSACTIONS`; versions: those of `CUSTOMERS`.
    Columns out: those of the rows, customer_segment, customer_country, customer_found (null if there is none).
    """
    found = as_of(versions, customer=rows["customer_id"], instant=rows["created_at"])
    return rows.join(versions, found, "left").select(
        *[rows[name] for name in rows.columns],
        versions["segment"].alias("customer_segment"),
        versions["country"].alias("customer_country"),
        versions["customer_id"].alias("customer_found"),
    )


def transactions(valid: DataFrame, *, date: datetime.date) -> DataFrame:
    """One row per transaction: the version that was updated last.

    Left out are older versions and exact duplicates. Versions of the same instant are ordered by their content, so that
    the same rows give the same result in whatever order they come.

    Columns in: those of `BRONZE`; rows without problems.
    Columns out: those of `TRANSACTIONS`.
    """
    content = F.xxhash64(*RAW_TRANSACTIONS.names)
    latest = Window.partitionBy("transaction_id").orderBy(F.col("updated_at").desc(), content.desc())
    single = valid.withColumn("place", F.row_number().over(latest)).where("place = 1")
    return single.withColumns({"amount_category": amount_category(), "processed_date": F.lit(date)}).select(
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


def run(context: Context, config: Config) -> None:
    """Publishes the sales of one date, or leaves what was published and raises."""
    feed = Feed.declared(
        context,
        config,
        source="transactions",
        table="bronze",
        schema=RAW_TRANSACTIONS,
        promises=promises(context.date, currency=context.settings.currency),
    )
    # From before anything is read: a run that was killed may have left what this one cannot get to.
    with context.savepoint("transactions", "daily_sales"):
        _publish(context, feed, _write_bronze(context, feed))


def _write_bronze(context: Context, feed: Feed) -> Seen:
    raw = context.read_raw(feed.source, schema=feed.schema, bronze=feed.table)
    with context.step("transform transactions", kind="transform"):
        found = with_customers(bronze.typed(raw, schema=feed.schema), context.table("customers"))
        columns = [*feed.schema.names, "customer_segment", "customer_country"]
        rows = bronze.judged(found, columns=columns, promises=feed.promises, date=context.date).select(*BRONZE.names)
    amount = F.when(~quality.is_invalid(), F.col("amount").cast("double"))
    newest = F.max(F.when(~quality.is_invalid(), F.col("created_at"))).cast("double")
    spread = [F.avg(amount).alias("mean"), F.stddev_samp(amount).alias("sigma")]
    seen = bronze.write(context, rows, feed, observe=[*spread, newest.alias("newest")])
    if feed.is_checked:
        context.judge([_freshness(context, feed, seen)], table=feed.table)
    return seen


def _freshness(context: Context, feed: Feed, seen: Seen) -> Figure:
    """How long the day ends without a valid row: all of it where there is none."""
    start = datetime.datetime.combine(context.date, datetime.time(), datetime.UTC).timestamp()
    newest, where = seen.observed["newest"], "size(problems) > 0"
    if newest is not None:
        where = f"size(problems) = 0 and unix_micros(created_at) = {round(newest * 1_000_000)}"
    age = DAY_SECONDS - (0 if newest is None else newest - start)
    context.run.record_freshness("transactions", seconds=age)
    return Figure(FRESHNESS, age, feed.limits[FRESHNESS], where=where)


def _publish(context: Context, feed: Feed, seen: Seen) -> None:
    counted = Observation()
    valid = bronze.valid(context, feed).observe(counted, F.count(F.lit(1)).alias("valid"))
    outliers = [F.count_if(_is_outlier(seen)).alias("outliers")] if feed.is_checked else []
    rows = transactions(valid, date=context.date)
    written = context.overwrite(rows, "transactions", observe=outliers, also=counted)
    duplicates = written.observed["valid"] - written.commit.rows
    if feed.is_checked:
        _judge_published(context, feed, seen, written)
    context.account(read=seen.rows, written=written.commit.rows, quarantined=seen.quarantined, duplicate=duplicates)
    context.overwrite(daily_sales(context.of_day("transactions")), "daily_sales", kind="publish")
    context.report_rows(written=written.commit.rows)


def _judge_published(context: Context, feed: Feed, seen: Seen, written: Written) -> None:
    context.facts |= {name: seen.observed[name] for name in ("mean", "sigma") if seen.observed[name] is not None}
    bound = SIGMAS * context.facts.get("sigma", 0)
    where = f"abs(double(amount) - {context.facts.get('mean', 0.0)!r}D) > {bound!r}D and size(problems) = 0"
    published, outliers = written.commit.rows, written.observed["outliers"]
    duplicates, repeated = written.observed["valid"] - published, bronze.repeated(context, feed, key=["transaction_id"])
    figures = [
        quality.share(quality.DUPLICATES, duplicates, seen.rows, feed.limits, where=repeated),
        quality.share(quality.OUTLIERS, outliers, published, feed.limits, where=where),
    ]
    context.report_rows(duplicate=duplicates)
    context.judge(figures, table=feed.table)


def _is_outlier(seen: Seen) -> Column:
    """Whether an amount is further than three standard deviations from the mean of the day's valid amounts."""
    mean, sigma = seen.observed["mean"], seen.observed["sigma"]
    return F.abs(F.col("amount").cast("double") - F.lit(mean)) > SIGMAS * F.lit(sigma)

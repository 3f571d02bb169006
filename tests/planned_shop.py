"""A small project whose tables are made in every way that `spark-app plan` has to see through."""

from typing import Final

FILES: Final = {
    "pyproject.toml": '[tool.spark-app]\npackage = "planned"\n',
    "config/app.yml": "currency: EUR\n",
    "config/etl/orders.yml": "default_limit: 0.02\nlimits:\n  net.range: 0.1\n",
    "config/streaming/views.yml": "window: 5 minutes\n",
    "config/spark/spark-defaults.conf": "spark.sql.session.timeZone UTC\nspark.sql.shuffle.partitions 4\n",
    "planned/__init__.py": "",
    "planned/etl/__init__.py": "",
    "planned/streaming/__init__.py": "",
    "planned/sources.py": """
from spark_app import Source, files

ORDERS = Source(
    "orders",
    files("landing/{date}/*.csv", format="csv", sep=";"),
    schema="order_id string, country string, amount decimal(12, 2), changed_at timestamp COMMENT 'when'",
    key="order_id",
    newest="changed_at",
)
""",
    "planned/topics.py": """
from spark_app import Topic

PAGE_VIEWS = Topic("page_views", schema="view_id string, page string, timestamp timestamp", key="view_id")
""",
    "planned/rates.py": """
VAT = 0.19
RATES = {"DE": VAT, "FR": 0.2}
RATES["IT"] = 0.22
""",
    "planned/marks.py": """
import functools


def logged(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        return function(*arguments, **named)

    return wrapper
""",
    "planned/prices.py": '''
"""Prices."""
from functools import partial

from pyspark.sql import functions as F

from planned import rates
from planned.marks import logged


class Rounding:
    DIGITS = 2

    def apply(self, value):
        return F.round(value, self.DIGITS)


ROUNDING = Rounding()


@logged
def net(amount, country):
    """Without tax."""
    rate = F.lit(1.0)
    for name, value in rates.RATES.items():
        rate = F.when(country == name, 1.0 + value).otherwise(rate)
    return ROUNDING.apply(amount / rate)


def gross(amount, *factors, digits=2):
    for factor in factors:
        amount = amount * factor
    return F.round(amount, digits)


in_cents = partial(gross, digits=0)
WAYS = {"cents": in_cents, "plain": lambda amount, scale=1: amount * scale}


def unused(amount):
    return amount + 1
''',
    "planned/texts.py": """
import os

import numpy
from pyspark.sql import functions as F

SUFFIX = os.environ.get("PLANNED_SUFFIX", "!")
HIDDEN = "XX"


@F.udf("string")
def clean(name):
    return name.strip() + SUFFIX


def tidy(name):
    return f"{name.lower()}{numpy.int64(1)}"


def prepare(spark):
    spark.udf.register("tidy", tidy)
""",
    "planned/etl/orders.py": '''
from pyspark.sql import functions as F

from planned.prices import *
from planned.sources import ORDERS
from spark_app import daily, expect, schema

TOTALS = schema("day date, country string, orders bigint, total decimal(22, 2)")


def rules(settings):
    return [
        expect.not_null("order_id"),
        expect.at_least("amount", "0.01"),
        expect.allowed("country", ["DE", "FR", "IT", settings.currency]),
        expect.outliers("amount", sigmas=3),
    ]


@daily.source(ORDERS, adds="size string", expect=rules)
def raw_orders(rows):
    return rows.withColumn("size", F.when(F.col("amount") < 100, "small").otherwise("large"))


@daily.table(
    schema="day date, order_id string, country string, net decimal(12, 2), cents decimal(12, 0)",
    partition_by="day",
    key="order_id",
    expect=[expect.at_least("net", "0")],
)
def orders(raw_orders):
    """One row per order."""
    priced = raw_orders.withColumn("net", net(F.col("amount"), F.col("country")))
    return priced.select(
        F.col("date").alias("day"),
        "order_id",
        "country",
        F.col("net"),
        WAYS["cents"](F.col("amount"), 100).alias("cents"),
    )


@daily.table(schema=TOTALS, partition_by="day")
def totals(orders):
    groups = orders.groupBy("day", "country")
    return groups.agg(F.count("*").alias("orders"), F.sum("net").alias("total")).select(*TOTALS.names)
''',
    "planned/etl/reports.py": """
from pyspark.sql import functions as F

import planned.texts as texts
from spark_app import daily


@daily.table(schema="day date, order_id string, name string", partition_by="day")
def names(orders):
    shown = orders.where(f"country <> '{texts.HIDDEN}'")
    return shown.select("day", "order_id", texts.clean("country").alias("name"))


@daily.table(
    schema="day date, order_id string, country string, net decimal(12, 2), cents decimal(12, 0)", partition_by="day"
)
def copies(orders):
    return orders.select("*").where("net > 0")


@daily.state(schema="country string, orders bigint", key="country")
def countries(countries, orders):
    new = orders.groupBy("country").agg(F.count("*").alias("orders"))
    return new.unionByName(countries).groupBy("country").agg(F.sum("orders").alias("orders"))


@daily.table(schema="day date, country string, orders bigint", partition_by="day")
def best(totals):
    return totals.where("orders > 1").select("day", "country", "orders")
""",
    "planned/etl/ledger.py": """
from planned.books import entry
from spark_app import schema
from spark_app.warehouse.tables import Table

WRITES = [Table("ledger", schema("day date, amount bigint"), ("day",))]
READS = ["totals"]


def run(context, config):
    context.replace_all(entry(context.table("totals").where("orders > 0")), "ledger")
""",
    "planned/books.py": """
LEAST = 5


def entry(rows):
    return rows.where(f"orders > {LEAST}").selectExpr("day", "orders AS amount")
""",
    "planned/streaming/views.py": """
from pyspark.sql import functions as F

from spark_app import stream


@stream.table(schema="started_at timestamp, page string, views bigint", watermark="30 minutes")
def views(page_views, *, window: stream.Interval = "5 minutes"):
    counted = page_views.groupBy(F.window("timestamp", window), "page").agg(F.count("*").alias("views"))
    return counted.select(F.col("window.start").alias("started_at"), "page", "views")
""",
}

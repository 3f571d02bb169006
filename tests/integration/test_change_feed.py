"""States of a change feed with deletes: whatever order days run in, the newest change of each key counts."""

import datetime
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app import Source, daily
from spark_app.engine.code_location import DeclarationError
from spark_app.warehouse.tables import Warehouse
from tests.integration.any_order import Project

FIRST: Final = datetime.date(2024, 1, 1)
DAYS: Final = [FIRST + datetime.timedelta(days=number) for number in range(4)]
Feed = dict[datetime.date, list[dict[str, Any]]]
FEED: Final = Source(
    "feed",
    schema="customer_id string, op string, name string, lsn bigint",
    key="customer_id",
    newest="lsn",
    may_be_empty=True,
)


@daily.source(FEED)
def bronze_feed(rows: DataFrame) -> DataFrame:
    """What has changed of customers."""
    return rows


@daily.state(schema="customer_id string, name string, lsn bigint", key="customer_id", newest="lsn", deleted="op = 'D'")
def customers(customers: DataFrame, bronze_feed: DataFrame) -> DataFrame:
    """The customers that are there, by the number of their newest change."""
    return bronze_feed


@daily.state(schema="customer_id string, name string", key="customer_id", deleted="op = 'D'")
def contacts(contacts: DataFrame, bronze_feed: DataFrame) -> DataFrame:
    """The customers that are there, by the newest day that says something of them."""
    return bronze_feed


@daily.table(schema="day date, number bigint", partition_by="day")
def numbers(bronze_feed: DataFrame, customers: DataFrame) -> DataFrame:
    """How many customers there were at the end of a day."""
    days = bronze_feed.select(F.max("date").alias("day"))
    return days.where("day IS NOT NULL").crossJoin(customers.agg(F.count(F.lit(1)).alias("number")))


def row(number: int, op: str, lsn: int) -> dict[str, Any]:
    """A change of a customer."""
    return {"customer_id": f"c{number}", "op": op, "name": None if op == "D" else f"name {lsn}", "lsn": lsn}


def newest(changes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The change of each customer with the largest number."""
    return {each["customer_id"]: each for each in sorted(changes, key=lambda each: each["lsn"])}


def expected(feed: Feed) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """What the tables have to hold, in plain Python."""
    seen, by_day, numbers = list[dict[str, Any]](), dict[str, Mapping[str, Any]](), set[tuple[Any, ...]]()
    for day in sorted(feed):
        seen += feed[day]
        by_day |= newest(feed[day])
        known = [each for each in newest(seen).values() if each["op"] != "D"]
        numbers |= {(day, len(known))} if feed[day] else set()
    contacts = {(each["customer_id"], each["name"]) for each in by_day.values() if each["op"] != "D"}
    return {(each["customer_id"], each["name"], each["lsn"]) for each in known}, contacts, numbers


class Shop:
    """A project with the feed, and what was delivered of it."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        """Nothing is delivered yet."""
        self.project = Project(spark, home, declared={"etl.customers": [bronze_feed, customers, contacts, numbers]})
        self.feed: Feed = {}

    def deliver(self, day: datetime.date, changes: list[dict[str, Any]]) -> None:
        """Replaces the file of a day, and runs the day."""
        self.feed[day] = changes
        self.project.deliver("feed", day, "a", changes)
        self.project.run([day])

    def content(self) -> tuple[set[tuple[Any, ...]], ...]:
        """The rows of the tables, after what has to be written again was."""
        self.project.run_stale()
        warehouse = Warehouse(self.project.spark, self.project.settings.warehouse_path, self.project.tables)
        return tuple(
            {tuple(each) for each in warehouse.table(name).collect()} for name in ("customers", "contacts", "numbers")
        )


def test_deletes_and_late_changes_in_any_order(spark: SparkSession, tmp_path: Path) -> None:
    """A late change that is older than a delete brings nobody back; one that is corrected does."""
    shop = Shop(spark, tmp_path)
    shop.deliver(DAYS[0], [row(1, "I", 1), row(2, "I", 2), row(3, "I", 3), row(3, "U", 4)])
    shop.deliver(DAYS[1], [row(1, "D", 10), row(2, "U", 11), row(4, "D", 12)])
    assert shop.content() == expected(shop.feed)
    assert ("c1",) not in {each[:1] for each in expected(shop.feed)[0]}
    shop.deliver(DAYS[2], [row(1, "U", 9), row(2, "U", 8), row(4, "I", 5)])  # all older than what is known
    assert shop.content() == expected(shop.feed)
    shop.deliver(DAYS[1], [row(2, "D", 11)])  # corrected: nobody but 2 was deleted
    assert shop.content() == expected(shop.feed)
    assert {each[0] for each in expected(shop.feed)[0]} == {"c1", "c3", "c4"}
    shop.project.run([DAYS[2]])  # again, as it was
    assert shop.content() == expected(shop.feed)


@pytest.mark.before_release
@pytest.mark.parametrize("seed", range(8))
def test_random_days_are_what_python_says(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Days come in any order, corrected and again."""
    shop, chosen = Shop(spark, tmp_path), random.Random(seed)
    for day in [*chosen.sample(DAYS, len(DAYS)), *chosen.choices(DAYS, k=3)]:
        numbers = chosen.sample(range(1, 1000), 5)
        shop.deliver(day, [row(chosen.randrange(4), chosen.choice("IUD"), number * 10 + day.day) for number in numbers])
    assert shop.content() == expected(shop.feed)


def test_what_a_state_says_of_its_changes_is_checked() -> None:
    """The columns of the schema are named."""
    with pytest.raises(DeclarationError, match=r"has no column lns: do you mean lsn\?"):
        daily.state(schema="id string, lsn bigint", key="id", newest="lns")

"""States of a change feed with deletes: whatever order days run in, the newest change of each key counts."""

import datetime
import importlib.util
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from app import sources
from spark_app import Source, daily
from spark_app.declarations.declaration import Declared
from spark_app.engine.code_location import DeclarationError
from spark_app.warehouse.tables import Warehouse
from tests.integration.any_order import Project
from tests.readme import ROOT

FIRST: Final = datetime.date(2024, 1, 1)
DAYS: Final = [FIRST + datetime.timedelta(days=number) for number in range(4)]
Feed = dict[datetime.date, list[dict[str, Any]]]
CHANGES: Final = Source(
    "feed",
    schema="customer_id string, op string, name string, changed_at timestamp",
    key="customer_id",
    newest="changed_at",
    may_be_empty=True,
)


@daily.source(CHANGES)
def bronze_feed(rows: DataFrame) -> DataFrame:
    """What has changed of customers."""
    return rows


@daily.state(
    schema="customer_id string, name string, changed_at timestamp",
    key="customer_id",
    newest="changed_at",
    deleted="op = 'D'",
)
def customers(customers: DataFrame, bronze_feed: DataFrame) -> DataFrame:
    """The customers that are there, by their newest change."""
    return bronze_feed


@daily.state(schema="customer_id string, name string", key="customer_id", deleted="op = 'D'")
def contacts(contacts: DataFrame, bronze_feed: DataFrame) -> DataFrame:
    """The customers that are there, by the newest day that says something of them."""
    return bronze_feed


@daily.state(
    schema="customer_id string, name string, changed_at timestamp",
    key="customer_id",
    newest="changed_at",
    deleted="op = 'D'",
    kind="scd2",
)
def versions(versions: DataFrame, bronze_feed: DataFrame) -> DataFrame:
    """Each version of a customer, from when to when it was true."""
    return bronze_feed


@daily.table(schema="day date, number bigint", partition_by="day")
def numbers(bronze_feed: DataFrame, customers: DataFrame) -> DataFrame:
    """How many customers there were at the end of a day."""
    days = bronze_feed.select(F.max("date").alias("day"))
    return days.where("day IS NOT NULL").crossJoin(customers.agg(F.count(F.lit(1)).alias("number")))


def row(number: int, op: str, second: int) -> dict[str, Any]:
    """A change of a customer."""
    name = None if op == "D" else f"name {second}"
    return {"customer_id": f"c{number}", "op": op, "name": name, "changed_at": f"{at(second):%Y-%m-%dT%H:%M:%SZ}"}


def newest(changes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The newest change of each customer."""
    return {each["customer_id"]: each for each in sorted(changes, key=changed_at)}


def versions_of(feed: Feed) -> set[tuple[Any, ...]]:
    """The versions of all customers, in plain Python."""
    found = set[tuple[Any, ...]]()
    changes = [each for day in sorted(feed) for each in newest(feed[day]).values()]
    for customer in {each["customer_id"] for each in changes}:
        own = sorted((each for each in changes if each["customer_id"] == customer), key=changed_at)
        for each, following in zip(own, [*own[1:], None], strict=True):
            if each["op"] != "D":
                since, until = changed_at(each), changed_at(following) if following else None
                found.add((customer, each["name"], since, since, until, until is None))
    return found


def at(second: int) -> datetime.datetime:
    """An instant of a change."""
    return datetime.datetime.fromtimestamp(second, datetime.UTC).replace(tzinfo=None)


def changed_at(change: Mapping[str, Any]) -> datetime.datetime:
    """When a change was made."""
    return datetime.datetime.fromisoformat(change["changed_at"]).replace(tzinfo=None)


def expected(feed: Feed) -> dict[str, set[tuple[Any, ...]]]:
    """What the tables have to hold, in plain Python."""
    seen, by_day, numbers = list[dict[str, Any]](), dict[str, Mapping[str, Any]](), set[tuple[Any, ...]]()
    for day in sorted(feed):
        seen += feed[day]
        by_day |= newest(feed[day])
        known = [each for each in newest(seen).values() if each["op"] != "D"]
        numbers |= {(day, len(known))} if feed[day] else set()
    contacts = {(each["customer_id"], each["name"]) for each in by_day.values() if each["op"] != "D"}
    customers, versions = {(each["customer_id"], each["name"], changed_at(each)) for each in known}, versions_of(feed)
    of_recipe = {"customers_now": customers, "customer_versions": versions}
    return of_recipe | {"customers": customers, "contacts": contacts, "numbers": numbers, "versions": versions}


class Shop:
    """A project with the feed, and what was delivered of it."""

    def __init__(self, spark: SparkSession, home: Path, *declared: Declared) -> None:
        """Nothing is delivered yet."""
        self.project = Project(spark, home, declared={"etl.customers": declared})
        self.feed: Feed = {}
        self.names = [each.name for each in declared if each.source is None]

    def deliver(self, day: datetime.date, changes: list[dict[str, Any]]) -> None:
        """Replaces the file of a day, and runs the day."""
        self.feed[day] = changes
        self.project.deliver("feed", day, "a", changes)
        self.project.run([day])

    def wrong(self) -> dict[str, object]:
        """The tables that do not hold what they have to, with what they hold."""
        warehouse = Warehouse(self.project.spark, self.project.settings.warehouse_path, self.project.tables)
        found = {name: {tuple(each) for each in warehouse.table(name).collect()} for name in self.names}
        return {name: rows for name, rows in found.items() if rows != expected(self.feed)[name]}


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Declared]:
    """The declarations of the recipe, as it writes them."""
    monkeypatch.setattr(sources, "CUSTOMER_CHANGES", CHANGES, raising=False)
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    [code] = re.findall(
        r"```python\n(.*?)^```",
        page.split("## A state of a change feed")[1].split("\n## ")[0],
        re.DOTALL | re.MULTILINE,
    )
    file = tmp_path / "customer_changes.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [each for each in vars(module).values() if isinstance(each, Declared)]


def test_deletes_and_late_changes_in_any_order(spark: SparkSession, tmp_path: Path, recipe: list[Declared]) -> None:
    """A late change that is older than a delete brings nobody back; a delete that is corrected away does."""
    shop = Shop(spark, tmp_path / "shop", *recipe)
    shop.deliver(DAYS[0], [row(1, "I", 1), row(2, "I", 2), row(3, "I", 3), row(3, "U", 4)])
    shop.deliver(DAYS[1], [row(1, "D", 10), row(2, "U", 11), row(4, "D", 12)])
    shop.deliver(DAYS[2], [row(1, "U", 9), row(2, "U", 8), row(4, "I", 5)])  # all older than what is known
    assert shop.wrong() == {}
    assert {each[0] for each in expected(shop.feed)["customers_now"]} == {"c2", "c3"}
    shop.deliver(DAYS[1], [row(2, "D", 11)])  # corrected: nobody but 2 was deleted
    assert shop.wrong() == {}
    assert {each[0] for each in expected(shop.feed)["customers_now"]} == {"c1", "c3", "c4"}


@pytest.mark.before_release
@pytest.mark.parametrize("seed", range(8))
def test_random_days_are_what_python_says(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Days come in any order, corrected and again."""
    shop, chosen = Shop(spark, tmp_path, bronze_feed, customers, contacts, versions, numbers), random.Random(seed)
    for day in [*chosen.sample(DAYS, len(DAYS)), *chosen.choices(DAYS, k=3)]:
        seconds = chosen.sample(range(1, 1000), 5)
        shop.deliver(day, [row(chosen.randrange(4), chosen.choice("IUD"), second * 10 + day.day) for second in seconds])
    shop.project.run_stale()
    assert shop.wrong() == {}


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"newest": "lns"}, r"has no column lns: do you mean lsn\?"),
        ({"kind": "scd1"}, r"a state of kind 'scd1' is not known: do you mean scd2\?"),
        ({"kind": "scd2"}, 'kind="scd2" needs newest: the column with the instant or day from which a row is true'),
        ({"kind": "scd2", "newest": "lsn"}, 'kind="scd2" needs newest: the column with the instant or day from which'),
        ({"kind": "scd2", "newest": "valid_to"}, 'kind="scd2" adds valid_to: leave it out of the schema'),
    ],
)
def test_what_a_state_says_of_its_changes_is_checked(said: dict[str, Any], problem: str) -> None:
    """One line, before Spark starts."""
    with pytest.raises(DeclarationError, match=problem):
        daily.state(schema="id string, lsn bigint, valid_to date", key="id", **said)

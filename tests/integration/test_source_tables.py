"""A project whose sources are tables of others: a Delta table, a folder of Parquet, and a table of PostgreSQL."""

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.settings import config_folder
from tests.postgres import PASSWORD, Server, driver_folder, running_server

FIRST: Final = datetime.date(2024, 5, 1)
SECOND: Final = datetime.date(2024, 5, 2)
SOURCES: Final = '''"""What comes from outside."""

from spark_app import Source, jdbc, table

ORDERS = Source(
    "orders",
    table("lake/orders", by="ordered_at"),
    schema="order_id string, customer_id int, amount decimal(12, 2), ordered_at timestamp",
    key="order_id",
    newest="ordered_at",
)
RETURNS = Source(
    "returns",
    table("lake/returns", by="day", format="parquet"),
    schema="order_id string, pieces int, at timestamp",
    key="order_id",
    newest="at",
    columns={"order_id": "Order ID", "at": "Zurückgegeben am"},
)
CUSTOMERS = Source(
    "customers",
    jdbc("CRM_URL", "crm.customers", by="updated_at", connections=3),
    schema="customer_id int, name string, credit decimal(12, 2), is_active boolean, updated_at timestamp",
    key="customer_id",
    newest="updated_at",
)
'''
MODULE: Final = '''"""Rows of a day."""

from pyspark.sql import DataFrame

from shop.sources import {source}
from spark_app import daily


@daily.source({source})
def bronze_{name}(rows: DataFrame) -> DataFrame:
    """Typed rows."""
    return rows


@daily.table(schema="{schema}, date date", partition_by="date", key="{key}")
def {name}(bronze_{name}: DataFrame) -> DataFrame:
    """One row per key."""
    return bronze_{name}
'''
SCHEMAS: Final = {
    "orders": ("order_id", "order_id string, customer_id int, amount decimal(12, 2), ordered_at timestamp"),
    "returns": ("order_id", "order_id string, pieces int, at timestamp"),
    "customers": (
        "customer_id",
        "customer_id int, name string, credit decimal(12, 2), is_active boolean, updated_at timestamp",
    ),
}


def at(day: datetime.date, number: int, *, of: int = 40) -> datetime.datetime:
    """An instant of a day: the first and the last microsecond are among them."""
    start = datetime.datetime.combine(day, datetime.time())
    last = datetime.timedelta(days=1) - datetime.timedelta(microseconds=1)
    return start + last * number / (of - 1)


def orders_of(day: datetime.date, first: int = 0) -> list[dict[str, Any]]:
    """Rows of the Delta table."""
    return [
        {"order_id": f"{day}-{n}", "customer_id": n % 7, "amount": Decimal(n * day.day) / 4, "ordered_at": at(day, n)}
        for n in range(first, 40)
    ]


def customers_of(day: datetime.date) -> list[dict[str, Any]]:
    """Rows of the table of the database."""
    return [
        {
            "customer_id": day.day * 100 + n,
            "name": f"Zoë '{n}' ;",
            "credit": None if n == 3 else Decimal(n) / 4,
            "is_active": n % 2 == 0,
            "updated_at": at(day, n),
        }
        for n in range(40)
    ]


def write_orders(spark: SparkSession, shop: Path, rows: list[dict[str, Any]]) -> None:
    """What another team appends to its table."""
    schema = f"{SCHEMAS['orders'][1]}, note string"
    frame = spark.createDataFrame([{**row, "note": "not ours"} for row in rows], schema)
    frame.coalesce(1).write.format("delta").mode("append").save(str(shop / "raw" / "lake" / "orders"))


def insert(server: Server, rows: list[dict[str, Any]]) -> None:
    """Adds customers to the database."""

    def text(value: object) -> str:
        return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"

    values = ", ".join(f"({', '.join(text(value) for value in row.values())}, 'internal')" for row in rows)
    server.run(f"INSERT INTO crm.customers VALUES {values}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Server]:
    """A PostgreSQL server with two days of customers, whose own time zone is not UTC."""
    with running_server(tmp_path_factory.mktemp("postgres"), spark) as running:
        running.run(
            "ALTER SYSTEM SET timezone = 'Asia/Tokyo'",
            "SELECT pg_reload_conf()",
            "CREATE SCHEMA crm",
            "CREATE TABLE crm.customers (customer_id int, name text, credit numeric(12, 2), is_active boolean,"
            " updated_at timestamp, note text)",
        )
        for day in (FIRST, SECOND):
            insert(running, customers_of(day))
        yield running


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A project of three sources, and the tables that two of them are."""
    folder = tmp_path_factory.mktemp("shop")
    defaults = (config_folder() / "spark" / "spark-defaults.conf").read_text(encoding="utf-8")
    texts = {
        "pyproject.toml": '[tool.spark-app]\npackage = "shop"\n',
        "config/app.yml": (config_folder() / "app.yml").read_text(encoding="utf-8"),
        "config/spark/spark-defaults.conf": f"{defaults}\nspark.driver.extraClassPath {driver_folder()}/*\n",
        "shop/__init__.py": "",
        "shop/sources.py": SOURCES,
        "shop/etl/__init__.py": "",
    }
    for name, (key, schema) in SCHEMAS.items():
        texts[f"shop/etl/{name}.py"] = MODULE.format(source=name.upper(), name=name, schema=schema, key=key)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for day in (FIRST, SECOND):
        write_orders(spark, folder, orders_of(day))
        returns = pd.DataFrame(
            {"Order ID": [f"{day}-1", f"{day}-2"], "pieces": [1, day.day], "Zurückgegeben am": [at(day, 5)] * 2}
        )
        part = folder / "raw" / "lake" / "returns" / f"day={day}"
        part.mkdir(parents=True)
        returns.to_parquet(part / "part-0.parquet", coerce_timestamps="us")
    return folder


def spark_app(shop: Path, *arguments: str, url: str = "") -> subprocess.CompletedProcess[str]:
    """What a command says in the folder of the project."""
    environment = os.environ | {"SPARK_APP_HOME": str(shop), "SPARK_APP_RAW__PATH": str(shop / "raw")}
    environment |= {"CRM_URL": url} if url else {}
    command = [sys.executable, "-m", "spark_app", *arguments]
    return subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, check=False)


def published(spark: SparkSession, shop: Path, table: str, day: datetime.date) -> list[dict[str, Any]]:
    """The rows of a day, as a reader finds them, in order of their key."""
    key, _ = SCHEMAS[table]
    rows = spark.read.format("delta").load(str(shop / "data" / "warehouse" / table)).where(F.col("date") == str(day))
    return [row.asDict() for row in rows.drop("date").orderBy(key).collect()]


def in_order(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Rows in order of their key."""
    return sorted(rows, key=lambda row: row[key])


def stale(shop: Path) -> list[tuple[str, str]]:
    """Table and day of what has to be written again."""
    found = json.loads(spark_app(shop, "stale", "--json").stdout)["stale"]
    return [(each["table"], each["day"]) for each in found]


def test_a_day_has_the_rows_of_the_tables(shop: Path, spark: SparkSession, server: Server) -> None:
    """All of the day and none of another, from its first microsecond to its last, read by three connections at once."""
    done = spark_app(shop, "etl", "--from", str(FIRST), "--to", str(SECOND), url=server.url)
    assert done.returncode == 0, done.stderr
    for day in (FIRST, SECOND):
        assert published(spark, shop, "orders", day) == in_order(orders_of(day), "order_id")
        assert published(spark, shop, "customers", day) == customers_of(day)
        assert [tuple(row.values()) for row in published(spark, shop, "returns", day)] == [
            (f"{day}-1", 1, at(day, 5)),
            (f"{day}-2", day.day, at(day, 5)),
        ]
    assert stale(shop) == []


def test_no_file_has_the_password_of_a_database(shop: Path, server: Server) -> None:
    """Neither logs, nor event logs, nor records of runs or reports."""
    written = [file for file in shop.rglob("*") if file.is_file()]
    assert len(written) > 50
    assert [file for file in written if any(word.encode() in file.read_bytes() for word in _forms(server))] == []


def _forms(server: Server) -> list[str]:
    return [PASSWORD, server.url.rpartition("@")[0].rpartition(":")[2]]


def test_only_the_day_of_a_table_that_changed_is_stale(shop: Path, spark: SparkSession) -> None:
    """By the statistics of the commits since: other days, and files that were only compacted, are the same."""
    write_orders(spark, shop, [{**orders_of(SECOND)[0], "order_id": "late"}])
    write_orders(spark, shop, orders_of(SECOND + datetime.timedelta(days=1)))
    DeltaTable.forPath(spark, str(shop / "raw" / "lake" / "orders")).optimize().executeCompaction()
    assert stale(shop) == [("bronze_orders", str(SECOND))]
    done = spark_app(shop, "etl", "--stale")
    assert done.returncode == 0, done.stderr
    assert len(published(spark, shop, "orders", SECOND)) == 41
    assert stale(shop) == []


def test_a_database_that_refuses_is_one_line(shop: Path, server: Server) -> None:
    """Without the password; nothing is published."""
    url = f"postgresql://postgres:wrong-secret@127.0.0.1:{server.port}/postgres"
    done = spark_app(shop, "etl", "customers", "--date", str(FIRST), url=url)
    assert done.returncode == 3, done.stderr
    said = (
        f"error: shop/sources.py:22: cannot read crm.customers of the database CRM_URL (jdbc:postgresql://127.0.0.1:"
        f'{server.port}/postgres): FATAL: password authentication failed for user "postgres"'
    )
    assert done.stderr.splitlines()[-1] == said
    assert "wrong-secret" not in done.stderr + done.stdout


def test_a_variable_that_is_not_set_is_said_before_anything_runs(shop: Path) -> None:
    """Also of a source that others come before."""
    done = spark_app(shop, "etl", "--date", str(FIRST))
    assert done.returncode == 3
    assert done.stderr.startswith("error: shop/sources.py:22: the variable CRM_URL is not set: set it to the URL of ")
    assert len(done.stderr.splitlines()) == 1


def test_a_column_that_a_table_lacks_is_one_line(shop: Path, spark: SparkSession, server: Server) -> None:
    """Of the database and of the lake; what was published stays."""
    server.run("ALTER TABLE crm.customers RENAME COLUMN credit TO limit_of_credit")
    done = spark_app(shop, "etl", "customers", "--date", str(FIRST), url=server.url)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "error: shop/sources.py:22: CRM_URL crm.customers has no column credit, which the source declares: it has "
        "customer_id, name, limit_of_credit, is_active, updated_at, note"
    )
    assert published(spark, shop, "customers", FIRST) == customers_of(FIRST)

"""A project whose sources say where their files are, each in another form and another format."""

import datetime
import gzip
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from spark_app.annexes.lineage.runs import lineage_runs
from spark_app.eventlog import reader
from spark_app.runs import column_lineage

FIRST: Final = datetime.date(2024, 5, 1)
SECOND: Final = datetime.date(2024, 5, 2)
HEAD: Final = '''"""Raw rows of a day."""

from pyspark.sql import DataFrame

from shop.sources import {source}
from spark_app import daily


@daily.source({source})
def bronze_{name}(rows: DataFrame) -> DataFrame:
    """Typed rows."""
    return rows


@daily.table(schema="{schema}, day date", partition_by="day", key="{key}")
def {name}(bronze_{name}: DataFrame) -> DataFrame:
    """One row per key."""
    return bronze_{name}.withColumnRenamed("date", "day")
'''
SOURCES: Final = '''"""What comes from outside."""

from spark_app import Source, files

ORDERS = Source(
    "orders",
    files("landing/{date:%Y/%m/%d}/*.csv.gz", format="csv", sep=";", header=False, encoding="windows-1252"),
    schema="order_id string, product string, amount decimal(12, 2), changed_at timestamp",
    key="order_id",
    newest="changed_at",
)
PRICES = Source(
    "prices",
    files("prices/*/prices_{date:%Y%m%d}.parquet", format="parquet"),
    schema="price_id string, product string, price decimal(12, 2), changed_at timestamp",
    key="price_id",
    newest="changed_at",
)
STOCK = Source(
    "stock",
    files("stock/{date}", format="json"),
    schema="stock_id string, product string, pieces bigint, changed_at timestamp",
    key="stock_id",
    newest="changed_at",
)
'''
SALES: Final = '''"""What was sold of each product, at which price, and how much is left."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app import daily


@daily.table(schema="day date, product string, amount decimal(22, 2), pieces bigint", partition_by="day")
def sales(orders: DataFrame, prices: DataFrame, stock: DataFrame) -> DataFrame:
    """One row per product with orders and a price."""
    sold = orders.groupBy("day", "product").agg(F.sum("amount").alias("amount"))
    left = stock.groupBy("product").agg(F.sum("pieces").alias("pieces"))
    return sold.join(prices.select("product"), "product").join(left, "product")
'''
COLUMNS: Final = {
    "orders": ("order_id", "product string, amount decimal(12, 2)"),
    "prices": ("price_id", "product string, price decimal(12, 2)"),
    "stock": ("stock_id", "product string, pieces bigint"),
}
PRODUCTS: Final = ("Käse", "Brötchen – 5 €", 'a ";" b')


def rows_of(day: datetime.date, *, more: int = 0) -> dict[str, pd.DataFrame]:
    """What each source delivers of a day."""
    at, numbers = f"{day}T10:00:00Z", range(30 + more)
    products = [PRODUCTS[number % 3] for number in numbers]
    amounts = [Decimal(number * day.day) / 4 for number in numbers]
    orders = pd.DataFrame({"order_id": [f"o{number}" for number in numbers], "product": products, "amount": amounts})
    prices = pd.DataFrame({"price_id": ["p0", "p1"], "product": PRODUCTS[:2], "price": [Decimal("1.50"), Decimal(2)]})
    stock = pd.DataFrame({"stock_id": ["s0", "s1", "s2"], "product": PRODUCTS, "pieces": [day.day, 20, 30]})
    return {
        name: frame.assign(changed_at=at) for name, frame in (("orders", orders), ("prices", prices), ("stock", stock))
    }


def deliver(raw: Path, day: datetime.date, frames: dict[str, pd.DataFrame]) -> None:
    """Writes the files of a day: those of the orders in two parts, those of the prices in two folders."""
    landing = raw / "landing" / f"{day:%Y/%m/%d}"
    landing.mkdir(parents=True, exist_ok=True)
    for part, half in enumerate((frames["orders"][:10], frames["orders"][10:])):
        text = half.to_csv(sep=";", header=False, index=False)
        (landing / f"part-{part}.csv.gz").write_bytes(gzip.compress(text.encode("windows-1252")))
    for number, folder in enumerate(("north", "south")):
        (raw / "prices" / folder).mkdir(parents=True, exist_ok=True)
        frames["prices"][number : number + 1].to_parquet(raw / "prices" / folder / f"prices_{day:%Y%m%d}.parquet")
    (raw / "stock" / str(day)).mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in frames["stock"].to_dict("records")]
    (raw / "stock" / str(day) / "rows.json").write_text("\n".join(lines), encoding="utf-8")


def expected(day: datetime.date, frames: dict[str, pd.DataFrame]) -> set[tuple[Any, ...]]:
    """The sales of a day, as pandas computes them."""
    sold = frames["orders"].groupby("product", as_index=False)["amount"].sum()
    joined = sold.merge(frames["prices"][["product"]]).merge(frames["stock"][["product", "pieces"]])
    return {(day, row.product, row.amount, row.pieces) for row in joined.itertuples()}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of three sources of three formats, with two days."""
    folder = tmp_path_factory.mktemp("shop")
    texts = {
        "pyproject.toml": '[tool.spark-app]\npackage = "shop"\n',
        "shop/__init__.py": "",
        "shop/sources.py": SOURCES,
        "shop/etl/__init__.py": "",
        "shop/etl/sales.py": SALES,
    }
    for name, (key, columns) in COLUMNS.items():
        schema = f"{key} string, {columns}"
        texts[f"shop/etl/{name}.py"] = HEAD.format(source=name.upper(), name=name, schema=schema, key=key)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for day in (FIRST, SECOND):
        deliver(folder / "raw", day, rows_of(day))
    return folder


def spark_app(shop: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command says in the folder of the project."""
    environment = os.environ | {"SPARK_APP_HOME": str(shop), "SPARK_APP_RAW__PATH": str(shop / "raw")}
    command = [sys.executable, "-m", "spark_app", *arguments]
    return subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, check=False)


def published(spark: SparkSession, shop: Path, day: datetime.date) -> set[tuple[Any, ...]]:
    """The sales of a day, as a reader finds them."""
    sales = spark.read.format("delta").load(str(shop / "data" / "warehouse" / "sales")).where(f"day = '{day}'")
    return {tuple(row) for row in sales.select("day", "product", "amount", "pieces").collect()}


def stale(shop: Path) -> list[tuple[str, str]]:
    """Table and day of what has to be written again."""
    found = json.loads(spark_app(shop, "stale", "--json").stdout)["stale"]
    return [(each["table"], each["day"]) for each in found]


def test_a_day_is_what_pandas_computes_of_its_files(shop: Path, spark: SparkSession) -> None:
    """Of three sources in three forms and formats; nothing is stale then, as a command without Spark sees it."""
    done = spark_app(shop, "etl", "--from", str(FIRST), "--to", str(SECOND), "--json")
    assert done.returncode == 0, done.stderr
    runs = {(run["pipeline"], run["slice"]): run["counts"] for run in json.loads(done.stdout)["runs"]}
    assert len(runs) == 8
    assert runs["etl.orders", str(FIRST)] == {"read": 30, "published": 30, "quarantined": 0, "duplicates": 0}
    for day in (FIRST, SECOND):
        assert len(expected(day, rows_of(day))) == 2
        assert published(spark, shop, day) == expected(day, rows_of(day))
    assert stale(shop) == []


def test_lineage_names_the_folder_of_the_files(shop: Path) -> None:
    """Of which columns those of a table are made, whatever the names of the files of the day are."""
    (log,) = (shop / "spark-events").iterdir()
    app = reader.read(log).app
    origins = dict[str, set[str]]()
    for run in lineage_runs(app, declared=column_lineage.of_application(shop / "runs", app.id)):
        for output in run.outputs:
            found = {field.name.removeprefix(f"{shop}/raw/") for _, fields in output.origins for field in fields}
            origins.setdefault(output.name.rpartition("/")[2], set()).update(found)
    raw = {name: origins[f"bronze_{name}"] for name in COLUMNS}
    assert raw == {"orders": {"landing"}, "prices": {"prices"}, "stock": {"stock"}}


def test_a_corrected_day_is_stale_and_published_again(shop: Path, spark: SparkSession) -> None:
    """That day alone, by one of its files."""
    corrected = rows_of(SECOND, more=5)
    part = shop / "raw" / "landing" / f"{SECOND:%Y/%m/%d}" / "part-2.csv.gz"
    text = corrected["orders"][30:].to_csv(sep=";", header=False, index=False)
    part.write_bytes(gzip.compress(text.encode("windows-1252")))
    assert stale(shop) == [("bronze_orders", str(SECOND))]
    done = spark_app(shop, "etl", "--stale")
    assert done.returncode == 0, done.stderr
    assert published(spark, shop, SECOND) == expected(SECOND, corrected) != expected(SECOND, rows_of(SECOND))
    assert published(spark, shop, FIRST) == expected(FIRST, rows_of(FIRST))
    assert stale(shop) == []


def test_files_that_cannot_be_read_publish_nothing(shop: Path, spark: SparkSession) -> None:
    """One line names the file: an archive that ends in the middle, and a file of another format."""
    before, landing = published(spark, shop, SECOND), shop / "raw" / "landing" / f"{SECOND:%Y/%m/%d}"
    part, content = landing / "part-1.csv.gz", (landing / "part-1.csv.gz").read_bytes()
    prices = shop / "raw" / "prices" / "north" / f"prices_{SECOND:%Y%m%d}.parquet"
    good = prices.read_bytes()
    for file, bad, pipeline in (
        (part, content[:-20], "orders"),
        (prices, b"x" * 99, "prices"),
    ):
        file.write_bytes(bad)
        done = spark_app(shop, "etl", pipeline, "--date", str(SECOND))
        assert done.returncode == 3, done.stderr
        assert file.name in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
    part.write_bytes(content)
    prices.write_bytes(good)
    assert published(spark, shop, SECOND) == before


def test_a_day_without_files_or_rows_is_one_line(shop: Path) -> None:
    """With the path that was looked at, and the days that are there."""
    third = SECOND + datetime.timedelta(days=1)
    done = spark_app(shop, "etl", "orders", "--date", str(third))
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        f"error: no raw data at {shop}/raw/landing/2024/05/03/*.csv.gz: deliver the day's files there, or correct "
        f"shop/sources.py:7; there are 2 other days, {FIRST} to {SECOND}"
    )
    folder = shop / "raw" / "landing" / f"{third:%Y/%m/%d}"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"\n"))
    done = spark_app(shop, "etl", "orders", "--date", str(third))
    assert done.returncode == 3
    assert f"no rows at {folder}/*.csv.gz: its files are empty" in done.stderr.splitlines()[-1]

"""A project of a user: declared tables of a day, from raw files to what is published, by the command line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset
import pytest

from spark_app.eventlog import reader

DAY: Final = "2024-05-01"
NEXT: Final = "2024-05-02"
SOURCES: Final = """
from spark_app import Source

ORDERS = Source(
    "orders",
    schema="order_id string, country string, amount decimal(12, 2), ordered_at timestamp, changed_at timestamp",
    key="order_id",
    newest="changed_at",
)
"""
DAILY_ORDERS: Final = '''
"""Orders of a day by country."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shop.sources import ORDERS
from spark_app import daily, expect


@daily.source(
    ORDERS,
    expect=[expect.not_null("order_id"), expect.at_least("amount", "0.01"), expect.of_day("ordered_at")],
)
def bronze_orders(rows: DataFrame) -> DataFrame:
    """Typed rows."""
    return rows


@daily.table(
    schema="order_id string, country string, amount decimal(12, 2), day date", partition_by="day", key="order_id"
)
def orders(bronze_orders: DataFrame) -> DataFrame:
    """One row per order."""
    return bronze_orders.withColumn("day", F.col("date"))


@daily.table(
    schema="day date, country string COMMENT 'ISO 3166', orders bigint, total decimal(22, 2)",
    partition_by="day",
    expect=[expect.not_null("country"), expect.at_least("orders", 1)],
)
def daily_orders(orders: DataFrame) -> DataFrame:
    """One row per country."""
    return orders.groupBy("day", "country").agg(F.count("*").alias("orders"), F.sum("amount").alias("total"))
'''


def written(folder: Path, files: dict[str, str]) -> None:
    """Writes files below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def order(number: int, amount: str = "10.00", **more: Any) -> str:
    """A raw row."""
    row = {"order_id": f"o-{number}", "country": "DE", "amount": amount, "ordered_at": f"{DAY}T10:00:00Z"}
    return json.dumps(row | {"changed_at": f"{DAY}T11:00:00Z"} | more) + "\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with raw files of a day: 300 orders, a repetition, a later version, and one of each fault."""
    folder = tmp_path_factory.mktemp("shop")
    rows = [order(number) for number in range(300)]
    rows += [order(1), order(2, "12.00", changed_at=f"{DAY}T12:00:00Z"), order(3, "-1.00"), "no JSON\n"]
    written(
        folder,
        {
            "pyproject.toml": '[tool.spark-app]\npackage = "shop"\n',
            "shop/__init__.py": "",
            "shop/sources.py": SOURCES,
            "shop/etl/__init__.py": "",
            "shop/etl/daily_orders.py": DAILY_ORDERS,
            f"raw/orders/date={DAY}/part-0.json": "".join(rows),
        },
    )
    return folder


def spark_app(shop: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a command says in the folder of the project."""
    environment = os.environ | {"SPARK_APP_HOME": str(shop), "SPARK_APP_RAW__PATH": str(shop / "raw")}
    command = [sys.executable, "-m", "spark_app", *arguments]
    return subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, check=False)


def test_a_day_is_audited_published_and_accounted_for(shop: Path) -> None:
    """Rows read are those published, quarantined and repeated; tables, trace and report are there."""
    done = spark_app(shop, "etl", "--date", DAY, "--json")
    assert done.returncode == 0, done.stderr
    [run] = json.loads(done.stdout)["runs"]
    assert (run["pipeline"], run["outcome"]) == ("etl.daily_orders", "succeeded")
    counts = {"read": 304, "published": 300, "quarantined": 2, "duplicates": 2}
    assert {name: run["counts"][name] for name in counts} == counts
    table = pyarrow.dataset.dataset(shop / "data" / "warehouse" / "daily_orders", exclude_invalid_files=True)
    assert table.to_table(columns=["country", "orders", "total"]).num_rows == 1


def test_what_runs_as_it_is_declared_is_unchanged_and_an_edit_is_not(shop: Path) -> None:
    """The commits of a run say how its rows were made; a compaction, which says nothing, is looked past."""
    assert spark_app(shop, "tables", "--optimize").returncode == 0
    assert planned(shop) == {"bronze_orders": "unchanged", "orders": "unchanged", "daily_orders": "unchanged"}
    file = shop / "shop" / "etl" / "daily_orders.py"
    file.write_text(DAILY_ORDERS.replace('F.sum("amount")', 'F.max("amount")'), encoding="utf-8")
    assert planned(shop) == {"bronze_orders": "unchanged", "orders": "unchanged", "daily_orders": "rows may differ"}
    file.write_text(DAILY_ORDERS, encoding="utf-8")


def planned(shop: Path) -> dict[str, str]:
    """The states of the tables of the project."""
    done = spark_app(shop, "plan", "--json")
    assert done.returncode == 0, done.stderr
    return {each["table"]: each["state"] for each in json.loads(done.stdout)["tables"]}


def test_jobs_have_the_lines_of_the_functions_that_they_work_for(shop: Path) -> None:
    """Not those of the library, or of the command line."""
    (log,) = (shop / "spark-events").iterdir()
    names = {stage.info.name for stage in reader.read(log).app.stages.values()}
    lines = {match[1] for name in names if (match := re.search(r" at shop/etl/daily_orders\.py:(\d+)$", name))}
    text = (shop / "shop" / "etl" / "daily_orders.py").read_text(encoding="utf-8").splitlines()
    assert {text[int(line) - 1].partition("(")[0] for line in lines} == {
        "def bronze_orders", "def orders", "def daily_orders",
    }  # fmt: skip
    assert {name.partition(" at ")[0] for name in names} <= {"collect", "save"}
    assert not any("spark_app/" in name or "typer" in name for name in names), names


def test_of_a_range_only_the_missing_days_are_run(shop: Path) -> None:
    """Which they are is said."""
    later = order(1, ordered_at=f"{NEXT}T10:00:00Z", changed_at=f"{NEXT}T11:00:00Z")
    written(shop, {f"raw/orders/date={NEXT}/part-0.json": later})
    done = spark_app(shop, "etl", "--missing", "--from", DAY, "--to", NEXT, "--json")
    assert done.returncode == 0, done.stderr
    assert [run["slice"] for run in json.loads(done.stdout)["runs"]] == [NEXT]
    assert f"etl.daily_orders has not published 1 of 2 days: {NEXT}" in done.stderr

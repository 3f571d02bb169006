"""Mistakes that people make in functions: each is one line with its place, before anything is read or written."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import SparkAppError
from spark_app.execution import checks, pipelines
from spark_app.execution.checks import Finding
from spark_app.execution.run import load_jobs
from spark_app.settings import load_settings

DAYS: Final = "etl/daily_orders.py"
VIEWS: Final = "streaming/views_per_page.py"


@dataclass(frozen=True)
class Mistake:
    """A small edit of a project, and what is said of it.

    Attributes:
        name: What people do.
        file: The file that is edited.
        line: The line that is named.
        right: What stands there.
        wrong: What people write.
        message: A regular expression for what is said after the place.
    """

    name: str
    file: str
    line: int
    right: str
    wrong: str
    message: str


MISTAKES: Final = (
    Mistake(
        "column misspelt",
        DAYS,
        46,
        'F.sum("amount")',
        'F.sum("amout")',
        r"daily_orders: there is no column amout: do you mean amount\?",
    ),
    Mistake(
        "attribute misspelt",
        DAYS,
        46,
        'F.sum("amount")',
        "F.sum(orders.amout)",
        r"daily_orders: there is no column amout: do you mean amount\?",
    ),
    Mistake(
        "item misspelt",
        DAYS,
        46,
        'F.sum("amount")',
        'F.sum(orders["amout"])',
        r"daily_orders: there is no column amout: do you mean amount\?",
    ),
    Mistake(
        "no return",
        DAYS,
        44,
        "return orders.groupBy",
        "orders.groupBy",
        r"daily_orders returns nothing: end it with `return` and the DataFrame of its rows",
    ),
    Mistake(
        "another type than declared",
        DAYS,
        44,
        'F.count("*").alias("orders")',
        'F.current_date().alias("orders")',
        r"daily_orders returns orders as date, and declares it as bigint: cast it, or declare what it is",
    ),
    Mistake(
        "column of a view misspelt",
        VIEWS,
        19,
        '"page").agg',
        '"pages").agg',
        r"views_per_page: there is no column pages: do you mean page\?",
    ),
)


def said(spark: SparkSession) -> list[Finding]:
    """What is found in the project of the current folder."""
    settings = load_settings()
    loaded = {job.name: job.pipeline for package in pipelines.PACKAGES for job in load_jobs(settings, package)}
    tables = {table.name: table for table in pipelines.declared_tables()}
    return checks.findings(spark, loaded, tables, settings)


def edit(file: Path, right: str, wrong: str) -> None:
    """Replaces a text in a file, which must have it."""
    text = file.read_text(encoding="utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong), encoding="utf-8")


def test_of_a_project_without_mistakes_nothing_is_said(spark: SparkSession, shop: Path) -> None:
    """Its functions are called with frames of the schemas that it declares."""
    assert said(spark) == [], shop


@pytest.mark.parametrize("mistake", MISTAKES, ids=[each.name for each in MISTAKES])
def test_a_mistake_is_one_line_with_its_place(spark: SparkSession, shop: Path, mistake: Mistake) -> None:
    """And with the nearest right name, where a name is wrong; a module that cannot be loaded says it at once."""
    edit(shop / mistake.file, mistake.right, mistake.wrong)
    try:
        found = said(spark)
    except SparkAppError as error:
        found = [Finding("", "", "mistake", str(error))]
    assert [each.kind for each in found] == ["mistake"], found
    place = rf"{shop.name}/{re.escape(mistake.file)}:{mistake.line}: "
    assert re.fullmatch(place + mistake.message, found[0].message), found[0].message


@pytest.mark.parametrize(
    "lines",
    [
        "largest = orders.agg(F.max('amount')).first()[0] + 1",
        "share = 1 / orders.count()",
        "wide = orders.groupBy('day').pivot('country').sum('amount')['DE']",
    ],
)
def test_a_function_that_acts_on_its_rows_is_not_refused(spark: SparkSession, shop: Path, lines: str) -> None:
    """What it makes of no rows says nothing about what it makes of some: it is a note."""
    edit(shop / DAYS, "return orders.groupBy", f"{lines}\n    return orders.groupBy")
    [found] = said(spark)
    assert found.kind == "note", found
    assert "daily_orders: not checked without data: " in found.message


def test_what_a_function_sets_is_gone_afterwards(spark: SparkSession, shop: Path) -> None:
    """Settings and views of the session that runs pipelines stay as they are."""
    edit(
        shop / DAYS,
        "return orders.groupBy",
        'orders.sparkSession.conf.set("spark.sql.shuffle.partitions", "77")\n'
        '    orders.createOrReplaceTempView("seen")\n    return orders.groupBy',
    )
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert said(spark) == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert not spark.catalog.tableExists("seen")
    assert SparkSession.getActiveSession() is not None

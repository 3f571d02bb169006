"""Mistakes that people make in functions: each is one line with its place, before anything is read or written."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from pyspark.sql import SparkSession

from spark_app import testing
from spark_app.errors import SparkAppError
from spark_app.execution import checks, pipelines
from spark_app.execution.checks import Finding
from spark_app.execution.run import load_jobs
from spark_app.settings import load_settings
from tests.unit.watching import Watching

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


@pytest.fixture
def counted(shop: Path) -> Path:
    """A project whose function notes each of its calls."""
    edit(
        shop / DAYS,
        "return orders.groupBy",
        'with open("calls", "a") as calls:\n        calls.write("x")\n    return orders.groupBy',
    )
    return shop


def require(spark: SparkSession, listener: Watching | None = None, **added: Any) -> int:
    """Looks for mistakes before a run of the daily pipelines, and returns how often the function was called so far."""
    settings = load_settings()
    loaded = pipelines.load("etl") | added
    with testing.application(spark, settings, listener=listener) as application:
        checks.require_no_mistake(application, loaded)
    return len(Path("calls").read_text(encoding="utf-8"))


def test_a_run_looks_for_mistakes_where_the_project_has_changed(spark: SparkSession, counted: Path) -> None:
    """What had none, and is as it was, is not called again."""
    assert (require(spark), require(spark)) == (1, 1)
    (counted / "etl" / "_further.py").write_text("", encoding="utf-8")
    assert (require(spark), require(spark)) == (2, 2)
    Path("config", "etl", "daily_orders.yml").write_text("default_limit: 0.5\n", encoding="utf-8")
    assert require(spark) == 3


def test_a_run_with_a_mistake_ends_before_it_begins(spark: SparkSession, counted: Path) -> None:
    """Each time, until it is mended."""
    edit(counted / DAYS, 'F.sum("amount")', 'F.sum("amout")')
    for _ in range(2):
        with pytest.raises(SparkAppError, match=r":48: daily_orders: there is no column amout: do you mean amount\?$"):
            require(spark)


class Unreadable:
    """A pipeline that cannot be asked for its functions."""

    def trials(self, _: object) -> NoReturn:
        """Fails."""
        raise RuntimeError("this is no function of the project")


def test_what_hinders_the_search_is_a_remark(spark: SparkSession, counted: Path) -> None:
    """The run goes on: it may be right."""
    listener = Watching()
    require(spark, listener, unreadable=Unreadable())
    assert listener.notes == [
        "functions were not checked before the run: RuntimeError: this is no function of the project"
    ], counted

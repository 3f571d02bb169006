"""Mistakes that people make in functions: each is one line with its place, before anything is read or written."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from pyspark.sql import SparkSession

from spark_app import testing
from spark_app.errors import SparkAppError
from spark_app.execution import checked, checks, pipelines
from spark_app.execution.checks import Finding
from spark_app.execution.run import load_jobs
from spark_app.settings import load_settings
from tests.unit.declarations.test_model import RETURNS
from tests.unit.watching import Watching

DAYS: Final = "etl/daily_orders.py"
SOURCES: Final = "sources.py"
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
    Mistake(
        "a return of something else",
        DAYS,
        44,
        "return orders.groupBy",
        "return 1, orders.groupBy",
        r"daily_orders returns a tuple: end it with `return` and the DataFrame of its rows",
    ),
    Mistake(
        "a column left out",
        DAYS,
        44,
        '.agg(F.count("*").alias("orders"), F.sum("amount").alias("total"))',
        '.agg(F.count("*").alias("orders"))',
        r"daily_orders returns no column total, which its schema has; it returns day, country, orders",
    ),
    Mistake(
        "a state for an aggregate",
        DAYS,
        46,
        "return orders.groupBy",
        "return orders.groupby2",
        r"daily_orders: there is no column groupby2: .*",
    ),
    Mistake(
        "a function of Spark misspelt",
        DAYS,
        46,
        'F.sum("amount")',
        'F.summ("amount")',
        r"daily_orders: AttributeError: module 'pyspark.sql.functions' has no attribute 'summ': do you mean sum\?",
    ),
    Mistake(
        "a function of groups misspelt",
        DAYS,
        46,
        ").agg(",
        ").aggregate(",
        r"daily_orders: AttributeError: 'GroupedData' object has no attribute 'aggregate'.*",
    ),
    Mistake(
        "a variable misspelt",
        DAYS,
        46,
        "return orders.groupBy",
        "return oders.groupBy",
        r"daily_orders: NameError: name 'oders' is not defined",
    ),
    Mistake(
        "an argument too few",
        DAYS,
        46,
        'F.sum("amount")',
        "F.sum()",
        r"daily_orders: TypeError: sum\(\) missing 1 required positional argument: 'col'",
    ),
    Mistake(
        "a frame as a number",
        DAYS,
        46,
        "return orders.groupBy",
        "orders + 1\n    return orders.groupBy",
        r"daily_orders: TypeError: unsupported operand type\(s\) for \+: 'DataFrame' and 'int'",
    ),
    Mistake(
        "and between columns",
        DAYS,
        46,
        "return orders.groupBy",
        'orders = orders.where(F.col("amount") > 1 and F.col("country") == "DE")\n    return orders.groupBy',
        r"daily_orders: .*CANNOT_CONVERT_COLUMN_INTO_BOOL.*",
    ),
    Mistake(
        "SQL that cannot be read",
        DAYS,
        46,
        "return orders.groupBy",
        'orders = orders.where("amount >")\n    return orders.groupBy',
        r"daily_orders: \[PARSE_SYNTAX_ERROR\] Syntax error at or near end of input\.",
    ),
    Mistake(
        "a column misspelt in SQL",
        DAYS,
        46,
        "return orders.groupBy",
        'orders = orders.where("amout > 1")\n    return orders.groupBy',
        r"daily_orders: there is no column amout: do you mean amount\?",
    ),
    Mistake(
        "a function of SQL misspelt",
        DAYS,
        46,
        'F.sum("amount")',
        'F.expr("summ(amount)")',
        r"daily_orders: \[UNRESOLVED_ROUTINE\] .*summ.*",
    ),
    Mistake(
        "a function of the wrong type",
        DAYS,
        46,
        'F.sum("amount")',
        'F.sum(F.date_add("country", F.col("day")))',
        r"daily_orders: \[DATATYPE_MISMATCH.*",
    ),
    Mistake(
        "a column that was dropped",
        DAYS,
        46,
        "return orders.groupBy",
        'return orders.drop("country").groupBy',
        r"daily_orders: there is no column country: .*",
    ),
    Mistake(
        "a column that is there twice",
        DAYS,
        46,
        "return orders.groupBy",
        'return orders.join(orders.select("order_id", "country"), "order_id").groupBy',
        r"daily_orders: \[AMBIGUOUS_REFERENCE\] .*country.*",
    ),
    Mistake(
        "a union of other columns",
        DAYS,
        46,
        "return orders.groupBy",
        'return orders.union(orders.select("day")).groupBy',
        r"daily_orders: \[NUM_COLUMNS_MISMATCH\].*",
    ),
    Mistake(
        "text for money",
        DAYS,
        44,
        'F.sum("amount").alias("total")',
        'F.max("country").alias("total")',
        r"daily_orders returns total as string, and declares it as decimal\(22,2\): cast it, or declare what it is",
    ),
    Mistake(
        "a source whose columns are left out",
        DAYS,
        19,
        "    return rows\n",
        '    return rows.drop("country")\n',
        r"bronze_orders returns no column country, which its schema has; it returns .*",
    ),
    Mistake(
        "a column of a source misspelt",
        DAYS,
        21,
        "    return rows\n",
        '    return rows.withColumn("country", F.upper("contry"))\n',
        r"bronze_orders: there is no column contry: do you mean country\?",
    ),
    Mistake(
        "a source whose types change",
        DAYS,
        19,
        "    return rows\n",
        '    return rows.withColumn("ordered_at", F.lit(1))\n',
        r"bronze_orders returns ordered_at as int, and declares it as timestamp: cast it, or declare what it is",
    ),
    Mistake(
        "an instant for a date",
        DAYS,
        29,
        'F.col("date")',
        'F.col("ordered_at")',
        r"orders returns day as timestamp, and declares it as date: cast it, or declare what it is",
    ),
    Mistake(
        "a nested type in a source",
        SOURCES,
        5,
        "country string",
        "country array<string>",
        r"source orders: country is array<string>, and raw values are read as text: declare it as string, and let .*",
    ),
    Mistake(
        "a space in a name",
        SOURCES,
        5,
        "country string",
        "`the country` string",
        r"schema: 'the country' is no name that Delta stores: rename it, without spaces and any of .*",
    ),
    Mistake(
        "a name twice, in capitals",
        SOURCES,
        5,
        "country string",
        "Order_id string",
        r"schema: the column order_id is declared twice",
    ),
    Mistake(
        "an expectation misspelt",
        DAYS,
        42,
        'expect.at_least("orders", 1)',
        'expect.uniqe("orders")',
        r"AttributeError: module 'spark_app.quality.expectations' has no attribute 'uniqe': do you mean unique\?",
    ),
    Mistake(
        "freshness of a table",
        DAYS,
        44,
        'expect.at_least("orders", 1)',
        'expect.fresh("orders")',
        r"daily_orders expects freshness of orders, which is judged of the rows of a source: declare it with @daily.*",
    ),
    Mistake(
        "outliers of a table",
        DAYS,
        44,
        'expect.at_least("orders", 1)',
        'expect.outliers("orders", sigmas=3)',
        r"daily_orders expects outliers of orders, which is judged of the rows of a source: declare it with @daily.*",
    ),
    Mistake(
        "uniqueness of a source",
        DAYS,
        19,
        'expect.not_null("country")',
        'expect.unique("country")',
        r"bronze_orders expects country.unique, and each row of a source is judged alone: .*",
    ),
    Mistake(
        "a decorator forgotten",
        "streaming/views_per_page.py",
        1,
        "@stream.table(",
        "_ = dict(",
        r"streaming.views_per_page is no pipeline: declare a function with a decorator of spark_app, .*",
    ),
    Mistake(
        "a view without its column",
        VIEWS,
        17,
        '"page", "views")',
        '"page")',
        r"views_per_page returns no column views, which its schema has; it returns started_at, page",
    ),
    Mistake(
        "a type of a view",
        VIEWS,
        17,
        '"page", "views")',
        'F.lit(1).alias("page"), F.current_date().alias("views"))',
        r"views_per_page returns views as date, and declares it as bigint: cast it, or declare what it is",
    ),
    Mistake(
        "an action on a stream",
        VIEWS,
        19,
        "windows = page_views",
        "page_views.count()\n    windows = page_views",
        r"views_per_page: .*Queries with streaming sources must be executed with writeStream\.start.*",
    ),
    Mistake(
        "a row for a column",
        DAYS,
        46,
        'F.sum("amount")',
        "F.sum(orders)",
        r"daily_orders: .*Argument `col` should be Column or str, got DataFrame\.",
    ),
    Mistake(
        "a name that is not imported",
        DAYS,
        46,
        'F.sum("amount")',
        'sum_of("amount")',
        r"daily_orders: NameError: name 'sum_of' is not defined",
    ),
    Mistake(
        "no return of a query",
        VIEWS,
        17,
        "return windows",
        "windows",
        r"views_per_page returns nothing: end it with `return` and the DataFrame of its rows",
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


def said_by_the_command(shop: Path) -> str:
    """What a command says of the project, in a process where no Spark runs while modules are loaded."""
    command = [sys.executable, "-m", "spark_app", "graph"]
    return subprocess.run(command, cwd=shop.parent, capture_output=True, text=True, check=False, timeout=60).stderr


def test_a_function_of_spark_names_its_type_as_text(shop: Path) -> None:
    """As Spark's documentation does, though its parser does not run yet."""
    half = '@F.udf("decimal(10, 3)")\ndef half(amount):\n    return amount / 2\n\n\n@daily.source('
    edit(shop / DAYS, "@daily.source(", half)
    assert said_by_the_command(shop) == ""
    edit(shop / DAYS, '"decimal(10, 3)"', '"decimel(10, 3)"')
    wrong = "ValueError: the function: 'decimel' is no type of Spark; do you mean decimal?"
    assert said_by_the_command(shop) == f"error: {shop.name}/{DAYS}:10: {wrong}\n"


def test_a_column_outside_a_function_is_one_line(shop: Path) -> None:
    """It needs Spark, which starts after the modules are loaded; it was an assertion without a word."""
    edit(shop / DAYS, "@daily.source(", 'LARGE = F.col("amount") > 100\n\n\n@daily.source(')
    assert said_by_the_command(shop) == (
        f"error: {shop.name}/{DAYS}:10: this needs Spark, which starts after the modules are loaded: move it into the "
        "function that uses it (_invoke_function in pyspark)\n"
    )


COUNTRIES: Final = """from spark_app import daily


@daily.state(schema="country string", key="country", deleted="country")
def countries(countries, bronze_orders):
    return bronze_orders
"""


def test_what_deletes_rows_is_a_condition(spark: SparkSession, shop: Path) -> None:
    """It was an error of a cast in the run, after the rows of the source were written."""
    (shop / "etl" / "countries.py").write_text(COUNTRIES, encoding="utf-8")
    [finding] = said(spark)
    wrong = f"{shop.name}/etl/countries.py:5: countries: deleted='country' is string, and no condition: write one, "
    assert finding.message == f"{wrong}such as \"op = 'D'\""


HELPER: Final = "def doubled(column):\n    return column * 2\n"


def test_a_module_that_another_one_imports_is_a_helper(spark: SparkSession, shop: Path) -> None:
    """It runs nothing itself, and is no mistake; the list of modules says that it is one."""
    (shop / "etl" / "amounts.py").write_text(HELPER, encoding="utf-8")
    with pytest.raises(SparkAppError, match=r"etl\.amounts is no pipeline: declare a function"):
        said(spark)
    edit(shop / DAYS, "from spark_app import", f"from {shop.name}.etl.amounts import doubled\nfrom spark_app import")
    assert said(spark) == []
    assert pipelines.helpers() == {"etl.amounts"}
    with pytest.raises(SparkAppError, match=r"etl\.amounts declares nothing that runs: its functions are for other"):
        load_jobs(load_settings(), "etl", ["amounts"])


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
        "orders.sparkSession.read.json('/nowhere')",
        "orders.sparkSession.read.format('delta').load('/nowhere')",
        "{}['rates']",
    ],
)
def test_what_may_be_right_with_data_is_not_refused(spark: SparkSession, shop: Path, lines: str) -> None:
    """What a function makes of no rows says nothing about some, and files may be elsewhere: it is a note."""
    edit(shop / DAYS, "return orders.groupBy", f"{lines}\n    return orders.groupBy")
    [found] = said(spark)
    assert found.kind == "note", found
    assert "daily_orders: not checked without data: " in found.message


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('groupBy("country")', 'groupBy("land")', r":26: with_history: there is no column land: "),
        ("F.log1p(amount)", "F.date_add(amount, 1)", r":24: with_history: \[DATATYPE_MISMATCH"),
        ('rows.select("order_id",', 'rows.select("order",', r":32: returned: there is no column order: do you mean o"),
        ("    return rows.select", "    rows.select", r":30: returned returns nothing: end it with `return`"),
    ],
)
def test_a_mistake_in_a_model_is_one_line(
    spark: SparkSession, shop: Path, right: str, wrong: str, message: str
) -> None:
    """In the function of its features, in that of a feature, which is said of all, and in that of its labels."""
    file = shop / "ml" / "returns.py"
    file.parent.mkdir()
    for each in ("__init__.py", file.name):
        file.with_name(each).write_text(RETURNS.format(package=shop.name) if each == file.name else "", "utf-8")
    edit(file, right, wrong)
    [found] = said(spark)
    assert found.kind == "mistake"
    assert re.search(rf"returns\.py{message}", found.message), found.message


def test_an_expectation_of_a_stream_is_about_the_columns_of_its_table(spark: SparkSession, shop: Path) -> None:
    """Streams do not have the text that raw rows have, which was asked for before."""
    edit(shop / VIEWS, "from spark_app import stream", "from spark_app import expect, stream")
    edit(shop / VIEWS, 'watermark="10 minutes",', 'watermark="10 minutes", expect=[expect.not_null("page")],')
    assert said(spark) == []


def test_an_expectation_that_needs_another_column_is_a_mistake(spark: SparkSession, shop: Path) -> None:
    """`of_day` compares with the column `date`, which this table does not have."""
    edit(shop / DAYS, 'expect=[expect.at_least("orders", 1)]', 'expect=[expect.of_day("day")]')
    [found] = said(spark)
    assert "etl/daily_orders.py:44: daily_orders: there is no column date: there are " in found.message


@pytest.mark.parametrize(
    "session", ["orders.sparkSession", "SparkSession.active()", "SparkSession.builder.getOrCreate()"]
)
def test_what_a_function_sets_is_gone_afterwards(spark: SparkSession, shop: Path, session: str) -> None:
    """Settings and views of the session that runs pipelines stay as they are, however a function finds it."""
    edit(shop / DAYS, "import DataFrame", "import DataFrame, SparkSession")
    edit(
        shop / DAYS,
        "return orders.groupBy",
        f'{session}.conf.set("spark.sql.shuffle.partitions", "77")\n'
        f'    orders.createOrReplaceTempView("seen")\n    orders = {session}.table("seen")\n    return orders.groupBy',
    )
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert said(spark) == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert not spark.catalog.tableExists("seen")
    assert SparkSession.getActiveSession() is spark


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


def answered() -> list[Finding]:
    """What `spark-app check` finds in the project of the current folder, which it knows already."""
    settings, listener = load_settings(), Watching()
    known = checked.without_mistakes(settings)
    assert known, "the project has changed"
    return list(checks.of_project(settings, checks.load(settings), known, listener=listener, jvm=None).findings)


def test_what_is_known_of_a_project_is_answered_without_spark(spark: SparkSession, counted: Path) -> None:
    """With what could not be checked, until a module, the configuration or a package is another."""
    edit(counted / DAYS, "return orders.groupBy", "[row] = orders.collect()\n    return orders.groupBy")
    settings = load_settings()
    checks.keep(settings, checks.load(settings), said(spark))
    calls = Path("calls").read_text(encoding="utf-8")
    [note] = answered()
    assert note.kind == "note"
    assert "daily_orders: not checked without data: ValueError" in note.message
    assert Path("calls").read_text(encoding="utf-8") == calls
    edit(counted / DAYS, "[row]", "[only]")
    assert checked.without_mistakes(load_settings()) == {}


def test_a_project_with_a_mistake_is_searched_each_time(spark: SparkSession, shop: Path) -> None:
    """Nothing is kept of it."""
    edit(shop / DAYS, 'F.sum("amount")', 'F.sum("amout")')
    settings = load_settings()
    checks.keep(settings, checks.load(settings), said(spark))
    assert checked.without_mistakes(settings) == {}


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


def test_an_unknown_expectation_in_the_configuration_names_its_line(shop: Path) -> None:
    """And the nearest right one."""
    file = shop.parent / "config" / "etl" / "daily_orders.yml"
    file.write_text("default_limit: 0.01\nlimits:\n  malformed: 0.1\n  orders.rnge: 0.1\n", encoding="utf-8")
    with pytest.raises(SparkAppError, match=r"daily_orders\.yml:4: limits: unknown .*; do you mean orders\.range\?"):
        load_jobs(load_settings(), "etl")


def test_configuration_that_is_about_nothing_is_a_mistake(shop: Path) -> None:
    """A file of no pipeline, a format of no source: the command says so, and no run."""
    config = shop.parent / "config"
    (config / "etl" / "daily_order.yml").write_text("default_limit: 0.1\n", encoding="utf-8")
    (config / "app.yml").write_text("raw:\n  path: raw\n  formats:\n    order: csv\n", encoding="utf-8")
    settings = load_settings()
    loaded = {job.name: job.pipeline for package in pipelines.PACKAGES for job in load_jobs(settings, package)}
    assert [each.message for each in checks.unused(settings, loaded)] == [
        "config/etl/daily_order.yml: no pipeline daily_order: do you mean daily_orders?",
        "config/app.yml:4: raw.formats: no source order: do you mean orders?",
    ]


def test_what_a_declaration_says_of_files_is_no_configuration(shop: Path) -> None:
    """A format of a source that says with `files(...)` how its files are written is about nothing."""
    sources = shop / SOURCES
    text = sources.read_text(encoding="utf-8").replace("import Source", "import Source, files")
    sources.write_text(text.replace('"orders",', '"orders",\n    files("o/{date}/*", format="orc"),'), encoding="utf-8")
    config = shop.parent / "config"
    (config / "app.yml").write_text("raw:\n  path: raw\n  formats:\n    orders: csv\n", encoding="utf-8")
    settings = load_settings()
    loaded = {job.name: job.pipeline for package in pipelines.PACKAGES for job in load_jobs(settings, package)}
    place = f"{sources.relative_to(Path.cwd())}:7" if sources.is_relative_to(Path.cwd()) else f"{sources}:7"
    assert [each.message for each in checks.unused(settings, loaded)] == [
        f"config/app.yml:4: raw.formats: the rows of orders are declared in {place}"
    ]

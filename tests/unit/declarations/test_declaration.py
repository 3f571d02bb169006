"""Mistakes in the declarations of a project: each is one line with its place, before Spark starts."""

import re
from pathlib import Path

import pytest

from spark_app.errors import SparkAppError
from spark_app.execution import pipelines

ORDERS = "etl/daily_orders.py"
SOURCES = "sources.py"
STATE = "etl/last_orders.py"
LAST_ORDERS = '''"""The last order of each country, whenever it was."""

from pyspark.sql import DataFrame

from spark_app import daily


@daily.state(schema="country string, ordered_at timestamp", key="country")
def last_orders(last_orders: DataFrame, orders: DataFrame) -> DataFrame:
    """One row per country with an order of the day."""
    return orders
'''
MISTAKES = [
    (
        SOURCES,
        5,
        "amount decimal",
        "amount decimel",
        r"schema: amount: 'decimel' is no type of Spark; do you mean decimal\?",
    ),
    (SOURCES, 5, "order_id string COMMENT", "order_id COMMENT", r"schema: order_id: 'COMMENT' is no type"),
    (SOURCES, 5, "ordered_at timestamp", "order_id timestamp", r"schema: the column order_id is declared twice"),
    (SOURCES, 5, 'key="order_id"', 'key="order"', r"source orders has no column order: do you mean order_id\?"),
    (SOURCES, 5, 'newest="changed_at"', 'newest="updated_at"', r"source orders has no column updated_at: "),
    (
        SOURCES,
        5,
        'newest="changed_at"',
        "may_be_empty=True",
        r"source orders needs newest or oldest: the columns that choose a version of a row",
    ),
    (
        SOURCES,
        5,
        'newest="changed_at"',
        'newest="changed_at", columns={"order": "Order ID"}',
        r"source orders has no column order: do you mean order_id\?",
    ),
    (
        SOURCES,
        5,
        'newest="changed_at"',
        'newest="changed_at", columns={"order_id": "amount"}',
        r"source orders: two of its columns are delivered as amount",
    ),
    (
        SOURCES,
        5,
        '    "orders",\n',
        '    "orders",\n    "landing/{date}",\n',
        r"source orders: 'landing/\{date\}' does not say where rows come from: write files\(",
    ),
    (SOURCES, 5, "ORDERS = Source(", "ORDERS = Sorce(", r"NameError: name 'Sorce' is not defined"),
    (SOURCES, 3, "import Source", "import Sorce as Source", r"ImportError: cannot import name 'Sorce'"),
    (SOURCES, 5, '    "orders",\n', "", r"TypeError: .*missing 1 required positional argument: 'name'"),
    (
        SOURCES,
        5,
        'newest="changed_at",\n)',
        'newest="changed_at",\n',
        r"Python cannot read this: '\(' was never closed",
    ),
    (ORDERS, 6, "import ORDERS", "import ORDER", r"ImportError: cannot import name 'ORDER' "),
    (ORDERS, 11, "\n    ORDERS,", "\n    ORDER,", r"NameError: name 'ORDER' is not defined"),
    (ORDERS, None, "expect.not_null(", "expect.notnull(", r"AttributeError: .* has no attribute 'notnull'"),
    (ORDERS, None, "expect.at_least(", "expect.at_mots(", r"AttributeError: .* has no attribute 'at_mots'"),
    (
        ORDERS,
        19,
        'not_null("country")',
        'not_null("contry")',
        r"bronze_orders expects something of contry, .*: do you mean country\?",
    ),
    (ORDERS, None, '"0.01"', '"cheap"', r"InvalidOperation: "),
    (
        ORDERS,
        29,
        "def orders(bronze_orders",
        "def orders(bronze_order",
        r"orders reads bronze_order, which no pipeline writes: do you mean bronze_orders\?",
    ),
    (
        ORDERS,
        44,
        "def daily_orders(orders:",
        "def daily_orders(sales:",
        r"daily_orders reads sales, which no pipeline writes: there are ",
    ),
    (ORDERS, None, "def orders(bronze_orders", "def orders(daily_orders", r"tables read each other in a circle: "),
    (
        ORDERS,
        44,
        "def daily_orders(orders:",
        "def daily_orders(daily_orders:",
        r"daily_orders reads itself: @daily\.state declares a table that is kept from day to day",
    ),
    (ORDERS, None, "def daily_orders(", "def orders(", r"the table orders is declared twice, here and in line 29"),
    (ORDERS, 24, 'key="order_id"', 'key="id"', r"the schema has no column id: there are day, order_id, country"),
    (
        ORDERS,
        24,
        'partition_by="day",\n    key',
        'partition_by="date",\n    key',
        r"the schema has no column date: there are day, order_id",
    ),
    (ORDERS, 24, 'partition_by="day",\n    key', 'partition_by="country",\n    key', r"country must be a date: "),
    (
        ORDERS,
        24,
        "country string, amount",
        "country strng, amount",
        r"schema: country: 'strng' is no type of Spark; do you mean string\?",
    ),
    (ORDERS, 24, "country string, amount", "country string amount", r"schema: 'amount' stands where 'a comma' must be"),
    (
        ORDERS,
        44,
        'at_least("orders", 1)',
        'at_least("order", 1)',
        r"daily_orders expects something of order, .*: do you mean orders\?",
    ),
    (
        ORDERS,
        34,
        'partition_by="day",\n    expect',
        "expect",
        r"TypeError: table\(\) missing 1 required keyword-only argument: 'partition_by'",
    ),
    (
        ORDERS,
        None,
        '@daily.table(\n    schema="day',
        '@daily.tabel(\n    schema="day',
        r"AttributeError: .* has no attribute 'tabel'",
    ),
    (
        ORDERS,
        44,
        "def daily_orders(orders: DataFrame) -> DataFrame:",
        "def daily_orders(orders: DataFrame) -> DataFrame",
        r"Python cannot read this: expected ':'",
    ),
    (
        ORDERS,
        44,
        "def daily_orders(orders: DataFrame)",
        "def daily_orders(*orders: DataFrame)",
        r"daily_orders: \*orders is no table: name each table that it reads",
    ),
    (
        ORDERS,
        19,
        "def bronze_orders(rows: DataFrame)",
        "def bronze_orders()",
        r"bronze_orders needs a first parameter, which gets the rows of the source orders",
    ),
    (
        ORDERS,
        29,
        "def orders(bronze_orders: DataFrame)",
        "def orders()",
        r"orders reads nothing: name the tables that it reads as its parameters",
    ),
    (STATE, 8, 'key="country"', 'key="county"', r"the schema has no column county: do you mean country\?"),
    (STATE, 8, 'key="country"', "key=[]", r"the key is empty: name the columns that identify a row, of country, "),
    (STATE, 8, ', key="country"', "", r"TypeError: state\(\) missing 1 required keyword-only argument: 'key'"),
    (
        STATE,
        8,
        "ordered_at timestamp",
        "ordered_at time_stamp",
        r"schema: ordered_at: 'time_stamp' is no type of Spark",
    ),
    (
        STATE,
        9,
        "(last_orders: DataFrame, orders",
        "(orders",
        r"last_orders keeps a state: it needs a parameter last_orders, which gets the rows of before",
    ),
    (STATE, 9, ", orders: DataFrame", "", r"last_orders reads nothing: name the tables that it reads"),
    (STATE, 9, ", orders: DataFrame", ", order: DataFrame", r"last_orders reads order, .*: do you mean orders\?"),
]


@pytest.fixture
def shop(shop: Path) -> Path:
    """The same project, with a table that keeps a state."""
    (shop / STATE).write_text(LAST_ORDERS, encoding="utf-8")
    return shop


def test_without_a_mistake_the_pipeline_is_what_is_declared(shop: Path) -> None:
    """It reads its source, and writes its tables in the order of what they read; a state does not wait for itself."""
    [pipeline, last] = pipelines.load("etl").values()
    assert (pipeline.sources, pipeline.reads) == (("orders",), ())
    assert [table.name for table in pipeline.writes] == ["bronze_orders", "orders", "daily_orders"]
    assert (last.reads, [table.name for table in last.writes]) == (("orders",), ["last_orders"])
    assert shop.is_dir()


@pytest.mark.parametrize(("file", "line", "right", "wrong", "message"), MISTAKES, ids=[each[4] for each in MISTAKES])
def test_a_mistake_is_one_line_with_its_place(
    shop: Path, file: str, line: int | None, right: str, wrong: str, message: str
) -> None:
    """And with the nearest right name, where a name is wrong."""
    text = (shop / file).read_text(encoding="utf-8")
    assert right in text
    (shop / file).write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(SparkAppError) as raised:
        pipelines.load("etl")
    assert (raised.value.exit_code, str(raised.value).count("\n")) == (2, 0)
    place = rf"^{shop.name}/{re.escape(file)}:{line or '[0-9]+'}: "
    assert re.search(place + message, str(raised.value)), str(raised.value)

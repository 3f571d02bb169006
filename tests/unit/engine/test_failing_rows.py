"""A row that makes a function fail is named, with the line that raised."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app import project
from spark_app.engine import failing_rows
from spark_app.engine.code_location import CodeLocation
from spark_app.engine.failing_rows import Computation
from spark_app.errors import SparkAppError
from tests.unit.execution.test_checks import edit

HALF = '''

@F.udf("int")
def half(amount):
    """Raises of one amount."""
    return 100 // (amount - 17)
'''


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    """Rows with the amounts from 0 on, each once."""
    return spark.range(40).select(
        F.concat(F.lit("o-"), F.col("id").cast("string")).alias("order_id"), F.col("id").cast("int").alias("amount")
    )


def computation(orders: DataFrame, column: str) -> Computation:
    """What becomes of orders with a further column."""
    location = CodeLocation(str(Path.cwd() / "shop" / "etl.py"), 7)
    return Computation(
        "halves",
        location,
        orders,
        "orders",
        ("order_id",),
        lambda rows: rows.withColumn("half", F.expr(column)),
        lambda condition: f'spark-app show orders --where "{condition}"',
    )


def run(of: Computation) -> None:
    """Computes all rows, as a write does."""
    with failing_rows.named(lambda: of):
        of.compute(of.rows).write.format("noop").mode("overwrite").save()


def test_a_row_that_spark_cannot_compute_is_named(orders: DataFrame, shop: Path) -> None:
    """With its key, where its function is declared, and how to see it."""
    with pytest.raises(SparkAppError) as raised:
        run(computation(orders, "100 / (amount - 17)"))
    assert str(raised.value).startswith("shop/etl.py:7: halves fails on a row of orders: [DIVIDE_BY_ZERO] "), shop
    assert str(raised.value).endswith("; see it: spark-app show orders --where \"order_id = 'o-17'\"")


def test_a_line_of_python_that_raises_is_named(spark: SparkSession, orders: DataFrame, shop: Path) -> None:
    """Not that of the function which is declared, but the last one of the project."""
    edit(shop / "etl" / "daily_orders.py", "\n\n@daily.source(", f"{HALF}\n\n@daily.source(")
    spark.udf.register("half", project.required().load("etl.daily_orders").half)
    with pytest.raises(SparkAppError) as raised:
        run(computation(orders, "half(amount)"))
    message = str(raised.value)
    assert f"{shop.name}/etl/daily_orders.py:13: halves fails on a row of orders: ZeroDivisionError: " in message
    assert message.endswith("order_id = 'o-17'\"")


def test_what_is_about_no_row_is_raised_as_it_is(orders: DataFrame, shop: Path) -> None:
    """A column that is not there, say."""
    with pytest.raises(PySparkException, match="amout"):
        run(computation(orders, "amout"))
    assert shop.is_dir()

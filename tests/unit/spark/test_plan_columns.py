"""Of which columns those of a DataFrame are made; nothing runs."""

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_app.spark.plan_columns import origins


@pytest.fixture
def sales(spark: SparkSession) -> DataFrame:
    """Rows of a table, as a function gets them: a part of its rows."""
    return spark.createDataFrame([], "id string, customer string, amount decimal(12, 2), day date").where(
        "day > '2024'"
    )


@pytest.fixture
def customers(spark: SparkSession) -> DataFrame:
    """Rows of another table, with columns of the same names."""
    return spark.createDataFrame([], "id string, country string")


def made_of(rows: DataFrame, **inputs: DataFrame) -> dict[str, str]:
    """By column, the columns that it is made of, as text."""
    found = origins(rows, inputs).items()
    return {column: " ".join(f"{each.input}.{each.column}" for each in each_of) for column, each_of in found}


def test_joins_new_names_aggregates_and_literals(sales: DataFrame, customers: DataFrame) -> None:
    """What a row is joined or grouped by is no part of other values; a literal and a count of rows have no columns."""
    joined = sales.join(customers.withColumnRenamed("id", "customer"), "customer", "left")
    mean = F.sum("amount") / F.count(F.lit(1))
    totals = joined.withColumn("currency", F.lit("EUR")).groupBy("country", "currency").agg(
        F.sum("amount").cast("decimal(22, 2)").alias("total"),
        mean.alias("mean"),
        F.count(F.lit(1)).alias("sales"),
        F.count_distinct("customer").alias("customers"),
        F.max(F.when(F.col("day") > "2024-01-01", F.col("id"))).alias("newest"),
    )  # fmt: skip
    assert made_of(totals.select("*"), sales=sales, customers=customers) == {
        "country": "customers.country",
        "currency": "",
        "total": "sales.amount",
        "mean": "sales.amount",
        "sales": "",
        "customers": "sales.customer",
        "newest": "sales.day sales.id",
    }


def test_windows_unions_exploded_values_and_subtotals(sales: DataFrame, customers: DataFrame) -> None:
    """A value of a window has the columns of the window; a column of a union those of all its parts."""
    rank = F.row_number().over(Window.partitionBy("customer").orderBy(F.desc("day")))
    assert made_of(sales.withColumn("rank", rank).where("rank = 1").select("rank"), sales=sales) == {
        "rank": "sales.customer sales.day"
    }
    both = sales.select("id", F.lit(1).alias("n")).unionByName(customers.select("id", F.length("country").alias("n")))
    assert made_of(both.distinct().select(F.upper("id").alias("key"), "n"), sales=sales, customers=customers) == {
        "key": "customers.id sales.id",
        "n": "customers.country",
    }
    assert made_of(sales.select(F.explode(F.split("id", "-")).alias("part")), sales=sales) == {"part": "sales.id"}
    subtotals = sales.rollup("customer").agg(F.sum("amount").alias("total"))
    assert made_of(subtotals, sales=sales) == {"customer": "sales.customer", "total": "sales.amount"}


def test_a_python_function_of_columns_has_these(sales: DataFrame) -> None:
    """Whatever it does with them."""
    doubled = F.udf(lambda text, day: f"{text}{day}")
    assert made_of(sales.select(doubled("id", "day").alias("text")), sales=sales) == {"text": "sales.day sales.id"}


def test_what_the_plan_does_not_tell_is_left_out(spark: SparkSession, sales: DataFrame, customers: DataFrame) -> None:
    """Of a function on whole DataFrames, of rows from elsewhere, of a subquery; other columns of the same rows stay."""

    def same(batches: Iterator[object]) -> Iterator[object]:
        yield from batches

    assert made_of(sales.mapInPandas(same, sales.schema), sales=sales) == {}
    assert made_of(spark.range(1).withColumn("one", F.lit(1)), sales=sales) == {"one": ""}
    newest = sales.agg(F.max("day").alias("day")).scalar()
    assert made_of(sales.select("id", newest.alias("newest")), sales=sales) == {"id": "sales.id"}
    other = sales.select("id").union(spark.createDataFrame([], "id string"))
    assert made_of(other, sales=sales, customers=customers) == {}


def test_an_input_that_is_used_twice_is_found_in_both_places(sales: DataFrame, customers: DataFrame) -> None:
    """Spark gives it new ids in one of them; where another input has the same form, nothing is said of that."""
    one, other = sales.alias("one"), sales.alias("other")
    pairs = one.join(other, F.col("one.customer") == F.col("other.customer"))
    columns = pairs.select(F.col("one.id").alias("first"), F.col("other.id").alias("second"))
    both = {"first": "sales.id", "second": "sales.id"}
    assert made_of(columns, sales=sales, customers=customers) == both
    same = sales.sparkSession.createDataFrame([], sales.schema).where("day > '2024'")
    assert made_of(columns, sales=sales, same=same) == {"first": "sales.id"}
    newest = sales.groupBy("customer").agg(F.max("day").alias("day")).join(sales.drop("day"), "customer", "left_semi")
    united = sales.select("customer", "day").union(newest)
    assert made_of(united, sales=sales) == {"customer": "sales.customer", "day": "sales.day"}

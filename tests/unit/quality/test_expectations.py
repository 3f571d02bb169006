import datetime
import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.quality.results import FRESHNESS, ExpectationResult

SCHEMA = StructType(
    [
        StructField("key", StringType()),
        StructField("amount", DecimalType(12, 2)),
        StructField("pieces", LongType()),
        StructField("ratio", DoubleType()),
        StructField("made_at", TimestampType()),
    ]
)


def typed(spark: SparkSession, *, malformed: bool = False, **values: Any) -> DataFrame:
    """One row of text with its typed columns."""
    row = (tuple(values.get(name) for name in SCHEMA.names), malformed)
    text = ",".join(f"{name}:string" for name in SCHEMA.names)
    read = spark.createDataFrame([row], f"text struct<{text}>, is_malformed boolean")
    return read.select("text", "is_malformed", *expect.typed(SCHEMA))


def broken(
    spark: SparkSession, expectations: list[Expectation], *, malformed: bool = False, **values: Any
) -> list[str]:
    """The expectations that one row of text breaks."""
    row = typed(spark, malformed=malformed, **values).withColumn("date", F.lit(datetime.date(2024, 1, 1)))
    return list(row.select(expect.violations(expectations)).collect()[0][0])


@pytest.mark.parametrize(
    ("amount", "value", "reasons"),
    [
        ("12.30", "12.30", []),
        ("12.300", "12.30", []),
        ("12.301", None, ["amount.type"]),
        ("12.505", None, ["amount.type"]),
        ("12.00000000001", None, ["amount.type"]),
        ("0.00999999999999", None, ["amount.type"]),
        ("1e3", "1000.00", []),
        ("twelve", None, ["amount.type"]),
        ("9999999999.99", "9999999999.99", []),
        ("99999999999.00", None, ["amount.type"]),
        ("-0.01", "-0.01", ["amount.range"]),
        ("0.00", "0.00", ["amount.range"]),
        ("NaN", None, ["amount.type"]),
        ("1e999", None, ["amount.type"]),
        ("1e999999999", None, ["amount.type"]),
        ("1E-999999999 ", None, ["amount.type"]),
        (" 1.00 ", "1.00", []),
        (None, None, []),
    ],
)
def test_money_loses_no_digit(spark: SparkSession, amount: str | None, value: str | None, reasons: list[str]) -> None:
    """What does not fit the decimal is unreadable and null, never rounded; what is missing breaks only `not_null`."""
    expectations = [*expect.readable_columns(SCHEMA), expect.at_least("amount", "0.01")]
    row = typed(spark, amount=amount)
    assert row.select(expect.violations(expectations), F.col("amount").cast("string")).collect()[0] == (
        reasons,
        value,
    )


def test_the_cheap_cast_of_money_equals_the_exact_one(spark: SparkSession) -> None:
    """On thousands of texts that are numbers, or nearly: signs, blanks, exponents, too many digits, other scripts."""
    draw = random.Random(5)
    digits = ["0", "1", "9", "00", "12", "999999999", "9999999999", "12345678901234567890"]
    marks = ["", ".", "-", "+", "e", "E-", ",", " ", "\t", "\n", "\u0663", "\uff11", "d", "f", "L", "_", "0x"]
    texts = {"".join(draw.choice(digits + 2 * marks) for _ in range(draw.randint(0, 6))) for _ in range(20_000)}
    wholes = [draw.randrange(10 ** draw.randint(1, 12)) for _ in range(4_000)]
    texts |= {f"{draw.choice(['', '-', ' '])}{whole}{draw.choice(['', '.', '.5', '.50', '.505'])}" for whole in wholes}
    money, amounts = DecimalType(12, 2), spark.createDataFrame([(text,) for text in texts], "amount string")
    rows = amounts.select(F.struct("amount").alias("text"), expect._exact(F.col("amount"), money).alias("exact"))
    cheap = expect.typed(StructType([StructField("amount", money)]))[0]
    read = rows.withColumn("cheap", cheap)
    assert read.where("NOT (cheap <=> exact)").select("text.amount").collect() == []
    assert read.where("exact IS NOT NULL").count() > 1_000


@pytest.mark.parametrize(
    ("made_at", "value"),
    [
        ("2024-01-01T08:00:00Z", "2024-01-01 08:00:00"),
        (" 2024-01-01 08:00 ", "2024-01-01 08:00:00"),
        ("2024-01-01", "2024-01-01 00:00:00"),
        ("2024-01-32", None),
        ("12:00", None),
        ("T08", None),
        ("23:59:59+02:00", None),
        ("2024", None),
        ("2024-01", None),
    ],
)
def test_an_instant_has_its_day(spark: SparkSession, made_at: str, value: str | None) -> None:
    """A time alone is unreadable, not one of the day of the clock; nor is a year alone its first day."""
    row = typed(spark, made_at=made_at).select(
        expect.violations(expect.readable_columns(SCHEMA)), F.col("made_at").cast("string")
    )
    assert row.collect()[0] == ([] if value else ["made_at.type"], value)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028", "\x85", "b", " "])
def test_a_pattern_is_of_the_whole_value(spark: SparkSession, ending: str) -> None:
    """A line end after what matches is not let through."""
    expectations = [expect.matches("key", "^a$|b")]
    assert broken(spark, expectations, key="a") == broken(spark, expectations, key="b") == []
    assert (
        broken(spark, expectations, key=f"a{ending}")
        == broken(spark, expectations, key=f"b{ending}")
        == ["key.pattern"]
    )


NEW_YEAR = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("column", "low", "below", "at_bound"),
    [
        ("ratio", 0.005, "0.0049", "0.005"),
        ("ratio", "0.005", "0.0049", "0.005"),
        ("pieces", 20_000_000_000, "19999999999", "20000000000"),
        ("pieces", "0.5", "0", "1"),
        ("amount", "0.01", "0.00", "0.01"),
        ("amount", 1, "0.99", "1.00"),
        ("made_at", NEW_YEAR, "2023-12-31T23:59:59Z", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_bound_is_compared_in_the_type_of_its_column(
    spark: SparkSession, column: str, low: float | str | datetime.datetime, below: str, at_bound: str
) -> None:
    """Neither rounded to cents nor too large for them."""
    rows = typed(spark, **dict[str, Any]({column: below})).union(typed(spark, **dict[str, Any]({column: at_bound})))
    found = rows.select(expect.violations([expect.at_least(column, low)])).collect()
    assert [names for (names,) in found] == [[f"{column}.range"], []]


def test_a_bound_above_and_a_condition_are_of_the_row(spark: SparkSession) -> None:
    """A row at the bound meets it, and so does one of which SQL cannot tell."""
    rules = [expect.at_most("amount", "10.00"), expect.condition("amount", "amount > length(key)", name="long")]
    rows = {("k", "10.01"): ["amount.max"], ("k", "10.00"): [], ("key", "2.00"): ["amount.long"], ("k", None): []}
    found = [broken(spark, rules, key=key, amount=amount) for key, amount in rows]
    assert found == [*rows.values()]


def test_a_row_that_does_not_parse_breaks_only_that(spark: SparkSession) -> None:
    """It is not counted as missing in every column as well."""
    assert broken(spark, [expect.not_null("key")], malformed=True) == [expect.MALFORMED]
    assert broken(spark, [], malformed=True) == [expect.MALFORMED]


def test_all_reasons_of_a_row_are_named(spark: SparkSession) -> None:
    """In the order of the expectations."""
    expectations = [
        expect.allowed("key", ["a", "b"]),
        expect.matches("key", "^[a-b]$"),
        expect.not_null("pieces"),
    ]
    assert broken(spark, expectations, key="c") == ["key.allowed", "key.pattern", "pieces.not_null"]
    assert broken(spark, expectations, key="a", pieces="1") == []


def test_a_missing_value_breaks_only_not_null(spark: SparkSession) -> None:
    """No rule about values speaks of a value that is not there."""
    expectations = [
        expect.allowed("key", ["a"]),
        expect.matches("key", "a"),
        expect.of_day("key"),
        expect.not_null("key"),
    ]
    assert broken(spark, expectations) == ["key.not_null"]


@pytest.mark.parametrize(("broken_rows", "is_breached"), [(0, False), (1, False), (2, True)])
def test_a_share_at_its_limit_is_kept(broken_rows: int, *, is_breached: bool) -> None:
    """Only beyond it is a breach."""
    assert expect.result("a", broken_rows, 100, {"a": 0.01}).is_breached is is_breached


def test_a_share_of_no_rows_is_none() -> None:
    """A feed of changes may be empty; where there must be rows, the run ends before it judges."""
    assert expect.result("a", 0, 0, {"a": 0.0}) == ExpectationResult("a", 0.0, 0.0, 0, 0)


def test_a_figure_tells_how_far_off_it_is() -> None:
    """Rows with their share, or seconds."""
    assert str(expect.result("a.range", 1_234, 100_000, {"a.range": 0.01})) == (
        "a.range: 1,234 of 100,000 (1.2340%), allowed 1.0000%"
    )
    assert str(ExpectationResult(FRESHNESS, 7_200, 3_600)) == (
        "freshness: no valid row in the last 7,200 s of the day, allowed 3,600 s"
    )


def test_rows_that_are_there_twice_violate_uniqueness(spark: SparkSession) -> None:
    """Each further one counts, by the values of all columns; a null is a value."""
    rows = spark.createDataFrame([("a", 1), ("a", 1), ("a", 2), (None, 1), (None, 1)], "name string, number int")
    both, name = expect.unique("name", "number"), expect.unique("name")
    assert (both.name, both.column, name.name) == ("name.unique_with_number", "name", "name.unique")
    [found] = rows.agg(both.violations(), name.violations()).collect()
    assert tuple(found) == (2, 3)

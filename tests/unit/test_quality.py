from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from app import quality
from app.errors import ConfigError
from app.figures import FRESHNESS, Figure
from app.quality import Promise

SCHEMA = StructType(
    [
        StructField("key", StringType()),
        StructField("amount", DecimalType(12, 2)),
        StructField("pieces", LongType()),
    ]
)


def broken(spark: SparkSession, promises: list[Promise], *, malformed: bool = False, **values: Any) -> list[str]:
    """The promises that one row of text breaks."""
    row = (tuple(values.get(name) for name in SCHEMA.names), malformed)
    read = spark.createDataFrame([row], "text struct<key:string,amount:string,pieces:string>, is_malformed boolean")
    typed = read.select("text", "is_malformed", *quality.typed(SCHEMA))
    return list(typed.select(quality.problems(promises)).collect()[0][0])


@pytest.mark.parametrize(
    ("amount", "reasons"),
    [
        ("12.30", []),
        ("12.300", []),
        ("12.301", ["amount.type"]),
        ("1e3", []),
        ("twelve", ["amount.type"]),
        ("99999999999.00", ["amount.type"]),
        ("-0.01", ["amount.range"]),
        ("0.00", ["amount.range"]),
        ("NaN", ["amount.type"]),
        (" 1.00 ", []),
        (None, []),
    ],
)
def test_money_loses_no_digit(spark: SparkSession, amount: str | None, reasons: list[str]) -> None:
    """What does not fit the decimal is unreadable, never rounded; what is missing breaks only `not_null`."""
    promises = [*quality.readable_columns(SCHEMA), quality.at_least("amount", "0.01")]
    assert broken(spark, promises, amount=amount) == reasons


def test_a_row_that_does_not_parse_breaks_only_that(spark: SparkSession) -> None:
    """It is not counted as missing in every column as well."""
    assert broken(spark, [quality.not_null("key")], malformed=True) == [quality.MALFORMED]
    assert broken(spark, [], malformed=True) == [quality.MALFORMED]


def test_all_reasons_of_a_row_are_named(spark: SparkSession) -> None:
    """In the order of the promises."""
    promises = [quality.allowed("key", ["a", "b"]), quality.matches("key", "^[a-b]$"), quality.not_null("pieces")]
    assert broken(spark, promises, key="c") == ["key.allowed", "key.pattern", "pieces.not_null"]
    assert broken(spark, promises, key="a", pieces="1") == []


def test_a_missing_value_breaks_only_not_null(spark: SparkSession) -> None:
    """No rule about values speaks of a value that is not there."""
    promises = [
        quality.allowed("key", ["a"]),
        quality.matches("key", "a"),
        quality.on_date("key", F.lit("2024-01-01").cast("date")),
        quality.not_null("key"),
    ]
    assert broken(spark, promises) == ["key.not_null"]


def test_limits_are_the_configured_ones_or_the_default() -> None:
    """A limit for a promise that does not exist is an error that names those that do."""
    assert quality.limits_of(["a", "b"], {"b": 0.5}, default=0.1, where="etl.x") == {"a": 0.1, "b": 0.5}
    with pytest.raises(ConfigError, match=r"etl\.x: limits: unknown promise 'c'; allowed are a, b"):
        quality.limits_of(["b", "a"], {"c": 0.5}, default=0.1, where="etl.x")


@pytest.mark.parametrize(("broken_rows", "is_breached"), [(0, False), (1, False), (2, True)])
def test_a_share_at_its_limit_is_kept(broken_rows: int, *, is_breached: bool) -> None:
    """Only beyond it is a breach."""
    assert quality.share("a", broken_rows, 100, {"a": 0.01}).is_breached is is_breached


def test_a_day_without_rows_breaks_nothing() -> None:
    """A share of nothing is none."""
    assert quality.share("a", 0, 0, {"a": 0.0}) == Figure("a", 0.0, 0.0, 0, 0)


def test_a_figure_tells_how_far_off_it_is() -> None:
    """Rows with their share, or seconds."""
    assert str(quality.share("a.range", 1_234, 100_000, {"a.range": 0.01})) == (
        "a.range: 1,234 of 100,000 (1.2340%), allowed 1.0000%"
    )
    assert str(Figure(FRESHNESS, 7_200, 3_600)) == (
        "freshness: the newest row is 7,200 s older than the end of the day, allowed 3,600 s"
    )

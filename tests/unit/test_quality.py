import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType, TimestampType

from app import quality
from app.figures import FRESHNESS, Figure
from app.quality import Promise

SCHEMA = StructType(
    [
        StructField("key", StringType()),
        StructField("amount", DecimalType(12, 2)),
        StructField("pieces", LongType()),
        StructField("made_at", TimestampType()),
    ]
)


def typed(spark: SparkSession, *, malformed: bool = False, **values: Any) -> DataFrame:
    """One row of text with its typed columns."""
    row = (tuple(values.get(name) for name in SCHEMA.names), malformed)
    text = ",".join(f"{name}:string" for name in SCHEMA.names)
    read = spark.createDataFrame([row], f"text struct<{text}>, is_malformed boolean")
    return read.select("text", "is_malformed", *quality.typed(SCHEMA))


def broken(spark: SparkSession, promises: list[Promise], *, malformed: bool = False, **values: Any) -> list[str]:
    """The promises that one row of text breaks."""
    return list(typed(spark, malformed=malformed, **values).select(quality.problems(promises)).collect()[0][0])


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
        (" 1.00 ", "1.00", []),
        (None, None, []),
    ],
)
def test_money_loses_no_digit(spark: SparkSession, amount: str | None, value: str | None, reasons: list[str]) -> None:
    """What does not fit the decimal is unreadable and null, never rounded; what is missing breaks only `not_null`."""
    promises = [*quality.readable_columns(SCHEMA), quality.at_least("amount", "0.01")]
    row = typed(spark, amount=amount)
    assert row.select(quality.problems(promises), F.col("amount").cast("string")).collect()[0] == (reasons, value)


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
        quality.problems(quality.readable_columns(SCHEMA)), F.col("made_at").cast("string")
    )
    assert row.collect()[0] == ([] if value else ["made_at.type"], value)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028", "\x85", "b", " "])
def test_a_pattern_is_of_the_whole_value(spark: SparkSession, ending: str) -> None:
    """A line end after what matches is not let through."""
    promises = [quality.matches("key", "^a$|b")]
    assert broken(spark, promises, key="a") == broken(spark, promises, key="b") == []
    assert broken(spark, promises, key=f"a{ending}") == broken(spark, promises, key=f"b{ending}") == ["key.pattern"]


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
        quality.on_date("key", datetime.date(2024, 1, 1)),
        quality.not_null("key"),
    ]
    assert broken(spark, promises) == ["key.not_null"]


@pytest.mark.parametrize(("broken_rows", "is_breached"), [(0, False), (1, False), (2, True)])
def test_a_share_at_its_limit_is_kept(broken_rows: int, *, is_breached: bool) -> None:
    """Only beyond it is a breach."""
    assert quality.share("a", broken_rows, 100, {"a": 0.01}).is_breached is is_breached


def test_a_share_of_no_rows_is_none() -> None:
    """A feed of changes may be empty; where there must be rows, the run ends before it judges."""
    assert quality.share("a", 0, 0, {"a": 0.0}) == Figure("a", 0.0, 0.0, 0, 0)


def test_a_figure_tells_how_far_off_it_is() -> None:
    """Rows with their share, or seconds."""
    assert str(quality.share("a.range", 1_234, 100_000, {"a.range": 0.01})) == (
        "a.range: 1,234 of 100,000 (1.2340%), allowed 1.0000%"
    )
    assert str(Figure(FRESHNESS, 7_200, 3_600)) == (
        "freshness: no valid row in the last 7,200 s of the day, allowed 3,600 s"
    )

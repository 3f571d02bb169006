import datetime
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_app.commands import show
from spark_app.commands.show import FirstRows
from spark_app.errors import UsageError
from tests.unit.conftest import Printed

HOSTILE = "[red]\x1b[31mx\n"


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Three rows with each kind of column that the tables have, one of nulls, and days that Python does not know."""
    return spark.sql(
        r"""
        SELECT * FROM VALUES
          (1, 'a', CAST(1234567890.10 AS DECIMAL(12,2)), TIMESTAMP'2024-07-01T10:00:00.000001+02:00',
           DATE'2024-07-01', ARRAY('x', NULL), MAP('k', 'v'), NAMED_STRUCT('n', 1)),
          (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          (3, 'b', CAST(0 AS DECIMAL(12,2)), TIMESTAMP'+12024-01-01T00:00:00Z', DATE'+12024-01-01', ARRAY(),
           MAP(), NAMED_STRUCT('n', 2))
          AS t(id, name, amount, created_at, date, `problems.all`, extra, nested)
        ORDER BY id
        """
    )


def test_values_are_exact_and_instants_are_utc(rows: DataFrame) -> None:
    """Decimals and microseconds are kept, an instant has its zone, a structure is a mapping; null stays null."""
    found = show.first_rows(rows, table="bronze")
    instant = datetime.datetime(2024, 7, 1, 8, 0, 0, 1, tzinfo=datetime.UTC)
    first = [1, "a", Decimal("1234567890.10"), instant, "2024-07-01", ["x", None], {"k": "v"}, {"n": 1}]
    assert found.columns == ["id", "name", "amount", "created_at", "date", "problems.all", "extra", "nested"]
    assert found.rows[:2] == [first, [2, *[None] * 7]]


def test_years_beyond_9999_are_shown(rows: DataFrame) -> None:
    """Which Python cannot represent."""
    created_at, date = show.first_rows(rows, table="bronze", where="id = 3").rows[0][3:5]
    assert created_at == "317273587200000000 microseconds after 1970"
    assert date == "+12024-01-01"


def test_more_rows_are_announced_only_if_there_are_any(rows: DataFrame) -> None:
    """One row more than the limit is read, and not shown."""
    two = show.first_rows(rows, table="bronze", limit=2)
    assert (len(two.rows), two.has_more) == (2, True)
    assert not show.first_rows(rows, table="bronze", limit=3).has_more


def test_rows_are_filtered_by_date_and_condition(rows: DataFrame) -> None:
    """--date filters the partition column; --where comes on top."""
    day = datetime.date(2024, 7, 1)
    assert [row[0] for row in show.first_rows(rows, table="bronze", date=day).rows] == [1]
    assert show.first_rows(rows, table="bronze", date=day, where="name = 'b'").rows == []


def test_date_is_refused_for_a_table_that_is_not_partitioned_by_day(rows: DataFrame) -> None:
    """The line names the table."""
    with pytest.raises(UsageError, match="customers is not partitioned by day"):
        show.first_rows(rows.drop("date"), table="customers", date=datetime.date(2024, 7, 1))


@pytest.mark.parametrize("where", ["nmae = 'a'", "id =", "1 / (id - id) > 0", "id"])
def test_an_invalid_condition_is_a_usage_error(rows: DataFrame, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown column, a syntax error, an error in a row, and an expression that is no condition."""
    with pytest.raises(UsageError, match="--where") as raised:
        show.first_rows(rows, table="bronze", where=where)
    assert re.fullmatch(r"--where (['\"]).*\1: [A-Z][^\n]*[.)]", str(raised.value))
    assert "SQLSTATE" not in str(raised.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("where", [None, "id = 0"])
def test_a_vacuumed_version_is_a_usage_error(spark: SparkSession, tmp_path: Path, where: str | None) -> None:
    """The message says what remains readable."""
    for rows in (2, 3):
        spark.range(rows).write.format("delta").mode("overwrite").save(str(tmp_path))
        if rows == 2:
            old = list(tmp_path.glob("*.parquet"))
    for file in old:
        file.unlink()
    first = spark.read.format("delta").option("versionAsOf", 0).load(str(tmp_path))
    with pytest.raises(UsageError, match=r"^--version 0: this version of customers was vacuumed; [^\n]*$"):
        show.first_rows(first, table="customers", version_option="--version 0", where=where)
    with pytest.raises((PySparkException, Py4JJavaError)):
        show.first_rows(first, table="customers")


def test_the_largest_limit_works(rows: DataFrame) -> None:
    """It is the most that Spark can count."""
    assert len(show.first_rows(rows, table="bronze", limit=show.MAX_ROWS).rows) == 3


def test_an_error_of_spark_without_an_option_is_no_usage_error(rows: DataFrame) -> None:
    """No option is blamed for it."""
    with pytest.raises(PySparkException), show.as_usage_error(None):
        rows.where("1 / (id - id) > 0").collect()


def test_rows_are_escaped(printed: Printed) -> None:
    """Numbers are right-aligned."""
    show.listing(printed.terminal, FirstRows(["id", HOSTILE], [[1, HOSTILE], [10, None]], has_more=True))
    assert printed.out.getvalue() == "id  [red]\\x1b[31mx\\n\n 1  [red]\\x1b[31mx\\n\n10  null\n"
    assert printed.err.getvalue() == "2 rows; --limit shows more\n"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-01-31", "2024-01-31T00:00:00+00:00"),
        ("2024-01-31T08:00", "2024-01-31T08:00:00+00:00"),
        ("2024-01-31 08:00:00.5Z", "2024-01-31T08:00:00.500000+00:00"),
        ("2024-01-31T08:00:00+02:00", "2024-01-31T06:00:00+00:00"),
    ],
)
def test_as_of_is_a_date_or_a_time_in_utc(text: str, instant: str) -> None:
    """A date is its first instant; an offset is applied."""
    assert show.instant(text).isoformat() == instant


@pytest.mark.parametrize(
    "text",
    [
        *("yesterday", "2024-1-1", "2024-13-01", "2024-01-31T25:00", "20240131", "2024-01-31T"),
        *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00+01:00"),
    ],
)
def test_an_invalid_instant_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(typer.BadParameter):
        show.instant(text)


def test_rows_as_json_are_exact(printed: Printed, rows: DataFrame) -> None:
    """Decimals are strings and instants end in Z."""
    found = show.first_rows(rows, table="bronze", limit=1)
    printed.terminal.document(dict(zip(found.columns, found.rows[0], strict=True)))
    document: dict[str, Any] = json.loads(printed.out.getvalue())
    assert (document["amount"], document["created_at"]) == ("1234567890.10", "2024-07-01T08:00:00.000001Z")

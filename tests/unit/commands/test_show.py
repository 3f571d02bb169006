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

from app.commands import show
from app.commands.show import Rows
from app.errors import UsageError
from tests.unit.commands.conftest import Printed

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


def test_a_year_that_python_does_not_know_is_shown_all_the_same(rows: DataFrame) -> None:
    """Rows are shown even where an instant or a day lies beyond the year 9999."""
    created_at, date = show.first_rows(rows, table="bronze", where="id = 3").rows[0][3:5]
    assert created_at == "317273587200000000 microseconds after 1970"
    assert date == "+12024-01-01"


def test_there_is_more_is_said_only_if_there_is(rows: DataFrame) -> None:
    """One row more than asked for is looked at, and not shown."""
    two = show.first_rows(rows, table="bronze", limit=2)
    assert (len(two.rows), two.has_more) == (2, True)
    assert not show.first_rows(rows, table="bronze", limit=3).has_more


def test_rows_are_chosen_by_day_and_condition(rows: DataFrame) -> None:
    """--date asks for the day that the table is kept by; --where comes on top."""
    day = datetime.date(2024, 7, 1)
    assert [row[0] for row in show.first_rows(rows, table="bronze", date=day).rows] == [1]
    assert show.first_rows(rows, table="bronze", date=day, where="name = 'b'").rows == []


def test_a_table_without_days_cannot_be_asked_for_one(rows: DataFrame) -> None:
    """The line says which table has none."""
    with pytest.raises(UsageError, match="customers is not kept by day"):
        show.first_rows(rows.drop("date"), table="customers", date=datetime.date(2024, 7, 1))


@pytest.mark.parametrize("where", ["nmae = 'a'", "id =", "1 / (id - id) > 0", "id"])
def test_a_condition_that_makes_no_sense_is_one_line(
    rows: DataFrame, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown column, bad syntax, an error in a row and a condition that is none are told as wrong usage."""
    with pytest.raises(UsageError, match="--where") as raised:
        show.first_rows(rows, table="bronze", where=where)
    assert re.fullmatch(r"--where (['\"]).*\1: [A-Z][^\n]*[.)]", str(raised.value))
    assert "SQLSTATE" not in str(raised.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("where", [None, "id = 0"])
def test_a_version_that_was_vacuumed_is_said_to_be(spark: SparkSession, tmp_path: Path, where: str | None) -> None:
    """And what can still be read; nothing that was asked for is blamed for it."""
    for rows in (2, 3):
        spark.range(rows).write.format("delta").mode("overwrite").save(str(tmp_path))
        if rows == 2:
            old = list(tmp_path.glob("*.parquet"))
    for file in old:
        file.unlink()
    first = spark.read.format("delta").option("versionAsOf", 0).load(str(tmp_path))
    with pytest.raises(UsageError, match=r"^--version 0: files of customers .* are deleted, by --vacuum; [^\n]*$"):
        show.first_rows(first, table="customers", moment="--version 0", where=where)
    with pytest.raises((PySparkException, Py4JJavaError)):
        show.first_rows(first, table="customers")


def test_all_rows_may_be_asked_for(rows: DataFrame) -> None:
    """The largest limit that is taken is one that Spark can count to."""
    assert len(show.first_rows(rows, table="bronze", limit=show.MOST_ROWS).rows) == 3


def test_what_spark_refuses_without_a_condition_is_no_wrong_usage(rows: DataFrame) -> None:
    """Nobody is blamed for what they did not ask."""
    with pytest.raises(PySparkException), show.blamed_on(None):
        rows.where("1 / (id - id) > 0").collect()


def test_rows_are_shown_literally(printed: Printed) -> None:
    """Names and values cannot change the terminal; numbers are set to the right."""
    show.listing(printed.terminal, Rows(["id", HOSTILE], [[1, HOSTILE], [10, None]], has_more=True))
    assert printed.out.getvalue() == "id  [red]\\x1b[31mx\\n\n 1  [red]\\x1b[31mx\\n\n10  null\n"
    assert printed.err.getvalue() == "2 rows; there are more, see --limit\n"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-01-31", "2024-01-31T00:00:00+00:00"),
        ("2024-01-31T08:00", "2024-01-31T08:00:00+00:00"),
        ("2024-01-31 08:00:00.5Z", "2024-01-31T08:00:00.500000+00:00"),
        ("2024-01-31T08:00:00+02:00", "2024-01-31T06:00:00+00:00"),
    ],
)
def test_an_instant_is_a_day_or_a_time_in_utc_unless_it_says_otherwise(text: str, instant: str) -> None:
    """A day is its first moment; an offset is honoured."""
    assert show.instant(text).isoformat() == instant


@pytest.mark.parametrize(
    "text",
    [
        *("yesterday", "2024-1-1", "2024-13-01", "2024-01-31T25:00", "20240131", "2024-01-31T"),
        *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00+01:00"),
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    """Nothing is guessed at."""
    with pytest.raises(typer.BadParameter):
        show.instant(text)


def test_rows_as_json_are_exact(printed: Printed, rows: DataFrame) -> None:
    """In the document decimals are text and instants end in Z."""
    found = show.first_rows(rows, table="bronze", limit=1)
    printed.terminal.document(dict(zip(found.columns, found.rows[0], strict=True)))
    told: dict[str, Any] = json.loads(printed.out.getvalue())
    assert (told["amount"], told["created_at"]) == ("1234567890.10", "2024-07-01T08:00:00.000001Z")

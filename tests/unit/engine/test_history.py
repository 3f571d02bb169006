"""Which days a change of a history is about."""

import datetime

import pytest
from pyspark.sql import SparkSession

from spark_app.engine.history import Validity, effects, usual
from spark_app.warehouse.periods import Effect

SCHEMA = "meter string, customer string, valid_from date, valid_to date"
KEY = ("meter", "valid_from")
Row = tuple[str, str, int, int | None]


def date(day: int | None) -> datetime.date | None:
    """A day of a month."""
    return None if day is None else datetime.date(2024, 1, day)


@pytest.mark.parametrize(
    ("old", "new", "spans"),
    [
        ([("m", "a", 1, None)], [("m", "a", 1, None)], []),
        ([], [("m", "a", 5, None)], [("2024-01-05", "")]),
        ([("m", "a", 1, None)], [("m", "a", 1, 5), ("m", "b", 5, None)], [("2024-01-05", "")]),
        ([("m", "a", 1, None)], [("m", "b", 1, None)], [("2024-01-01", "")]),
        ([("m", "a", 1, 5), ("m", "b", 5, None)], [("m", "a", 1, None)], [("2024-01-05", "")]),
        ([("m", "a", 1, 5), ("m", "b", 5, 9)], [("m", "a", 1, 3), ("m", "b", 5, 9)], [("2024-01-03", "2024-01-04")]),
        (
            [("m", "a", 1, 3), ("n", "a", 1, 3)],
            [("m", "b", 1, 3), ("n", "a", 1, 3), ("o", "a", 7, 8)],
            [("2024-01-01", "2024-01-02"), ("2024-01-07", "2024-01-07")],
        ),
    ],
)
def test_a_change_is_about_the_days_for_which_other_rows_are_true(
    spark: SparkSession, old: list[Row], new: list[Row], spans: list[tuple[str, str]]
) -> None:
    """What a row says of other days stays as it was, whatever its end is now."""
    before, after = (
        spark.createDataFrame([(*row[:2], date(row[2]), date(row[3])) for row in rows], SCHEMA) for rows in (old, new)
    )
    found = effects(before, after, KEY, Validity("valid_from", "valid_to"), content="run")
    assert found == [Effect(first, last, "run") for first, last in spans]


def test_a_history_is_known_by_the_usual_names(spark: SparkSession) -> None:
    """Where both are times."""
    assert usual(spark.createDataFrame([], SCHEMA).schema) == ("valid_from", "valid_to")
    assert usual(spark.createDataFrame([], "valid_from string, valid_to date").schema) is None
    assert usual(spark.createDataFrame([], "valid_from date").schema) is None

"""The versions of a key without a value: nulls are equal, as in every state."""

import datetime

from pyspark.sql import SparkSession

from spark_app.engine.change_feed import ChangeFeed

DAYS = [datetime.date(2024, 1, day) for day in (1, 2)]


def test_a_change_ends_the_version_before_it_also_without_a_key(spark: SparkSession) -> None:
    """And leaves those of other keys alone."""
    schema = "id string, name string, since date"
    feed = ChangeFeed(["id"], ["since"], is_history=True)
    nothing = spark.createDataFrame([], f"{schema}, valid_from date, valid_to date, is_current boolean")
    first = spark.createDataFrame([(None, "a", DAYS[0]), ("k", "b", DAYS[0])], schema)
    known = feed.changes(first, nothing, nothing)
    found = feed.changes(spark.createDataFrame([(None, "c", DAYS[1])], schema), known, nothing)
    assert sorted(tuple(row) for row in found.select("name", "valid_from", "valid_to", "is_current").collect()) == [
        ("a", DAYS[0], DAYS[1], False),
        ("c", DAYS[1], None, True),
    ]

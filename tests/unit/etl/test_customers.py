import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from app.etl.customers import customer_versions, customers
from app.schemas import CUSTOMERS, RAW_CUSTOMERS


def at(day: int, hour: int = 0) -> datetime.datetime:
    """An instant of January 2024."""
    return datetime.datetime(2024, 1, day, hour, tzinfo=datetime.UTC)


SIGNED_UP = at(1)
FIRST: tuple[Any, ...] = ("c-0000001", "consumer", "DE", SIGNED_UP, at(3))
SECOND: tuple[Any, ...] = ("c-0000001", "vip", "DE", SIGNED_UP, at(5, 12))


def feed(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows as a feed brings them."""
    return spark.createDataFrame(list(rows), RAW_CUSTOMERS)


def history(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Rows as the table keeps them."""
    return spark.createDataFrame(list(rows), CUSTOMERS)


def test_a_change_ends_the_version_before(spark: SparkSession) -> None:
    """The first version holds from the sign-up on; each later one from its change until the next."""
    expected = history(spark, (*FIRST, SIGNED_UP, at(5, 12), False), (*SECOND, at(5, 12), None, True))
    assertDataFrameEqual(customer_versions(feed(spark, FIRST, SECOND)), expected)


@pytest.mark.parametrize("rows", [(FIRST, SECOND), (SECOND, FIRST), (SECOND, FIRST, SECOND, FIRST)])
def test_order_and_repetition_do_not_matter(spark: SparkSession, rows: tuple[tuple[Any, ...], ...]) -> None:
    """Late and repeated updates give the same history as updates in order."""
    assertDataFrameEqual(customer_versions(feed(spark, *rows)), customer_versions(feed(spark, FIRST, SECOND)))


def test_of_two_rows_of_one_instant_always_the_same_one_wins(spark: SparkSession) -> None:
    """Rows that contradict each other about one instant give one version, whichever comes first."""
    other = (*FIRST[:1], "business", *FIRST[2:])
    ahead, behind = customer_versions(feed(spark, FIRST, other)), customer_versions(feed(spark, other, FIRST))
    assert ahead.count() == 1
    assertDataFrameEqual(ahead, behind)


def test_a_late_update_changes_only_what_it_touches(spark: SparkSession) -> None:
    """An update that comes late is put between; versions that stay as they are, are not written again."""
    old = customer_versions(feed(spark, FIRST, SECOND))
    late = ("c-0000001", "business", "AT", SIGNED_UP, at(4))
    expected = history(spark, (*FIRST, SIGNED_UP, at(4), False), (*late, at(4), at(5, 12), False))
    assertDataFrameEqual(customers(old, feed(spark, late)), expected)


def test_a_repeated_feed_changes_nothing(spark: SparkSession) -> None:
    """What is known already is not written again."""
    assert customers(customer_versions(feed(spark, FIRST, SECOND)), feed(spark, SECOND)).count() == 0


def test_other_customers_are_left_alone(spark: SparkSession) -> None:
    """Only customers of the feed are looked at."""
    other = ("c-0000002", "vip", "FR", SIGNED_UP, at(2))
    changed = customers(customer_versions(feed(spark, other)), feed(spark, FIRST))
    assert [row.customer_id for row in changed.collect()] == ["c-0000001"]

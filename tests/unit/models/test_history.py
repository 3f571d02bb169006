import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spark_app.models import history
from spark_app.models.history import History, reach
from spark_app.models.inputs import in_days
from spark_app.spark.persisted import size_in_bytes
from spark_app.warehouse.tables import Warehouse
from tests import shop_rows
from tests.integration.home import Home

DAY = datetime.timedelta(days=1)
REFUNDS = "refund_events"
TODAY = datetime.date(2024, 1, 8)


@pytest.mark.parametrize(
    ("sales", "refunds", "until"),
    [
        ([-3, -2, -1], [-3, -2, -1], 0),
        ([-2, -1, 0, 5], [-1, 0], 0),
        ([-2], [-1], -1),
        ([-1], [-9], -8),
        ([-1], [], None),
        ([0, 1], [-1], None),
    ],
)
def test_the_table_that_ends_first_says_how_far_the_history_of_a_request_reaches(
    sales: Sequence[int], refunds: Sequence[int], until: int | None
) -> None:
    """Up to the start of the day of the request, however far the tables go on; before that it is stale."""
    published = [[TODAY + age * DAY for age in ages] for ages in (sales, refunds)]
    assert reach(published, TODAY) == (TODAY, None if until is None else TODAY + until * DAY, until != 0)


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession) -> Warehouse:
    """Two days of refunds."""
    found = Home(tmp_path, spark).warehouse
    found.create(shop_rows.refunded(spark, shop_rows.FIRST, shop_rows.FIRST + DAY, rows=300), REFUNDS, "refunds")
    return found


@pytest.fixture
def asked() -> Iterator[History]:
    """The history that a test asks; it leaves nothing persisted."""
    found = History([REFUNDS])
    yield found
    found.unpersist()


def rows(asked: History, warehouse: Warehouse, *, days: int) -> DataFrame:
    """What a micro-batch gets of the first days."""
    asked.look(warehouse)
    return asked.rows((shop_rows.FIRST, shop_rows.FIRST + (days - 1) * DAY))[REFUNDS]


def is_persisted(rows: DataFrame) -> bool:
    """Whether rows are read from where they were persisted."""
    return rows.storageLevel != StorageLevel.NONE


def test_rows_of_days_that_are_asked_for_again_are_persisted_until_there_is_a_new_version(
    warehouse: Warehouse, asked: History
) -> None:
    """Days within them are answered by them, and other days that are asked for once do not replace them."""
    given = [rows(asked, warehouse, days=days) for days in (2, 2, 1, 9, 2)]
    assert [is_persisted(each) for each in given] == [False, True, True, False, True]
    before = given[1].count()
    assert before == in_days(given[0], "refunded_date", shop_rows.FIRST, shop_rows.FIRST + DAY).count() > 0
    warehouse.append(shop_rows.refunded(warehouse.spark, shop_rows.FIRST, rows=300, seed=8), REFUNDS)
    newer = rows(asked, warehouse, days=2)
    assert not is_persisted(given[1])
    assert newer.count() > before
    assert asked.reach([shop_rows.FIRST + 2 * DAY])[0].is_stale is False


def test_nothing_stays_persisted_at_the_end(warehouse: Warehouse, asked: History) -> None:
    """The session outlives the query."""
    rows(asked, warehouse, days=2)
    kept = rows(asked, warehouse, days=2)
    assert is_persisted(kept)
    asked.unpersist()
    assert not is_persisted(kept)


def test_more_bytes_than_the_bound_are_not_persisted(
    warehouse: Warehouse, asked: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are those of the files of the days that are asked for."""
    one_day = rows(asked, warehouse, days=1).where(f"refunded_date = '{shop_rows.FIRST}'")
    monkeypatch.setattr(history, "PERSISTED_BYTES", size_in_bytes(one_day))
    assert [is_persisted(rows(asked, warehouse, days=days)) for days in (2, 2, 2)] == [False] * 3
    assert [is_persisted(rows(asked, warehouse, days=days)) for days in (1, 1)] == [False, True]

"""What the tables hold: sizes of amounts, customers as they were, versions of a key, totals, and replays."""

import shutil
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql.types import DoubleType, FloatType

from spark_app.execution.pipelines import declared_tables
from tests.integration.home import DAY, Home, customer, sale

NEXT_DAY = date(2024, 1, 2)
NOON = "2024-01-01T12:00:00.000000Z"
AFTERNOON = {"created_at": "2024-01-01T15:00:00.000000Z", "updated_at": "2024-01-01T15:00:00.000000Z"}
AT_NOON = "2024-01-01 12:00:00"
BEFORE = customer(1)
AFTER = customer(1, segment="vip", country="FR", updated_at=NOON)
SALES = [
    sale(1, amount="99.99"),
    sale(2, amount="100.00"),
    sale(3, amount="999.99", **AFTERNOON),
    sale(4, amount="1000.00", status="pending", customer_id="c-0000002"),
    sale(5, amount="0.01", status="failed"),
    sale(6, amount="0.01", status="refunded"),
    sale(7, amount="20.10", updated_at="2024-01-01T09:00:00.000000Z"),
    sale(7, amount="20.30", updated_at="2024-01-01T10:00:00.000000Z"),
    sale(7, amount="-1.00", updated_at="2024-01-01T11:00:00.000000Z"),
    sale(7, amount="20.30", updated_at="2024-01-01T10:00:00.000000Z"),
    sale(8, amount="30.40", customer_id="c-0000002"),
]


@pytest.fixture(scope="module")
def sold(new_home: Callable[[str], Home]) -> Home:
    """A day of a few sales; one customer changes at noon."""
    home = new_home("sold")
    home.forgive()
    home.deliver("customers", [AFTER, BEFORE, customer(2)])
    home.deliver("transactions", SALES)
    home.run()
    return home


def test_sizes_of_amounts_have_exact_bounds(sold: Home) -> None:
    """Below 100 is small, from 100 on medium, from 1000 on large."""
    sizes = sold.rows("transactions", "amount", "amount_category", where="amount > 99 OR amount < 1")
    assert [(str(amount), size) for amount, size in sizes] == [
        ("0.01", "small"),
        ("0.01", "small"),
        ("99.99", "small"),
        ("100.00", "medium"),
        ("999.99", "medium"),
        ("1000.00", "large"),
    ]


def test_a_sale_has_its_customer_as_of_then(sold: Home) -> None:
    """A sale of the morning sees the customer before the change at noon, one of the afternoon the one after."""
    seen = sold.rows("transactions", "customer_segment", "customer_country", where="amount IN (99.99, 999.99)")
    assert seen == [("consumer", "DE"), ("vip", "FR")]


def test_the_later_valid_version_of_a_key_wins(sold: Home) -> None:
    """Of the versions of a key the valid one with the latest updated_at is published; an invalid one hides none."""
    assert sold.rows("transactions", "amount", where="transaction_id LIKE '%7'") == [(Decimal("20.30"),)]
    assert sold.rows("quarantine", "violations") == [(["amount.range"],)]


def test_totals_are_of_completed_and_pending_sales_only(sold: Home) -> None:
    """The totals count no failed and no refunded sale, and are exact to the cent."""
    totals = sold.rows(
        "daily_sales",
        *("amount_category", "status", "transaction_count", "total_amount", "avg_amount", "unique_customers"),
    )
    assert totals == [
        ("large", "pending", 1, Decimal("1000.00"), Decimal("1000.00"), 1),
        ("medium", "completed", 2, Decimal("1099.99"), Decimal("550.00"), 1),
        ("small", "completed", 3, Decimal("150.69"), Decimal("50.23"), 2),
    ]


def test_the_processed_date_is_that_of_the_run(sold: Home) -> None:
    """What is published carries the date that was asked for, not that of a clock."""
    for name in ("transactions", "daily_sales"):
        assert {row[0] for row in sold.rows(name, "processed_date")} == {DAY}


def test_money_is_never_a_float() -> None:
    """No column of any table is a binary fraction, unless it is a ratio or a probability."""
    columns = [(table.name, field.name, field.dataType) for table in declared_tables() for field in table.schema]
    fractions = [name for _, name, kind in columns if isinstance(kind, FloatType | DoubleType)]
    assert [name for name in fractions if not name.endswith(("_ratio", "probability"))] == []
    decimals = {name for _, name, kind in columns if kind.typeName() == "decimal"}
    assert decimals == {"amount", "total_amount", "avg_amount", "spent"}


def test_a_late_customer_lands_in_its_place_and_replay_sees_it(home: Home) -> None:
    """A change that comes after a later one is put between; repeated feeds change nothing; a replay needs no raw file.

    The sale of the unknown customer was quarantined; the replay, with the raw folder gone, publishes it.
    """
    home.forgive()
    home.deliver("customers", [AFTER, customer(2)])
    home.deliver("transactions", [*SALES, sale(9, customer_id="c-0000003")])
    home.run()
    assert home.rows("transactions", "customer_segment", where="amount = 99.99") == [("vip",)]
    assert (["customer_id.known"],) in home.rows("quarantine", "violations")

    late = customer(1, segment="business", updated_at="2024-01-01T06:00:00.000000Z")
    home.deliver("customers", [late, BEFORE, customer(2), customer(3)], date=NEXT_DAY)
    moved = {"created_at": "2024-01-02T20:00:00Z", "updated_at": "2024-01-02T20:00:00Z"}
    home.deliver("transactions", [sale(10, **moved)], date=NEXT_DAY)
    home.run(NEXT_DAY)
    columns = ("string(valid_from)", "string(valid_to)", "segment", "is_current")
    versions = home.rows("customers", *columns, where="customer_id LIKE '%1'")
    six = "2024-01-01 06:00:00"
    assert versions == [
        ("2020-01-01 00:00:00", six, "consumer", False),
        (six, AT_NOON, "business", False),
        (AT_NOON, None, "vip", True),
    ]

    once = home.content("customers")
    shutil.rmtree(home.folder / "raw")
    home.run(DAY, replay=True)
    assert home.content("customers") == once
    assert home.rows("transactions", "customer_segment", where="amount = 99.99") == [("business",)]
    assert len(home.rows("transactions", "amount", where="customer_id = 'c-0000003'")) == 1
    assert home.rows("quarantine", "violations") == [(["amount.range"],)]


def test_a_replay_without_raw_files_changes_nothing(sold: Home, tmp_path: Path) -> None:
    """A day that is read from bronze is published the same to the last byte, and quarantines the same rows."""
    home = sold.copied(tmp_path / "home")
    shutil.rmtree(home.folder / "raw")
    home.run(replay=True)
    assert home.content() == sold.content()

"""Customers over the days: each snapshot is the one before it and the changes of its day."""

import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from app.demo.customers import customer_count
from app.demo.ledger import Day
from app.demo.shop import day_folder, write_day
from tests.unit.demo.recount import Row, faults_of, read_rows, recounted

FIRST: Final = datetime.date(2023, 12, 1)
DAYS: Final = 70
ROWS: Final = 4_000
ATTRIBUTES: Final = ("segment", "country")

Snapshots = dict[datetime.date, dict[str, Row]]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten weeks of the shop."""
    folder = tmp_path_factory.mktemp("raw")
    formats = {"transactions": "parquet"}
    for number in range(DAYS):
        write_day(folder, Day(date=FIRST + datetime.timedelta(number), rows=ROWS, seed=3, formats=formats))
    return folder


@pytest.fixture(scope="module")
def snapshots(raw: Path) -> Snapshots:
    """The customers of each day, of each the version that was updated last."""
    days = [FIRST + datetime.timedelta(number) for number in range(DAYS)]
    return {day: recounted(raw, "customers", day).published("customer_id") for day in days}


def test_every_day_has_all_customers(snapshots: Snapshots) -> None:
    """No customer comes, goes or is missing because of a fault."""
    everyone = {f"c-{number:07}" for number in range(1, customer_count(ROWS) + 1)}
    assert all(set(snapshot) == everyone for snapshot in snapshots.values())


def test_faulty_rows_have_ids_of_their_own(raw: Path, snapshots: Snapshots) -> None:
    """No customer and no transaction has such an id."""
    rows = [row for _, row in read_rows(day_folder(raw, "customers", FIRST), "customers") if row is not None]
    faulty = [row["customer_id"] for row in rows if list(faults_of(row, "customers", FIRST, None, "EUR"))]
    sold_to = set(recounted(raw, "transactions", FIRST).rows_of)
    assert len(set(faulty)) == len(faulty) == 3
    assert not set(faulty) & (set(snapshots[FIRST]) | sold_to)


def test_a_customer_changes_only_on_the_day_of_its_updated_at(snapshots: Snapshots) -> None:
    """On two consecutive days a customer is equal, or was updated on the second."""
    for (_, before), (day, after) in pairwise(snapshots.items()):
        for customer, row in after.items():
            if row["updated_at"] == before[customer]["updated_at"]:
                assert row == before[customer]
            else:
                assert row["updated_at"][:10] == day.isoformat()
                assert [row[name] for name in ATTRIBUTES] != [before[customer][name] for name in ATTRIBUTES]
                assert row["signed_up_at"] == before[customer]["signed_up_at"]


def test_about_one_customer_in_thirty_changes_per_day(snapshots: Snapshots) -> None:
    """Every day."""
    changes = [sum(row["updated_at"][:10] == str(day) for row in rows.values()) for day, rows in snapshots.items()]
    assert sum(changes) / len(changes) / customer_count(ROWS) == pytest.approx(1 / 30, rel=0.2)


def test_an_older_version_equals_an_earlier_snapshot(raw: Path, snapshots: Snapshots) -> None:
    """Of the same customer."""
    known = {(customer, row["updated_at"]): row for rows in snapshots.values() for customer, row in rows.items()}
    later = list(snapshots)[60:]
    older = [
        row
        for day in later
        for rows in recounted(raw, "customers", day).by_key("customer_id").values()
        for _, row in rows
        if row != snapshots[day][row["customer_id"]]
    ]
    assert older
    assert all(known[row["customer_id"], row["updated_at"]] == row for row in older)


def test_customers_sign_up_before_anything_else(snapshots: Snapshots) -> None:
    """Before their first transaction and before any change."""
    for day, rows in snapshots.items():
        assert all(row["signed_up_at"] < row["updated_at"] < f"{day}T24" for row in rows.values())
    assert max(row["signed_up_at"] for row in snapshots[FIRST].values()) < "2011-11-01"

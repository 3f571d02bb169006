"""What a made day holds: the ledger is compared with a recount of the files by plain Python."""

import datetime
import hashlib
import tracemalloc
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pytest

from app.demo import customers, transactions
from app.demo.ledger import Ledger, read_ledger
from app.demo.shop import FIRST_DATE, LOCK, day_folder, write_day
from app.schemas import RAW_CUSTOMERS, RAW_TRANSACTIONS
from spark_app.errors import UsageError
from tests.unit.demo.recount import Recount, beyond_three_sigma, recounted

DATE: Final = datetime.date(2024, 1, 1)
FORMATS: Final = ("json", "json.gz", "csv", "parquet")


def made(folder: Path, *, rows: int = 1_000, seed: int = 1, kind: str = "json") -> dict[str, Ledger]:
    """A day whose both sources are of one format."""
    return write_day(folder, date=DATE, rows=rows, seed=seed, formats={"transactions": kind, "customers": kind})


def digests(folder: Path) -> dict[str, str]:
    """A digest of every file under a folder, hidden ones too."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def both(folder: Path) -> tuple[Recount, Recount]:
    """Transactions and customers of a day, recounted."""
    people = recounted(folder, "customers", DATE)
    return recounted(folder, "transactions", DATE, customers=set(people.published("customer_id"))), people


@dataclass(frozen=True)
class Day:
    """A generated day: its ledgers, and a recount of its files."""

    ledgers: dict[str, Ledger]
    transactions: Recount
    customers: Recount


@pytest.fixture(scope="module", params=FORMATS)
def day(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A small generated day in each format."""
    folder = tmp_path_factory.mktemp("raw")
    return Day(made(folder, rows=1_000, kind=request.param), *both(folder))


@pytest.fixture(scope="module")
def large_day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A larger generated day, whose values are those of every format."""
    folder = tmp_path_factory.mktemp("raw")
    return Day(made(folder, rows=20_000), *both(folder))


def test_the_ledger_of_transactions_equals_a_recount(day: Day) -> None:
    """Every count of the ledger equals that of a reader of the files."""
    ledger, found = day.ledgers["transactions"], day.transactions
    recount = {
        "rows": found.rows,
        "valid": len(found.published("transaction_id")),
        "quarantined": found.rows - len(found.valid),
        "duplicates": len(found.valid) - len(found.published("transaction_id")),
        "exact_duplicates": found.exact_duplicates("transaction_id"),
        "older_versions": found.older_versions("transaction_id"),
        "malformed": found.faults["malformed"],
        "nulls": {column: found.faults[f"null:{column}"] for column in transactions.NULLED},
        "wrong_type": {column: found.faults[f"type:{column}"] for column in ("amount", "quantity", "created_at")},
        "negative_amounts": found.faults["negative"],
        "outliers": sum(row_amount > 20_000 for row_amount in amounts(found)),
        "unknown_status": found.faults["unknown:status"],
        "unknown_segment": 0,
        "unknown_customer": found.faults["unknown:customer_id"],
        "other_day": found.faults["other_day"],
        "other_currency": found.faults["currency"],
        "hot_key": found.rows_of.most_common(1)[0][0],
        "hot_key_rows": found.rows_of.most_common(1)[0][1],
    }
    assert {name: getattr(ledger, name) for name in recount} == recount
    assert sum(found.faults.values()) == ledger.quarantined


def test_the_ledger_of_customers_equals_a_recount(day: Day) -> None:
    """Every count of the ledger equals that of a reader of the files."""
    ledger, found = day.ledgers["customers"], day.customers
    recount = {
        "rows": found.rows,
        "valid": len({(row["customer_id"], row["updated_at"]) for _, row in found.valid}),
        "quarantined": found.rows - len(found.valid),
        "duplicates": found.exact_duplicates("customer_id"),
        "exact_duplicates": found.exact_duplicates("customer_id"),
        "older_versions": found.older_versions("customer_id"),
        "malformed": found.faults["malformed"],
        "nulls": {"segment": found.faults["null:segment"]},
        "wrong_type": {"updated_at": found.faults["type:updated_at"]},
        "unknown_segment": found.faults["unknown:segment"],
    }
    assert {name: getattr(ledger, name) for name in recount} == recount
    assert sum(found.faults.values()) == ledger.quarantined


def test_every_row_is_accounted_for_and_has_at_most_one_fault(day: Day) -> None:
    """Rows = valid + quarantined + duplicates, and no row is counted under two reasons."""
    for ledger in day.ledgers.values():
        assert ledger.rows == ledger.valid + ledger.quarantined + ledger.duplicates
        removed = 0 if ledger.source == "customers" else ledger.older_versions
        assert ledger.duplicates == ledger.exact_duplicates + removed
    assert (day.transactions.most_faults, day.customers.most_faults) == (1, 1)


def test_every_kind_of_fault_is_planted(day: Day) -> None:
    """From 1,000 rows on no kind is missing; Parquet alone cannot hold text faults."""
    for source, others in (("transactions", {"unknown_segment"}), ("customers", set())):
        ledger = msgspec.to_builtins(day.ledgers[source])
        kinds = {"exact_duplicates", "older_versions", "unknown_segment"} - others
        if source == "transactions":
            kinds |= {"negative_amounts", "outliers", "unknown_status", "unknown_customer", "other_day"}
            kinds |= {"other_currency", "hot_key_rows"}
        assert {kind for kind in kinds if not ledger[kind]} == set()
        assert sum(ledger["nulls"].values()) > 0
        is_text = ledger["format"] != "parquet"
        assert (ledger["malformed"] > 0, sum(ledger["wrong_type"].values()) > 0) == (is_text, is_text)


def test_only_outliers_are_beyond_three_sigma(large_day: Day) -> None:
    """Among all valid rows, and among the published ones."""
    ledgers, found = large_day.ledgers, large_day.transactions
    published = [Decimal(row["amount"]) for row in found.published("transaction_id").values()]
    assert beyond_three_sigma(published) == ledgers["transactions"].outliers
    assert beyond_three_sigma(amounts(found)) == ledgers["transactions"].outliers
    normal = [amount for amount in amounts(found) if amount <= 1_800]
    assert len(normal) + ledgers["transactions"].outliers == len(found.valid)
    assert min(normal) >= 5
    assert beyond_three_sigma(normal) == 0


def amounts(found: Recount) -> list[Decimal]:
    """The amounts of all valid rows."""
    return [Decimal(row["amount"]) for _, row in found.valid]


def test_a_day_is_spread_over_its_hours(large_day: Day) -> None:
    """Rows are updated after they were created, most are created in the evening, and the newest in the last hour."""
    found = large_day.transactions
    rows = list(found.published("transaction_id").values())
    assert all(row["created_at"] < row["updated_at"] for row in rows)
    assert max(row["created_at"] for row in rows)[:14] == f"{DATE}T23:"
    hours = [sum(row["created_at"][11:13] == f"{hour:02}" for row in rows) for hour in range(24)]
    assert hours.index(max(hours)) in (18, 19, 20)
    assert all(hours)


def test_amounts_come_in_fixed_proportions(large_day: Day) -> None:
    """Half of the sales are small, 35 % medium, 15 % large."""
    found = large_day.transactions
    values = amounts(found)
    shares = [
        sum(amount < 100 for amount in values) / len(values),
        sum(100 <= amount < 1_000 for amount in values) / len(values),
    ]
    assert shares == pytest.approx([0.50, 0.35], abs=0.01)


def test_the_later_version_of_a_key_is_the_later_state(large_day: Day) -> None:
    """Pending, then completed; either may come first in the file, and the amount may change."""
    found = large_day.transactions
    pairs = [
        sorted((row for _, row in rows), key=lambda row: row["updated_at"])
        for rows in found.by_key("transaction_id").values()
        if len({text for text, _ in rows}) == 2
    ]
    assert {(older["status"], newer["status"]) for older, newer in pairs} == {("pending", "completed")}
    assert all(older["updated_at"] < newer["updated_at"] for older, newer in pairs)
    assert {older["amount"] == newer["amount"] for older, newer in pairs} == {True, False}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    """Two makings of a day are alike to the byte, names and ledgers included; another seed gives other rows."""
    ledgers = made(tmp_path / "first", kind=kind)
    assert made(tmp_path / "second", kind=kind) == ledgers
    assert digests(tmp_path / "first") == digests(tmp_path / "second")
    made(tmp_path / "other", kind=kind, seed=2)
    first, other = digests(tmp_path / "first"), digests(tmp_path / "other")
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)


def test_the_rows_of_a_seed_never_change(tmp_path: Path) -> None:
    """What a seed gives is the same on every machine and in every version; change it knowingly."""
    made(tmp_path, rows=60_000)
    made_before = {
        "customers/date=2024-01-01/part-00000.json": "2de7ee4bc79f6241",
        "transactions/date=2024-01-01/part-00000.json": "7c9cb0b7f81af599",
    }
    assert {name: digest[:16] for name, digest in digests(tmp_path).items() if name in made_before} == made_before


@pytest.mark.parametrize("source", ["transactions", "customers"])
def test_the_ledger_is_written_beside_the_files(tmp_path: Path, source: str) -> None:
    """Under a name that Spark ignores."""
    ledgers = made(tmp_path)
    folder = day_folder(tmp_path, source, DATE)
    assert read_ledger(folder) == ledgers[source]
    assert sorted(path.name for path in folder.iterdir()) == ["_ledger.json", "part-00000.json"]


def test_a_file_has_at_most_a_million_rows(tmp_path: Path) -> None:
    """A duplicate may be in another file than its original."""
    reported: list[int] = []
    formats = {"transactions": "parquet", "customers": "parquet"}
    write_day(tmp_path, date=DATE, rows=1_000_001, seed=1, formats=formats, progress=reported.append)
    parts = sorted(day_folder(tmp_path, "transactions", DATE).glob("part-*"))
    assert [path.name for path in parts] == ["part-00000.parquet", "part-00001.parquet"]
    assert [pa.parquet.read_metadata(path).num_rows for path in parts] == [1_000_000, 1]
    assert sum(reported) == 1_000_001
    assert max(reported) <= 50_000


@pytest.mark.parametrize("rows", [1, 2, 7, 99, 100, 333, 999])
def test_the_smallest_days_are_complete(tmp_path: Path, rows: int) -> None:
    """Any number of rows is possible; the newest is of the last hour."""
    ledgers = made(tmp_path, rows=rows)
    found, _ = both(tmp_path)
    assert (found.rows, len(found.published("transaction_id"))) == (rows, ledgers["transactions"].valid)
    assert max(row["created_at"] for _, row in found.valid)[:14] == f"{DATE}T23:"


def test_hot_rows_are_parseable_rows(tmp_path: Path) -> None:
    """A hot row that is malformed or lost its customer is not counted."""
    ledger = made(tmp_path, rows=100_000)["transactions"]
    assert ledger.hot_key == "c-0000001"
    assert ledger.hot_key_rows == both(tmp_path)[0].rows_of["c-0000001"] == pytest.approx(5_000, rel=0.05)


def test_the_shop_has_its_own_currency(tmp_path: Path) -> None:
    """The configured currency is the normal one, and another one the fault."""
    formats = {"transactions": "json", "customers": "json"}
    ledger = write_day(tmp_path, date=DATE, rows=2_000, seed=1, formats=formats, currency="USD")["transactions"]
    found = recounted(tmp_path, "transactions", DATE, currency="USD")
    assert found.faults["currency"] == ledger.other_currency == 2


def test_generated_columns_are_those_of_the_raw_schemas() -> None:
    """In their order."""
    assert transactions.SCHEMA.names == RAW_TRANSACTIONS.names
    assert customers.SCHEMA.names == RAW_CUSTOMERS.names


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Four times the rows take no more memory: one chunk is held at a time."""
    small, large = (peak_bytes(tmp_path / str(rows), rows) for rows in (100_000, 400_000))
    assert large < small * 1.05


def peak_bytes(folder: Path, rows: int) -> int:
    """The most bytes that Python, numpy and Arrow held while a day was generated."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        made(folder, rows=rows)
        return tracemalloc.get_traced_memory()[1] + int(pool.max_memory())
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def test_each_day_has_other_transactions(tmp_path: Path) -> None:
    """The seed is that of the shop: what is sold depends on the day, too."""
    formats = {"transactions": "json", "customers": "csv"}
    days = [DATE, DATE + datetime.timedelta(1), DATE + datetime.timedelta(2)]
    for day in days:
        write_day(tmp_path, date=day, rows=100, seed=1, formats=formats)
    assert [read_ledger(day_folder(tmp_path, "transactions", day)).date for day in days] == days
    assert len(set(digests(tmp_path / "transactions").values())) == 6


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rows": 0}, "rows"),
        ({"date": FIRST_DATE - datetime.timedelta(1)}, "2011-12-31"),
        ({"formats": {"transactions": "json", "customers": "xml"}}, "customers"),
        ({"formats": {"customers": "json"}}, "transactions"),
    ],
)
def test_an_impossible_day_is_refused(tmp_path: Path, wrong: dict[str, object], named: str) -> None:
    """A wrong argument is named in one line, and nothing is written."""
    good = {"date": DATE, "rows": 10, "seed": 1, "formats": {"transactions": "json", "customers": "json"}}
    with pytest.raises(UsageError, match=named):
        write_day(tmp_path / "raw", **{**good, **wrong})  # type: ignore[arg-type]
    assert not (tmp_path / "raw").exists()

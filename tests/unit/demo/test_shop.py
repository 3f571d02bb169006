"""What a made day holds, compared with a recount by plain Python; and it appears whole or not at all."""

import datetime
import hashlib
import resource
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pytest

from app.demo import ledger
from app.demo.ledger import LEDGER_NAME, Ledger, read_ledger
from app.demo.shop import FIRST_DATE, GENERATORS, LOCK, SOURCES, day_folder, write_day
from app.schemas import RAW_CUSTOMERS, RAW_REFUNDS, RAW_TRANSACTIONS
from spark_app.errors import MachineError, UsageError
from tests.unit.demo.recount import Recount, beyond_three_sigma, recounted

Ledgers = dict[str, Ledger]

DATE: Final = datetime.date(2024, 1, 1)
FORMATS: Final = ("json", "csv", "parquet")


def made(folder: Path, *, rows: int = 1_000, seed: int = 1, kind: str = "json", currency: str = "EUR") -> Ledgers:
    """A day whose sources are of one format."""
    formats = dict.fromkeys(SOURCES, kind)
    return write_day(folder, ledger.Day(date=DATE, rows=rows, seed=seed, currency=currency, formats=formats))


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
    """A generated day: its format, its ledgers, and a recount of its files."""

    kind: str
    ledgers: Ledgers
    transactions: Recount
    customers: Recount


@pytest.fixture(scope="module", params=FORMATS)
def day(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A small generated day in each format."""
    folder = tmp_path_factory.mktemp("raw")
    return Day(request.param, made(folder, rows=1_000, kind=request.param), *both(folder))


@pytest.fixture(scope="module")
def large_day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A larger generated day, whose values are those of every format."""
    folder = tmp_path_factory.mktemp("raw")
    return Day("json", made(folder, rows=20_000), *both(folder))


@pytest.mark.parametrize(("source", "key"), [("transactions", "transaction_id"), ("customers", "customer_id")])
def test_the_ledger_equals_a_recount(day: Day, source: str, key: str) -> None:
    """Every count of the ledger equals that of a reader of the files; of customers, each version is published."""
    counted, found = day.ledgers[source], getattr(day, source)
    exact, older = found.exact_duplicates(key), found.older_versions(key)
    removed = exact if source == "customers" else exact + older
    counts = (found.rows, len(found.valid) - removed, found.rows - len(found.valid), removed)
    assert (counted.rows, *counted.parts.values()) == counts
    planted = found.faults + Counter({"exact_duplicate": exact, "older_version": older})
    if source == "transactions":
        planted["outlier"] = sum(amount > 20_000 for amount in amounts(found))
    assert +Counter(counted.planted) == planted
    assert found.most_faults == 1


def test_every_kind_of_fault_is_planted(day: Day) -> None:
    """From 1,000 rows on no kind is missing; Parquet alone cannot hold text faults."""
    for counted in (day.ledgers["transactions"], day.ledgers["customers"]):
        missing = {kind for kind, count in counted.planted.items() if not count}
        in_text = {kind for kind in counted.planted if kind == "malformed" or kind.startswith("wrong_type_")}
        assert missing == (in_text if day.kind == "parquet" else set())


def test_only_outliers_are_beyond_three_sigma(large_day: Day) -> None:
    """Among all valid rows, and among the published ones."""
    ledgers, found = large_day.ledgers, large_day.transactions
    published = [Decimal(row["amount"]) for row in found.published("transaction_id").values()]
    outliers = ledgers["transactions"].planted["outlier"]
    assert beyond_three_sigma(published) == beyond_three_sigma(amounts(found)) == outliers
    normal = [amount for amount in amounts(found) if amount <= 1_800]
    assert len(normal) + outliers == len(found.valid)
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
        "customers/date=2024-01-01/part-00000.json": "f9a1ef42e4b80e11",
        "transactions/date=2024-01-01/part-00000.json": "81e0cc9d1002c40d",
    }
    assert {name: digest[:16] for name, digest in digests(tmp_path).items() if name in made_before} == made_before


@pytest.mark.parametrize("source", SOURCES)
def test_the_ledger_is_written_beside_the_files(tmp_path: Path, source: str) -> None:
    """Under a name that Spark ignores."""
    ledgers = made(tmp_path)
    folder = day_folder(tmp_path, source, DATE)
    assert read_ledger(folder / LEDGER_NAME) == ledgers[source]
    assert sorted(path.name for path in folder.iterdir()) == ["_ledger.json", "part-00000.json"]


def test_a_file_has_at_most_a_million_rows(tmp_path: Path) -> None:
    """A duplicate may be in another file than its original."""
    reported: list[int] = []
    formats = dict.fromkeys(SOURCES, "parquet")
    write_day(tmp_path, ledger.Day(date=DATE, rows=1_000_001, seed=1, formats=formats), progress=reported.append)
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
    assert (found.rows, len(found.published("transaction_id"))) == (rows, ledgers["transactions"].parts["valid"])
    assert max(row["created_at"] for _, row in found.valid)[:14] == f"{DATE}T23:"


def test_one_customer_is_hot(tmp_path: Path) -> None:
    """One in twenty rows is theirs, as of a reseller or a test account."""
    made(tmp_path, rows=20_000)
    [(hot, rows)] = both(tmp_path)[0].rows_of.most_common(1)
    assert hot == "c-0000001"
    assert 900 < rows < 1_100


def test_the_shop_has_its_own_currency(tmp_path: Path) -> None:
    """The configured currency is the normal one, and another one the fault."""
    planted = made(tmp_path, rows=2_000, currency="USD")["transactions"].planted
    found = recounted(tmp_path, "transactions", DATE, currency="USD")
    assert found.faults["other_currency"] == planted["other_currency"] == 2


def test_generated_columns_are_those_of_the_raw_schemas() -> None:
    """In their order."""
    day = ledger.Day(date=DATE)
    generated = [next(iter(generator(day).chunks())).rows.schema.names for generator in GENERATORS]
    assert generated == [RAW_CUSTOMERS.names, RAW_TRANSACTIONS.names, RAW_REFUNDS.names]


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
    for number in range(3):
        write_day(tmp_path, ledger.Day(date=DATE + datetime.timedelta(number), rows=100, seed=1))
    assert len(set(digests(tmp_path / "transactions").values())) == 6


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rows": 0}, "rows"),
        ({"date": FIRST_DATE - datetime.timedelta(1)}, "2011-12-31"),
    ],
)
def test_an_impossible_day_is_refused(tmp_path: Path, wrong: dict[str, object], named: str) -> None:
    """A wrong argument is named in one line, and nothing is written."""
    day = msgspec.structs.replace(ledger.Day(date=DATE), **wrong)
    with pytest.raises(UsageError, match=named):
        write_day(tmp_path / "raw", day)
    assert not (tmp_path / "raw").exists()


def hidden(folder: Path) -> list[Path]:
    """What is left of drafts."""
    return [path for path in folder.rglob(".*") if path.name != LOCK]


def test_a_day_replaces_an_earlier_one(tmp_path: Path) -> None:
    """All files of the earlier one go, whatever state they are in."""
    made(tmp_path / "raw", seed=1, kind="csv")
    part = day_folder(tmp_path / "raw", "transactions", DATE) / "part-00000.csv"
    part.write_bytes(part.read_bytes()[:-100])
    made(tmp_path / "raw", seed=2, kind="json")
    made(tmp_path / "fresh", seed=2, kind="json")
    assert digests(tmp_path / "raw") == digests(tmp_path / "fresh")
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("lost", SOURCES)
def test_a_lost_source_is_generated_beside_the_others(tmp_path: Path, lost: str) -> None:
    """The sources that are there stay untouched, as somebody may be reading them."""
    day = ledger.Day(date=DATE, seed=1)
    write_day(tmp_path, day)
    before = digests(tmp_path)
    shutil.rmtree(day_folder(tmp_path, lost, DATE))
    files = {path: path.stat().st_ino for path in tmp_path.rglob("part-*")}
    assert list(write_day(tmp_path, day, replace=False)) == [lost]
    assert digests(tmp_path) == before
    assert {path: path.stat().st_ino for path in files} == files


def test_several_processes_take_turns(tmp_path: Path) -> None:
    """Each ends without an error, and each source is whole and of one of them."""
    seeds = (1, 2, 3, 1)
    whole = {seed: tmp_path / "fresh" / str(seed) for seed in seeds}
    for seed, folder in whole.items():
        made(folder, seed=seed)
    with ThreadPoolExecutor(len(seeds)) as threads:
        list(threads.map(lambda seed: made(tmp_path / "raw", seed=seed), seeds * 3))
    for source in SOURCES:
        assert digests(tmp_path / "raw" / source) in [digests(folder / source) for folder in whole.values()]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_writer_changes_nothing(tmp_path: Path, reason: type[BaseException]) -> None:
    """The earlier day stays, and no draft is left."""
    made(tmp_path)
    before = digests(tmp_path)

    def interrupt(rows: int) -> None:
        raise reason

    with pytest.raises(reason):
        write_day(tmp_path, ledger.Day(date=DATE, seed=2), progress=interrupt)
    assert digests(tmp_path) == before
    assert hidden(tmp_path) == []


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    """One line says which folder and why."""
    (tmp_path / "file").touch()
    with pytest.raises(MachineError) as caught:
        made(tmp_path / "file" / "raw")
    assert str(caught.value) == f"cannot create folder {tmp_path / 'file' / 'raw'}: Not a directory"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_write_that_is_refused_changes_nothing(tmp_path: Path, kind: str) -> None:
    """One line says why, the earlier day stays, and no draft is left."""
    made(tmp_path, kind=kind)
    before = digests(tmp_path)
    with files_of_at_most(30_000), pytest.raises(MachineError) as caught:
        made(tmp_path, rows=20_000, seed=2, kind=kind)
    assert str(caught.value) == f"cannot write {tmp_path}: File too large"
    assert digests(tmp_path) == before
    assert hidden(tmp_path) == []


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit of the operating system on what this process may write, as a quota is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("leftover", [".date=2024-01-01.draft", ".date=2024-01-01.replaced"])
def test_what_a_killed_process_left_is_repaired(tmp_path: Path, leftover: str) -> None:
    """A draft that was never published, or a day that was moved away and not yet replaced."""
    made(tmp_path)
    whole = digests(tmp_path)
    target = day_folder(tmp_path, "transactions", DATE)
    target.rename(target.with_name(leftover))
    made(tmp_path)
    assert digests(tmp_path) == whole
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("lost", "added"),
    [("_ledger.json", None), (None, "late.json"), (None, "part-1.json"), (None, ".keep"), (None, "more/a.json")],
)
def test_a_generated_day_is_replaced_and_other_data_is_kept(
    tmp_path: Path, lost: str | None, added: str | None, source: str
) -> None:
    """Files without a ledger, and any file that is not generated, are somebody's data."""
    made(tmp_path, rows=100, seed=7)
    made(tmp_path, rows=100, seed=8)
    folder = tmp_path / source / "date=2024-01-01"
    if lost:
        (folder / lost).unlink()
    if added:
        (folder / added).parent.mkdir(exist_ok=True)
        (folder / added).write_text("{}")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    named = added.partition("/")[0] if added else "part-00000.json"
    with pytest.raises(UsageError, match=f"{folder / named} was not generated by spark-app and would be deleted: move"):
        made(tmp_path, rows=100, seed=9)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_checksums_of_hadoop_do_not_prevent_replacement(tmp_path: Path) -> None:
    """Hadoop writes them beside files that it copies; none is left afterwards."""
    made(tmp_path, rows=100, seed=7)
    checksum = tmp_path / "customers" / "date=2024-01-01" / ".part-00000.json.crc"
    checksum.touch()
    made(tmp_path, rows=100, seed=8)
    assert not checksum.exists()

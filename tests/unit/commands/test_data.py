import datetime
import json
from pathlib import Path

import pytest

from app.commands import data
from app.errors import ConfigError, UsageError
from app.samples.ledger import Ledger
from app.settings import Settings, load_settings
from tests.unit.commands.conftest import Printed

DAY = datetime.date(2024, 1, 1)


def ledger(source: str, day: datetime.date = DAY) -> Ledger:
    """A small ledger of one source."""
    return Ledger(
        source=source, date=day, seed=7, format="json", rows=1_000, valid=985, quarantined=10, duplicates=5,
        exact_duplicates=3, older_versions=2, malformed=4, nulls={"amount": 6, "status": 0}, wrong_type={},
    )  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of the project in an empty home folder."""
    return load_settings().model_copy(update={"home": tmp_path})


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/data/raw", "/data/raw"), ("file:/data/my%20raw", "/data/my raw"), ("file:///data/raw", "/data/raw")],
)
def test_a_folder_of_this_machine_may_be_a_path_or_a_uri(path: str, folder: str) -> None:
    """Both spellings name the same folder."""
    assert data.local_folder(path) == Path(folder)


@pytest.mark.parametrize("path", ["s3a://bucket/raw", "hdfs://host/raw", "file://host/raw"])
def test_elsewhere_no_days_are_made(path: str) -> None:
    """A place that only Spark can write to is refused by its name."""
    with pytest.raises(ConfigError, match=path):
        data.local_folder(path)


def test_a_day_is_made_with_its_ledger(printed: Printed, settings: Settings, tmp_path: Path) -> None:
    """Both sources are there afterwards, and the ledgers given are those written."""
    ledgers = data.made(settings, tmp_path, date=DAY, rows=100, seed=7, terminal=printed.terminal)
    written = [
        json.loads((tmp_path / source / "date=2024-01-01" / "_ledger.json").read_text()) for source in data.SOURCES
    ]
    assert [(one.source, one.rows) for one in ledgers] == [(one["source"], one["rows"]) for one in written]
    assert printed.err.getvalue() == "2024-01-01: made 100 transactions\n"


@pytest.mark.parametrize(
    ("lost", "added"),
    [("_ledger.json", None), (None, "late.json"), (None, "part-1.json"), (None, ".keep"), (None, "more/a.json")],
)
def test_a_day_that_was_made_is_made_again_and_a_real_one_is_left_alone(
    printed: Printed, settings: Settings, tmp_path: Path, lost: str | None, added: str | None
) -> None:
    """Files without a ledger beside them, and any that is not of a making, are somebody's data: nothing is changed."""
    data.made(settings, tmp_path, date=DAY, rows=100, seed=7, terminal=printed.terminal)
    data.made(settings, tmp_path, date=DAY, rows=100, seed=8, terminal=printed.terminal)
    folder = tmp_path / "customers" / "date=2024-01-01"
    if lost:
        (folder / lost).unlink()
    if added:
        (folder / added).parent.mkdir(exist_ok=True)
        (folder / added).write_text("{}")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    named = added.partition("/")[0] if added else "part-00000.json"
    with pytest.raises(UsageError, match=f"{folder / named} was not made by this program and would be deleted: move"):
        data.made(settings, tmp_path, date=DAY, rows=100, seed=9, terminal=printed.terminal)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_checksums_of_hadoop_are_in_nobodys_way(printed: Printed, settings: Settings, tmp_path: Path) -> None:
    """They are kept beside files that were copied; a new making leaves none of them."""
    data.made(settings, tmp_path, date=DAY, rows=100, seed=7, terminal=printed.terminal)
    checksum = tmp_path / "customers" / "date=2024-01-01" / ".part-00000.json.crc"
    checksum.touch()
    data.made(settings, tmp_path, date=DAY, rows=100, seed=8, terminal=printed.terminal)
    assert not checksum.exists()


def test_the_ledger_is_a_table_of_what_was_planted(printed: Printed) -> None:
    """A row per source and day, then a row per kind of fault, all days together; what nobody has is left out."""
    made = [ledger("transactions"), ledger("customers"), ledger("transactions", datetime.date(2024, 1, 2))]
    data.listing(printed.terminal, made, folder=Path("/raw"))
    assert printed.out.getvalue().splitlines() == [
        "",
        "date        source         rows  valid  quarantined  duplicates",
        "2024-01-01  transactions  1,000    985           10           5",
        "2024-01-01  customers     1,000    985           10           5",
        "2024-01-02  transactions  1,000    985           10           5",
        "",
        "planted                 transactions  customers",
        "malformed                          8          4",
        "exact duplicate                    6          3",
        "older version of a key             4          2",
        "null amount                       12          6",
        "",
        "transactions  /raw/transactions",
        "customers     /raw/customers",
    ]

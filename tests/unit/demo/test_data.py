import datetime
import json
from pathlib import Path

import pytest

from app.demo import data
from app.demo.ledger import Day, Ledger
from app.demo.shop import SOURCES
from spark_app import __main__ as program
from spark_app.errors import ConfigError
from tests.unit.conftest import Printed


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/data/raw", "/data/raw"), ("file:/data/my%20raw", "/data/my raw"), ("file:///data/raw", "/data/raw")],
)
def test_the_raw_folder_may_be_a_path_or_a_file_uri(path: str, folder: str) -> None:
    """Both name the same folder."""
    assert data.local_folder("raw.path", path) == Path(folder)


@pytest.mark.parametrize("path", ["s3a://bucket/raw", "hdfs://host/raw", "file://host/raw"])
def test_demo_data_needs_a_local_folder(path: str) -> None:
    """Any other URI is refused by name."""
    with pytest.raises(ConfigError, match=f"raw.path is {path}"):
        data.local_folder("raw.path", path)


def test_days_are_generated_with_their_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command: all sources are there afterwards, and the document has the ledgers that are written."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    assert program.run(["data", "--from", "2024-01-01", "--to", "2024-01-02", "--rows", "100", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    written = [
        json.loads((Path(document["folder"]) / source / f"date={date}" / "_ledger.json").read_text())
        for date in ("2024-01-01", "2024-01-02")
        for source in SOURCES
    ]
    assert document["ledgers"] == written
    assert printed.err.splitlines() == [f"2024-01-0{day}: generated 100 transactions" for day in (1, 2)]


def test_the_ledger_is_printed_as_tables(printed: Printed) -> None:
    """A row per source and day, then a row per kind of fault over all days; kinds that do not occur are left out."""
    planted = {"malformed": 10, "null_status": 0, "exact_duplicate": 3, "older_version": 2}

    def ledger(source: str, day: int, *parts: int, **planted: int) -> Ledger:
        by_part = dict(zip(data.PARTS, parts, strict=True))
        plan = Day(date=datetime.date(2024, 1, day))
        return Ledger(source=source, plan=plan, rows=sum(parts), parts=by_part, planted=planted)

    made = [ledger("transactions", day, 985, 10, 5, **planted) for day in (1, 2)]
    made.append(ledger("customers", 1, 990, 10, 0, malformed=10, older_version=5))
    made.append(ledger("refunds", 1, 40, 0, 0))
    data.listing(printed.terminal, made, folder=Path("/raw"))
    assert printed.out.getvalue().splitlines() == [
        "",
        "date        source         rows  valid  quarantined  duplicates",
        "2024-01-01  transactions  1,000    985           10           5",
        "2024-01-02  transactions  1,000    985           10           5",
        "2024-01-01  customers     1,000    990           10           0",
        "2024-01-01  refunds          40     40            0           0",
        "",
        "planted fault    transactions  customers",
        "malformed                  20         10",
        "exact_duplicate             6          0",
        "older_version               4          5",
        "",
        "transactions  /raw/transactions",
        "customers     /raw/customers",
        "refunds       /raw/refunds",
    ]

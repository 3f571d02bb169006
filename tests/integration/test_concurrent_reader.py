"""No version of the published tables, whenever somebody reads it, has a row of a day that was not audited."""

import json
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from spark_app.errors import QualityGateError
from tests.integration.home import DAY, Home, customer, sale
from tests.integration.processes import kill_when, make_quick

COLUMNS: Final = {
    "transactions": ("transaction_id", "amount"),
    "daily_sales": ("transaction_count", "total_amount"),
}
LATE: Final = {"created_at": "2024-01-01T23:00:00Z", "updated_at": "2024-01-01T23:00:00Z"}
Rows = list[tuple[str, ...]]


def versions_of(table: Path) -> dict[int, Rows]:
    """The rows of every version of a Delta table, read from its log and its files without Spark."""
    files: dict[str, None] = {}
    versions = {}
    for commit in sorted((table / "_delta_log").glob("[0-9]*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                files[unquote(action["add"]["path"])] = None
            if "remove" in action:
                files.pop(unquote(action["remove"]["path"]), None)
        versions[int(commit.stem)] = sorted(row for file in files for row in rows_of(table / file, table.name))
    return versions


@cache
def rows_of(file: Path, table: str) -> Rows:
    """Some columns of the rows of a data file, as text; a file never changes."""
    columns = pq.ParquetFile(file).read(list(COLUMNS[table])).to_pydict()
    return [tuple(map(str, values)) for values in zip(*columns.values(), strict=True)]


def deliver(home: Home, amounts: list[str]) -> None:
    """A day of sales with these amounts."""
    home.deliver("transactions", [sale(number, amount=amount, **LATE) for number, amount in enumerate(amounts)])


def published(amounts: list[str]) -> dict[str, Rows]:
    """What the tables hold of such a day."""
    return {
        "transactions": sorted((f"t-20240101-{number:07}", amount) for number, amount in enumerate(amounts)),
        "daily_sales": [(str(len(amounts)), f"{sum(map(float, amounts)):.2f}")],
    }


def test_a_reader_sees_audited_rows_only(home: Home, tmp_path: Path) -> None:
    """An undisturbed run, a rejected one, and one that is killed between its two tables and repeated.

    Each version of each table is empty or holds a day that was audited. After the kill the transactions are new and
    the totals those of the run before; the rerun makes both new.
    """
    first, outlier, corrected = ["10.00"] * 60, [*["11.00"] * 60, "50000.00"], ["12.00"] * 61
    make_quick(home)
    home.deliver("customers", [customer(1)])
    warehouse = Path(home.settings.warehouse_path)
    deliver(home, first)
    home.run()
    deliver(home, outlier)
    with pytest.raises(QualityGateError, match="outliers: 1 of 61"):
        home.run()
    deliver(home, corrected)
    kill_when(home, "transactions/_delta_log/*.json", stderr=tmp_path / "stderr")
    killed = {name: versions_of(warehouse / name).popitem()[1] for name in COLUMNS}
    assert killed == {**published(first), "transactions": published(corrected)["transactions"]}
    home.run(DAY)
    for name in COLUMNS:
        versions = versions_of(warehouse / name)
        allowed = [[], published(first)[name], published(corrected)[name]]
        assert {version: rows[:3] for version, rows in versions.items() if rows not in allowed} == {}
        assert versions[max(versions)] == published(corrected)[name]

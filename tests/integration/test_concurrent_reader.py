"""Somebody who reads the published tables all the time never sees a row of a day that was not audited."""

import json
import threading
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


class Reader:
    """A thread that reads every version of the published tables as soon as it is committed."""

    def __init__(self, warehouse: Path) -> None:
        """Begins to read."""
        self.seen: dict[str, dict[int, Rows]] = {name: {} for name in COLUMNS}
        self._warehouse, self._ended = warehouse, threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, dict[int, Rows]]:
        """Reads a last time; returns all versions by table."""
        self._ended.set()
        self._thread.join()
        self._look()
        return self.seen

    def _read(self) -> None:
        while not self._ended.wait(0.05):
            self._look()

    def _look(self) -> None:
        for name, versions in self.seen.items():
            versions.update(versions_of(self._warehouse / name))


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
    audited = [published(first), published(corrected)]
    make_quick(home)
    home.deliver("customers", [customer(1)])
    warehouse = Path(home.settings.warehouse_path)
    reader = Reader(warehouse)
    try:
        deliver(home, first)
        home.run()
        deliver(home, outlier)
        with pytest.raises(QualityGateError, match="outliers: 1 of 61"):
            home.run()
        deliver(home, corrected)
        kill_when(home, "transactions/_delta_log/*.json", stderr=tmp_path / "stderr")
        assert versions_of(warehouse / "transactions").popitem()[1] == published(corrected)["transactions"]
        assert versions_of(warehouse / "daily_sales").popitem()[1] == published(first)["daily_sales"]
        home.run(DAY)
    finally:
        seen = reader.stop()
    for name, versions in seen.items():
        allowed = [[], *(day[name] for day in audited)]
        assert {version: rows[:3] for version, rows in versions.items() if rows not in allowed} == {}
        assert versions[max(versions)] == published(corrected)[name]

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.demo.ledger import LEDGER_NAME, read_ledger
from spark_app.execution.pipelines import declared_tables
from spark_app.warehouse.tables import Warehouse

SMALL = "7m"
LARGE = "200m"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that a day does not fit on; needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def spark_app(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program as a user runs it, with everything it writes below a home folder."""
    command = [sys.executable, "-m", "spark_app", *arguments]
    return subprocess.run(
        command, env={**os.environ, "SPARK_APP_HOME": str(home)}, capture_output=True, text=True, check=False
    )


def rows(spark: SparkSession, home: Path, table: str) -> int:
    """The number of rows of a table; 0 if it was never made."""
    return Warehouse(spark, str(home / "data" / "warehouse"), declared_tables()).table(table).count()


def test_a_full_disk_is_told_in_one_line_and_nothing_is_half_published(disk: Path, spark: SparkSession) -> None:
    """The disk fills up in the middle of a run: exit code 2 and one line; with more space a rerun is right."""
    failed = spark_app(disk, "etl", "--date", "2024-01-01")
    errors = [line for line in failed.stderr.splitlines() if line.startswith("error:")]
    assert (failed.returncode, len(errors)) == (2, 1), failed.stderr
    assert "the disk is full" in errors[0]
    assert "Traceback" not in failed.stderr + failed.stdout

    subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(disk)], check=True)
    ledger = read_ledger(disk / "data" / "raw" / "transactions" / "date=2024-01-01" / LEDGER_NAME)
    assert rows(spark, disk, "daily_sales") == 0
    assert rows(spark, disk, "transactions") in (0, ledger.parts["valid"]), (
        "a table has the whole day, all of it audited, or none"
    )

    again = spark_app(disk, "etl", "--date", "2024-01-01")
    assert again.returncode == 0, again.stderr
    assert rows(spark, disk, "transactions") == ledger.parts["valid"]

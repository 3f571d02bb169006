import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.demo.ledger import read_ledger

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


def rows(home: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table; none if it was never made."""
    shown = spark_app(home, "show", table, "--json", "--limit", "100000")
    return json.loads(shown.stdout)["rows"] if shown.returncode == 0 else []


def test_a_full_disk_is_told_in_one_line_and_nothing_is_half_published(disk: Path) -> None:
    """The disk fills up in the middle of a run: exit code 2 and one line; with more space a rerun is right."""
    failed = spark_app(disk, "etl", "--date", "2024-01-01")
    errors = [line for line in failed.stderr.splitlines() if line.startswith("error:")]
    assert (failed.returncode, len(errors)) == (2, 1), failed.stderr
    assert "the disk is full" in errors[0]
    assert "Traceback" not in failed.stderr + failed.stdout

    subprocess.run(["mount", "-o", f"remount,size={LARGE}", str(disk)], check=True)
    ledger = read_ledger(disk / "data" / "raw" / "transactions" / "date=2024-01-01")
    assert rows(disk, "daily_sales") == []
    assert len(rows(disk, "transactions")) in (0, ledger.valid), "a table has the whole day, all of it audited, or none"

    again = spark_app(disk, "etl", "--date", "2024-01-01")
    assert again.returncode == 0, again.stderr
    assert len(rows(disk, "transactions")) == ledger.valid

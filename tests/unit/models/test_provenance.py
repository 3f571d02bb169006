import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_app.models import provenance

BASE = '''
"""What is known of a row."""
from shop_code import windows
from shop_code.windows import DAYS

FACTOR = 2

def ratio(value):
    """A share."""
    return value / FACTOR

def unused(value):
    return value

def inputs(rows):
    return ratio(windows.within(rows, DAYS))
'''
WINDOWS = """
DAYS = 2
LIMIT = 9

def within(rows, days):
    return rows[-days * LIMIT :]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of a user's own on the path, without modules."""
    (tmp_path / "shop_code").mkdir()
    (tmp_path / "shop_code" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "shop_code"
    forget()


def forget() -> None:
    """Has the modules of the package read anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_code"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def code(package: Path, base: str = BASE, windows: str = WINDOWS) -> str:
    """The code of the function `inputs`, with these modules."""
    (package / "base.py").write_text(base, encoding="utf-8")
    (package / "windows.py").write_text(windows, encoding="utf-8")
    forget()
    return provenance.code(importlib.import_module("shop_code.base").inputs)


def test_layout_and_comments_are_no_change_of_the_code(package: Path) -> None:
    """Neither are docstrings, and functions that are not used."""
    base = BASE.replace("FACTOR = 2", "# a comment\nFACTOR = (\n    2\n)").replace("A share.", "Another text.")
    base = base.replace("def unused(value):\n    return value", "def other(value):\n    return -value")
    assert code(package) == code(package, base)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("base", "value / FACTOR", "value // FACTOR"),
        ("base", "FACTOR = 2", "FACTOR = 3"),
        ("windows", "DAYS = 2", "DAYS = 3"),
        ("windows", "LIMIT = 9", "LIMIT = 8"),
        ("windows", "rows[-days", "rows[days"),
    ],
)
def test_a_change_of_what_a_function_uses_is_one_of_its_code(package: Path, module: str, old: str, new: str) -> None:
    """Functions and constants that it calls or names, through others and in other modules of its package."""
    before = code(package)
    assert before != code(package, **{module: {"base": BASE, "windows": WINDOWS}[module].replace(old, new)})


def test_a_declared_table_counts_by_its_rows(package: Path) -> None:
    """What makes it is not followed: its version says which rows it has."""
    table = (
        WINDOWS
        + "\nclass Table:\n    partition_by = ()\n\ndef rows(table):\n    return Table()\n\nSALES = rows(LIMIT)\n"
    )
    base = BASE.replace("windows.within(rows, DAYS)", "windows.within(rows, windows.SALES)")
    assert code(package, base, table) == code(package, base, table.replace("rows(LIMIT)", "rows(LIMIT + 1)"))

import datetime
from dataclasses import dataclass, field
from typing import Any

from app.commands import tables
from app.tables import HistoryEntry, TableFacts
from tests.unit.commands.conftest import Printed

NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
HISTORY = [
    HistoryEntry(version, NOON, "MERGE" if version else "CREATE TABLE", version or None) for version in range(7, -1, -1)
]
BRONZE = TableFacts("bronze", "s3a://shop/bronze", True, 7, 1_234, 5, 67_890, NOON, HISTORY)
MISSING = TableFacts("customers", "s3a://shop/customers", exists=False)


@dataclass
class Care:
    """Upkeep that only notes what it was asked to do."""

    asked: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> str:
        """Cares for one table."""
        self.asked.append(name)
        return f"{name}: done"


def test_tables_are_listed_with_what_is_known(printed: Printed) -> None:
    """A table that is not there yet is said to be so, with dashes and no place."""
    tables.listing(printed.terminal, [BRONZE, MISSING])
    assert printed.out.getvalue().splitlines() == [
        "table      version   rows  files      size  changed",
        "bronze           7  1,234      5  66.3 KiB  2024-01-01 12:00:00Z",
        "customers        -      -      -         -  not made yet",
        "",
        "table   version  at                    operation  rows",
        *[f"bronze        {version}  2024-01-01 12:00:00Z  MERGE         {version}" for version in range(7, 2, -1)],
        "",
        "bronze  s3a://shop/bronze",
    ]


def test_where_no_table_is_no_history_is_shown(printed: Printed) -> None:
    """Before the first run the list is all there is."""
    tables.listing(printed.terminal, [MISSING])
    assert printed.out.getvalue().splitlines()[2:] == [""]


def test_upkeep_cares_for_tables_that_are_there(printed: Printed) -> None:
    """Each step is done on each table; what is not made yet, and what has no versions, is left alone."""
    first, second = Care(), Care()
    view: Any = TableFacts("quarantine", "", exists=True)
    done = tables.upkeep([BRONZE, MISSING, view], [first, second], note=printed.terminal.note)
    assert (first.asked, second.asked) == (["bronze"], ["bronze"])
    assert done == ["bronze: done", "bronze: done"]
    assert printed.err.getvalue() == "bronze: done\nbronze: done\n"

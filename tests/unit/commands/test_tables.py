import datetime
from dataclasses import dataclass, field

from spark_app.commands import tables
from spark_app.warehouse.tables import HistoryEntry, TableFacts
from tests.unit.conftest import Printed

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


def test_tables_are_listed_with_their_facts(printed: Printed) -> None:
    """A table that does not exist yet has dashes and no path."""
    tables.listing(printed.terminal, [BRONZE, MISSING])
    assert printed.out.getvalue().splitlines() == [
        "table      version   rows  files      size  changed",
        "bronze           7  1,234      5  66.3 KiB  2024-01-01 12:00:00Z",
        "customers        -      -      -         -  not created yet",
        "",
        "table   version  at                    operation  rows",
        *[f"bronze        {version}  2024-01-01 12:00:00Z  MERGE         {version}" for version in range(7, 2, -1)],
        "",
        "bronze  s3a://shop/bronze",
    ]


def test_without_tables_no_history_is_shown(printed: Printed) -> None:
    """As before the first run."""
    tables.listing(printed.terminal, [MISSING])
    assert printed.out.getvalue().splitlines()[2:] == [""]


def test_maintenance_runs_each_step_on_each_table(printed: Printed) -> None:
    """And notes its result."""
    first, second = Care(), Care()
    done = tables.upkeep(["bronze", "customers"], [first, second], note=printed.terminal.note)
    assert (first.asked, second.asked) == (["bronze", "customers"], ["bronze", "customers"])
    assert done == ["bronze: done", "bronze: done", "customers: done", "customers: done"]
    assert printed.err.getvalue() == "".join(f"{line}\n" for line in done)

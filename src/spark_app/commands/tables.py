"""`spark-app tables`: tables, their history, and their maintenance."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.warehouse.tables import TableFacts

SAFE_DAYS: Final = 7
CHANGES_LISTED: Final = 5
RetainDays = Annotated[
    int | None,
    typer.Option(
        "--retain-days",
        metavar="N",
        min=SAFE_DAYS,
        help=f"With --vacuum: days that old versions stay readable, at least {SAFE_DAYS} (the default).",
    ),
]


def tables(
    *,
    optimize: Annotated[
        bool, typer.Option("--optimize", metavar="", help="Compact small files into larger ones.")
    ] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", metavar="", help="Delete files that no version of the last --retain-days needs.")
    ] = False,
    retain_days: RetainDays = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """List tables and their history; --optimize compacts them, --vacuum deletes old versions."""
    if retain_days is not None and not vacuum:
        raise UsageError("--retain-days requires --vacuum")
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.application import open_warehouse
    from spark_app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("starting Spark")
    with terminal, open_warehouse(settings, listener=terminal) as warehouse:
        steps: list[Callable[[str], object]] = [warehouse.optimize] if optimize else []
        if vacuum:
            steps.append(partial(warehouse.vacuum, retain_days=retain_days or SAFE_DAYS))
        done = upkeep(warehouse.existing(), steps, note=terminal.note) if steps else []
        facts = warehouse.facts()
    if json:
        terminal.answer(tables=facts, upkeep=done)
    else:
        listing(terminal, facts)


def upkeep(names: Sequence[str], steps: Sequence[Callable[[str], object]], *, note: Callable[[str], None]) -> list[str]:
    """Runs each maintenance step on each table and notes its result."""
    done = []
    for name in names:
        for step in steps:
            text = str(step(name))
            note(text)
            done.append(text)
    return done


def listing(terminal: "Terminal", tables: Sequence["TableFacts"]) -> None:
    """Prints each table, its last changes and its path."""
    terminal.table(
        ("table", "version", "rows", "files", "size", "changed"),
        [_facts(table) for table in tables],
        right=("version", "rows", "files", "size"),
    )
    changes = [_change(table.name, entry) for table in tables for entry in table.history[:CHANGES_LISTED]]
    if changes:
        terminal.line()
        headers = ("table", "version", "at", "operation", "rows")
        terminal.table(headers, changes, right=("version", "rows"))
    terminal.line()
    terminal.facts([(table.name, cells.shown_path(table.path)) for table in tables if table.exists])


def _facts(table: "TableFacts") -> list[str]:
    if not table.exists:
        return [table.name, *[formatting.UNKNOWN] * 4, "not created yet"]
    version, rows, files = (formatting.count(number) for number in (table.version, table.rows, table.files))
    return [table.name, version, rows, files, formatting.size(table.bytes), formatting.timestamp(table.last_change)]


def _change(name: str, entry: Any) -> list[str]:
    return [
        name,
        str(entry.version),
        formatting.timestamp(entry.at),
        cells.literal(entry.operation),
        formatting.count(entry.rows),
    ]

"""`spark-app tables`: the tables and their history, and their upkeep."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app import amounts
from app.commands import cells, options
from app.errors import UsageError

if TYPE_CHECKING:
    from app.commands.terminal import Terminal
    from app.tables import TableFacts

SAFE_DAYS: Final = 7
CHANGES_LISTED: Final = 5
RetainDays = Annotated[
    int | None,
    typer.Option(
        "--retain-days",
        metavar="N",
        min=SAFE_DAYS,
        help=f"With --vacuum: for how many days old versions stay readable; {SAFE_DAYS} (the default) or more.",
    ),
]


def tables(
    *,
    optimize: Annotated[bool, typer.Option("--optimize", metavar="", help="Join small files into large ones.")] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", metavar="", help="Delete files that no version of the last --retain-days needs.")
    ] = False,
    retain_days: RetainDays = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """List the tables and their history; --optimize and --vacuum keep them in shape."""
    if retain_days is not None and not vacuum:
        raise UsageError("--retain-days is for --vacuum: give both")
    # Spark is imported only now: --help and a wrong argument answer at once.
    from app import runner
    from app import tables as delta
    from app.commands.terminal import Terminal
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("asking Spark")
    with terminal, runner.spark(settings, watcher=terminal) as spark:
        steps: list[Callable[[str], str]] = [partial(delta.optimize, spark, settings)] if optimize else []
        if vacuum:
            steps.append(partial(delta.vacuum, spark, settings, retain_days=retain_days or SAFE_DAYS))
        done = upkeep(delta.made(spark, settings), steps, note=terminal.note) if steps else []
        found = delta.list_tables(spark, settings)
    if json:
        terminal.answer(tables=found, upkeep=done)
    else:
        listing(terminal, found)


def upkeep(names: Sequence[str], steps: Sequence[Callable[[str], str]], *, note: Callable[[str], None]) -> list[str]:
    """Does each step on each table, and tells what came of it."""
    done = []
    for name in names:
        for step in steps:
            text = step(name)
            note(text)
            done.append(text)
    return done


def listing(terminal: "Terminal", found: Sequence["TableFacts"]) -> None:
    """Prints what is known of each table, its last changes, and where it is."""
    terminal.table(
        ("table", "version", "rows", "files", "size", "changed"),
        [_facts(table) for table in found],
        right=("version", "rows", "files", "size"),
    )
    changes = [_change(table.name, entry) for table in found for entry in table.history[:CHANGES_LISTED]]
    if changes:
        terminal.line()
        headers = ("table", "version", "at", "operation", "rows")
        terminal.table(headers, changes, right=("version", "rows"))
    terminal.line()
    terminal.facts([(table.name, cells.place(table.path)) for table in found if table.exists])


def _facts(table: "TableFacts") -> list[str]:
    if not table.exists:
        return [table.name, *[amounts.UNKNOWN] * 4, "not made yet"]
    version, rows, files = (amounts.count(number) for number in (table.version, table.rows, table.files))
    return [table.name, version, rows, files, amounts.size(table.bytes), amounts.moment(table.last_change)]


def _change(name: str, entry: Any) -> list[str]:
    return [
        name,
        str(entry.version),
        amounts.moment(entry.at),
        cells.literal(entry.operation),
        amounts.count(entry.rows),
    ]

"""`spark-app plan`: what a change of a project does to its tables, before it is merged."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_app.commands import options
from spark_app.errors import FailOnError
from spark_app.formatting import duration, quantity

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.forecast import Forecast
    from spark_app.execution.plan import Plan, State, Table

STYLES: Final[Mapping[str, str]] = {
    "breaking": "bold red",
    "rows may differ": "yellow",
    "columns added": "cyan",
    "checked differently": "cyan",
    "new": "green",
    "gone": "magenta",
    "unknown": "magenta",
    "unchanged": "dim",
}
INDENT: Final = "  "
LISTED: Final = ("new", "unchanged")


class FailOn(StrEnum):
    """The least that a table must be for the command to fail."""

    breaking = "breaking"
    rows = "rows"


FAILS: Final[Mapping[FailOn, Sequence["State"]]] = {
    FailOn.breaking: ("breaking", "gone"),
    FailOn.rows: ("breaking", "gone", "rows may differ", "unknown"),
}


def plan(
    *,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="End with exit code 5 if a table is breaking or gone; rows: also if rows may differ or are unknown.",
        ),
    ] = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show what the code, as it is now, changes in the tables that are there, and what follows; starts no Spark."""
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.plan import of_project
    from spark_app.settings import load_settings

    terminal, settings = Terminal(), load_settings(config)
    found = of_project(settings)
    document = _document(found, settings.warehouse_path)
    if not json:
        show(found, terminal, settings.warehouse_path)
    failed = [each.table for each in found.tables if fail_on and each.state in FAILS[fail_on]]
    if fail_on and failed:
        raise FailOnError(f"--fail-on {fail_on}: {', '.join(failed)}", document)
    if json:
        terminal.answer(**document)


def _document(found: "Plan", warehouse: str) -> dict[str, Any]:
    return {
        "warehouse": warehouse,
        "tables": found.tables,
        "everywhere": found.everywhere,
        "not_compared": found.not_compared,
        "also_read": found.also_read,
        "again": found.again,
    }


def show(found: "Plan", terminal: "Terminal", warehouse: str) -> None:
    """Prints the tables that are other ones as a tree, each below the first table that it follows; then the rest."""
    terminal.line(f"{quantity(len(found.tables), 'table')} beside {warehouse}", style="bold")
    for text in found.everywhere:
        terminal.line(f"all tables: {text}", style=STYLES["rows may differ"])
    _tree(found, terminal)
    terminal.line()
    for state in LISTED:
        if names := [each.table for each in found.tables if _is_listed(each) and each.state == state]:
            terminal.line(f"{state}: {', '.join(names)}", style=STYLES[state])
    _again(found.again, terminal)
    for name, read in found.also_read.items():
        terminal.line(f"{name} reads {', '.join(read)}, and is not compared itself")
    if found.not_compared:
        terminal.line(
            f"not compared, since no function of the project makes them: {', '.join(found.not_compared)}",
            style=STYLES["unchanged"],
        )


def _again(found: Sequence["Forecast"], terminal: "Terminal") -> None:
    """Prints what it takes to write days again."""
    from spark_app.execution.forecast import together

    if not found:
        return
    whole = together(found)
    terminal.line()
    terminal.line(f"to write the days again{f': {_span(*whole)}' if whole else ''}, without the start of Spark:")
    for each in found:
        is_known = each.low_seconds is not None and each.high_seconds is not None
        time = _span(each.low_seconds or 0, each.high_seconds or 0) if is_known else "it is not known how long"
        runs = f"by {quantity(each.runs, 'run')} that are kept here" if is_known else "too few runs are kept here"
        terminal.line(
            f"{INDENT}{each.pipeline}: {quantity(each.days, 'day')}, {time}{', ' if is_known else ': '}{runs}"
        )


def _span(low: float, high: float) -> str:
    return f"{duration(low * 1000)} to {duration(high * 1000)}"


def _is_listed(table: "Table") -> bool:
    """Whether there is nothing to say of a table but its state."""
    return table.state == "new" or (table.state == "unchanged" and not table.reasons)


def _tree(found: "Plan", terminal: "Terminal") -> None:
    shown = {each.table: each for each in found.tables if not _is_listed(each)}
    below: dict[str, list[str]] = {}
    for table in shown.values():
        parent = next((name for name in table.follows if name in shown), None)
        below.setdefault(parent or "", []).append(table.table)

    def branch(name: str, depth: int) -> None:
        _print(shown[name], terminal, depth)
        for each in below.get(name, ()):
            branch(each, depth + 1)

    for name in below.get("", ()):
        terminal.line()
        branch(name, 0)


def _print(table: "Table", terminal: "Terminal", depth: int) -> None:
    before = INDENT * depth
    columns = f" ({', '.join(table.columns)})" if table.columns else ""
    terminal.line(f"{before}{table.table}: {table.state}{columns}", style=STYLES[table.state])
    for reason in table.reasons:
        terminal.line(f"{before}{INDENT}- {reason}")

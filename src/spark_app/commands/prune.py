"""`spark-app prune`: deletes event logs, reports, runs, tunings and logs of Spark beyond their retention."""

import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_app import formatting
from spark_app.commands import cells, options

if TYPE_CHECKING:
    from spark_app.observe.retention import Expired


def prune(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Delete nothing, and list what would be deleted.")
    ] = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Delete event logs, reports, runs, tunings and logs of Spark beyond the age and size that `retention` allows."""
    from spark_app.commands.terminal import Terminal
    from spark_app.observe import retention
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    waits = "another process deletes what has expired; waiting for it"
    found = retention.prune(settings, is_dry_run=dry_run, on_wait=lambda: terminal.note(waits))
    if json:
        terminal.answer(dry_run=dry_run, deleted=[_document(each) for each in found])
        return
    if not found:
        terminal.line("nothing to delete")
        return
    if dry_run:
        rows = [_row(each) for each in found]
        terminal.table(list(rows[0]), [list(row.values()) for row in rows], right=("size",))
    terminal.line(f"{'would delete' if dry_run else 'deleted'} {retention.summary(found)}", style="bold")


def _written(each: "Expired") -> datetime.datetime:
    return datetime.datetime.fromtimestamp(each.stored.modified, datetime.UTC).replace(microsecond=0)


def _row(each: "Expired") -> dict[str, str]:
    stored = each.stored
    return {
        "what": stored.kind,
        "where": cells.shown_path(stored.path),
        "size": formatting.size(stored.bytes),
        "last written": cells.iso(_written(each)),
        "why": each.reason,
    }


def _document(each: "Expired") -> dict[str, Any]:
    stored = each.stored
    return {
        "kind": stored.kind,
        "path": str(stored.path),
        "bytes": stored.bytes,
        "modified": _written(each),
        "reason": each.reason,
    }

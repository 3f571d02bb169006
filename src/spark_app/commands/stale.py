"""`spark-app stale`: the days of tables that were made of what has changed since."""

from typing import TYPE_CHECKING, Final

from spark_app.commands import options

if TYPE_CHECKING:
    from spark_app.runs.run_record import StaleDay

HEADERS: Final = ("table", "day", "what has changed since")


def stale(*, json: options.Json = False, config: options.Config = None) -> None:
    """Show which days of which tables were made of what has changed since; starts no Spark."""
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.stale import of_project, summary
    from spark_app.settings import load_settings

    terminal, found = Terminal(), of_project(load_settings(config))
    if json:
        terminal.answer(stale=found)
    elif not found:
        terminal.line("Nothing was made of what has changed since.")
    else:
        terminal.table(HEADERS, [_row(each) for each in found], is_prose=True)
        terminal.note(str(summary(found)))


def _row(found: "StaleDay") -> list[str]:
    return [found.table, str(found.day), "; ".join(found.reasons)]

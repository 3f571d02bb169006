"""`spark-app streaming`: runs streaming queries until they are stopped, and shows how they get on."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app import formatting
from spark_app.commands import options
from spark_app.commands.etl import perform, summarize
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from spark_app.commands.stream_terminal import StreamTerminal
    from spark_app.execution.stream_reset import Deletion
    from spark_app.settings import Settings

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Queries to run, such as events; all if none is named."),
]
Named = Annotated[list[str], typer.Argument(metavar="NAME", help="Queries, such as events.")]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", metavar="", help="Read all that is there now, then end.")
]
Seconds = Annotated[
    float | None, typer.Option("--for", parser=options.span, metavar="TIME", help="End after 90s, 5m, 2h or 1d.")
]
Yes = Annotated[bool, typer.Option("--yes", metavar="", help="Delete without asking.")]
OLD: Final = {
    "--status": "spark-app streaming status",
    "--reset": "spark-app streaming reset NAME...",
    "--from": "spark-app streaming seek NAME... --to PLACE",
}
"""Options of `spark-app streaming` of before, and the command that each is now."""


def require_new_form(arguments: Sequence[str]) -> None:
    """Refuses an option that is a command by now.

    Raises:
        UsageError: There is one; the message names the command.
    """
    for argument in arguments:
        if (new := OLD.get(argument.partition("=")[0])) is not None:
            raise UsageError(f"{argument.partition('=')[0]} is a command now: {new}")


def _opened(config: "Path | None") -> tuple["Settings", "StreamTerminal"]:
    """The configuration, and where the command answers; neither starts Spark."""
    from spark_app.commands.stream_terminal import StreamTerminal
    from spark_app.settings import load_settings

    return load_settings(config), StreamTerminal()


def streaming(
    names: Names = None,
    *,
    available_now: AvailableNow = False,
    seconds: Seconds = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run streaming queries until Ctrl-C, and show how each gets on."""
    from spark_app.commands.stream_terminal import summary
    from spark_app.execution.streams import run_streams
    from spark_app.execution.supervisor import StopCondition

    settings, terminal = _opened(config)
    stop_condition = StopCondition(is_draining=available_now, seconds=seconds)
    job = partial(run_streams, settings, names or (), stop_condition, listener=terminal)
    perform(job, terminal=terminal, is_json=json, show=partial(summarize, table=summary))


def status(*, json: options.Json = False, config: options.Config = None) -> None:
    """Show the queries that run now, of any process; start none."""
    from spark_app.runs import stream_status

    settings, terminal = _opened(config)
    statuses = stream_status.running(settings.runs_path)
    if json:
        terminal.answer(queries=statuses)
    elif statuses:
        terminal.status(statuses)
    else:
        terminal.line("no streaming query runs; start them with `spark-app streaming`")


def reset(names: Named, *, yes: Yes = False, json: options.Json = False, config: options.Config = None) -> None:
    """Start queries over: delete their tables and checkpoints."""
    from spark_app.execution import stream_reset

    settings, terminal = _opened(config)

    def confirm(deletions: Sequence["Deletion"]) -> bool:
        terminal.end_wait()
        for each in deletions:
            terminal.note(f"{each.query} loses:")
            for folder, rows in each.tables.items():
                terminal.note(f"  {formatting.quantity(rows, 'row')} of {folder}")
            terminal.note(f"  {each.checkpoint or 'no checkpoint: it has never run'}")
        return yes or terminal.confirmed("Delete this? [y/N] ")

    terminal.wait("starting Spark")
    with terminal:
        deleted = stream_reset.reset(settings, names, confirm, listener=terminal)
    if json:
        terminal.answer(deleted=deleted)
    else:
        terminal.line("the next start reads from the beginning" if deleted else "nothing was deleted")


def seek(
    names: Named,
    *,
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help="TOPIC:PARTITION:OFFSET, or a time.")],
    yes: Yes = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Let queries begin elsewhere at their next start; their tables stay."""
    from spark_app.execution import stream_position

    settings, terminal = _opened(config)

    def confirm(checkpoints: Mapping[str, str]) -> bool:
        terminal.end_wait()
        for query, checkpoint in checkpoints.items():
            terminal.note(f"{query} loses its offsets and its state, and keeps its tables: {checkpoint}")
        terminal.note(f"it begins at {to}; records from there on that it has read before are written again")
        return yes or terminal.confirmed("Delete this? [y/N] ")

    terminal.wait("starting Spark")
    with terminal:
        is_done = stream_position.start_at(settings, names, to, confirm, listener=terminal)
    if json:
        terminal.answer(start=to if is_done else None)
    else:
        terminal.line(f"the next start reads from {to}" if is_done else "nothing was deleted")


def skip(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query that leaves the record out.")],
    record: Annotated[str, typer.Argument(metavar="RECORD", help="TOPIC:PARTITION:OFFSET.")],
    *,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Let a query leave a record out, which becomes a dead letter."""
    from spark_app.execution import stream_position

    settings, terminal = _opened(config)
    skipped = stream_position.record_position(record)
    terminal.wait("starting Spark")
    with terminal:
        name = stream_position.skip(settings, query, skipped, listener=terminal)
    if json:
        terminal.answer(query=name, skipped=record)
    else:
        terminal.line(f"{name} leaves out {record} from its next start on; the record is in the table dead_letters")


def replay(*, json: options.Json = False, config: options.Config = None) -> None:
    """Send the dead letters that parse by now to their topics again."""
    from spark_app.engine import dead_letters
    from spark_app.execution import pipelines
    from spark_app.execution.application import open_warehouse

    settings, terminal = _opened(config)
    terminal.wait("starting Spark")
    with terminal, open_warehouse(settings, listener=terminal) as warehouse:
        replayed = dead_letters.replay(warehouse, settings, pipelines.topics())
    if json:
        terminal.answer(replayed=replayed)
        return
    for topic, letters in replayed.sent.items():
        terminal.line(f"{topic}: sent {formatting.quantity(letters, 'dead letter')} again")
    for topic, letters in replayed.malformed.items():
        terminal.line(
            f"{topic}: {formatting.quantity(letters, 'dead letter')} still malformed: spark-app show dead_letters"
        )
    if not replayed.sent and not replayed.malformed:
        terminal.line("no dead letter waits")


SUBCOMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "streaming run": streaming,
    "streaming status": status,
    "streaming reset": reset,
    "streaming seek": seek,
    "streaming skip": skip,
    "streaming replay": replay,
}
"""Further commands of queries; `streaming` alone is `streaming run`."""

"""`spark-app streaming`: runs streaming queries until they are stopped, and shows how they get on."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app import formatting
from spark_app.commands import options
from spark_app.commands.etl import perform, summarize
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.commands.stream_terminal import StreamTerminal
    from spark_app.execution.stream_reset import Deletion
    from spark_app.settings import Settings

REPLAY: Final = "replay"
SKIP: Final = "skip"


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Queries to run, such as events; all if none is named. replay: send dead letters again. "
        "skip QUERY TOPIC:PARTITION:OFFSET: leave a record out.",
    ),
]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", metavar="", help="Read all that is there now, then end.")
]
Seconds = Annotated[
    float | None, typer.Option("--for", parser=options.span, metavar="TIME", help="End after 90s, 5m, 2h or 1d.")
]
Status = Annotated[
    bool, typer.Option("--status", metavar="", help="Show the queries that run now, of any process; start none.")
]
Reset = Annotated[
    bool,
    typer.Option("--reset", metavar="", help="Start the named queries over: delete their tables and checkpoints."),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="PLACE",
        help="Let the named queries begin at TOPIC:PARTITION:OFFSET or a time; their tables stay.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", metavar="", help="With --reset or --from: delete without asking.")]


def streaming(  # noqa: PLR0913 - an argument for each option
    names: Names = None,
    *,
    available_now: AvailableNow = False,
    seconds: Seconds = None,
    status: Status = False,
    reset: Reset = False,
    start: Start = None,
    yes: Yes = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run streaming queries until Ctrl-C, and show how each gets on."""
    from spark_app.commands.stream_terminal import StreamTerminal
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), StreamTerminal()
    if status:
        show_status(settings, terminal, is_json=json)
    elif names == [REPLAY]:
        send_again(settings, terminal, is_json=json)
    elif names and names[0] == SKIP:
        leave_out(settings, names[1:], terminal, is_json=json)
    elif reset and start is not None:
        raise UsageError("--reset reads from the beginning, --from from another place: name one of them")
    elif start is not None:
        start_at(settings, names or (), start, terminal, is_agreed=yes, is_json=json)
    elif reset:
        start_over(settings, names or (), terminal, is_agreed=yes, is_json=json)
    else:
        run(settings, names or (), terminal, is_draining=available_now, seconds=seconds, is_json=json)


def run(
    settings: "Settings",
    names: Sequence[str],
    terminal: "StreamTerminal",
    *,
    is_draining: bool,
    seconds: float | None,
    is_json: bool,
) -> None:
    """Runs queries, and shows how they get on."""
    from spark_app.commands.stream_terminal import summary
    from spark_app.execution.streams import run_streams
    from spark_app.execution.supervisor import StopCondition

    stop_condition = StopCondition(is_draining=is_draining, seconds=seconds)
    job = partial(run_streams, settings, names, stop_condition, listener=terminal)
    perform(job, terminal=terminal, is_json=is_json, show=partial(summarize, table=summary))


def show_status(settings: "Settings", terminal: "StreamTerminal", *, is_json: bool) -> None:
    """Prints the queries that run now, with their last micro-batch."""
    from spark_app.runs import stream_status

    statuses = stream_status.running(settings.runs_path)
    if is_json:
        terminal.answer(queries=statuses)
    elif statuses:
        terminal.status(statuses)
    else:
        terminal.line("no streaming query runs; start them with `spark-app streaming`")


def start_over(
    settings: "Settings", names: Sequence[str], terminal: "StreamTerminal", *, is_agreed: bool, is_json: bool
) -> None:
    """Shows what starting queries over deletes, asks, and deletes it."""
    from spark_app.execution.stream_reset import reset

    def confirm(deletions: Sequence["Deletion"]) -> bool:
        terminal.end_wait()
        for each in deletions:
            terminal.note(f"{each.query} loses:")
            for folder, rows in each.tables.items():
                terminal.note(f"  {formatting.quantity(rows, 'row')} of {folder}")
            terminal.note(f"  {each.checkpoint or 'no checkpoint: it has never run'}")
        return is_agreed or terminal.confirmed("Delete this? [y/N] ")

    terminal.wait("starting Spark")
    with terminal:
        deleted = reset(settings, names, confirm, listener=terminal)
    if is_json:
        terminal.answer(deleted=deleted)
    else:
        terminal.line("the next start reads from the beginning" if deleted else "nothing was deleted")


def start_at(
    settings: "Settings",
    names: Sequence[str],
    start: str,
    terminal: "StreamTerminal",
    *,
    is_agreed: bool,
    is_json: bool,
) -> None:
    """Shows what starting queries elsewhere deletes, asks, and lets them start there."""
    from spark_app.execution import stream_position

    def confirm(checkpoints: Mapping[str, str]) -> bool:
        terminal.end_wait()
        for query, checkpoint in checkpoints.items():
            terminal.note(f"{query} loses its offsets and its state, and keeps its tables: {checkpoint}")
        terminal.note(f"it begins at {start}; records from there on that it has read before are written again")
        return is_agreed or terminal.confirmed("Delete this? [y/N] ")

    terminal.wait("starting Spark")
    with terminal:
        is_done = stream_position.start_at(settings, names, start, confirm, listener=terminal)
    if is_json:
        terminal.answer(start=start if is_done else None)
    else:
        terminal.line(f"the next start reads from {start}" if is_done else "nothing was deleted")


def leave_out(settings: "Settings", words: Sequence[str], terminal: "StreamTerminal", *, is_json: bool) -> None:
    """Makes a record a dead letter of a query, which leaves it out."""
    from spark_app.execution import stream_position

    if len(words) != 2:
        raise UsageError("skip needs a query and a record: `spark-app streaming skip events user_events:0:17`")
    query, record = words
    skipped = stream_position.record_position(record)
    terminal.wait("starting Spark")
    with terminal:
        name = stream_position.skip(settings, query, skipped, listener=terminal)
    if is_json:
        terminal.answer(query=name, skipped=record)
    else:
        terminal.line(f"{name} leaves out {record} from its next start on; the record is in the table dead_letters")


def send_again(settings: "Settings", terminal: "StreamTerminal", *, is_json: bool) -> None:
    """Sends the dead letters that parse by now to their topics, and prints how many."""
    from spark_app.engine.replay import replay
    from spark_app.execution import pipelines
    from spark_app.execution.application import open_warehouse

    terminal.wait("starting Spark")
    with terminal, open_warehouse(settings, listener=terminal) as warehouse:
        replayed = replay(warehouse, settings, pipelines.topics())
    if is_json:
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

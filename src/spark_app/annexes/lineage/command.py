"""`spark-app lineage LOG`: what an application read and wrote, as events of OpenLineage."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_app.commands import cells, options
from spark_app.errors import MachineError, UsageError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal

LOG: Final = (
    "An event log, or a folder of them (its newest one); of a spark-app run (id or folder), its application. "
    "By default the newest one in spark-events/."
)
KEY: Final = "OPENLINEAGE_API_KEY"


def lineage(
    *,
    log: Annotated[str | None, typer.Argument(metavar="LOG", help=LOG)] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FILE|URL",
            help="Write to a file, one event a line, or send to a server over HTTP, instead of standard output.",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="Namespace of the jobs; by default spark.openlineage.namespace of the application, or `default`.",
        ),
    ] = None,
    config: options.Config = None,
) -> None:
    """Tell what an application read and wrote, as events of OpenLineage."""
    from spark_app.annexes.lineage import openlineage
    from spark_app.annexes.lineage.runs import lineage_runs
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.comparison import baselines
    from spark_app.eventlog.reader import read
    from spark_app.report import report_source
    from spark_app.runs import column_lineage
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    reading = read(report_source.source(log or str(settings.events_path), settings).log)
    baselines.recall(settings.profiles_path, reading)
    for remark in reading.remarks:
        terminal.note(remark)
    declared = column_lineage.of_application(settings.runs_path, reading.app.id)
    _deliver(openlineage.events(lineage_runs(reading.app, namespace, declared)), to, terminal)


def _deliver(events: list[Any], to: str | None, terminal: "Terminal") -> None:
    """Prints, sends or writes events.

    Raises:
        MachineError: The server does not take them, or the file cannot be written.
        UsageError: It is a URL of something else.
    """
    from spark_app.annexes.lineage import openlineage
    from spark_app.settings import process_environment

    lines = [openlineage.encoded(event) for event in events]
    if to is None:
        for line in lines:
            terminal.line(line.decode().rstrip())
    elif to.startswith(("http://", "https://")):
        openlineage.send(events, to, process_environment().get(KEY))
    else:
        _write(to, b"".join(lines))
        terminal.line(cells.shown_path(to), link=cells.uri(to))


def _write(to: str, content: bytes) -> None:
    from spark_app.local_files import local_path, write_atomic

    file = local_path(to)
    if file is None:
        raise UsageError(f"--to {to}: lineage is written to a file of this machine, or sent over http or https")
    try:
        write_atomic(file, content)
    except OSError as error:
        raise MachineError(f"cannot write {to}: {error.strerror}") from error

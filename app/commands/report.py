"""`spark-app report RUN_OR_EVENT_LOG`: one HTML file on a run of ours, or on any Spark application."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.commands import cells, options
from app.errors import MachineError

if TYPE_CHECKING:
    from app.eventlog.reading import Reading
    from app.report.runs import RunInfo

SOURCE: Final = (
    "A run of ours (its id or folder), an event log, or a folder of event logs, of which the newest is taken. "
    "By default the newest in spark-events/."
)


def report(
    *,
    source: Annotated[str | None, typer.Argument(metavar="RUN_OR_EVENT_LOG", help=SOURCE)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="HTML file to write, instead of one in reports/.")
    ] = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Write a report on a run of ours or any Spark application: one HTML file that needs no network."""
    from app.commands.terminal import Terminal
    from app.conclusions import concluded
    from app.eventlog.diagnoses.thresholds import load_thresholds
    from app.eventlog.reading import read
    from app.report import index, sources
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("reading the event log")
    found = sources.source(source or str(settings.events_path), settings)
    with terminal:
        conclusion = concluded(read(found.log), settings, load_thresholds(config))
    place = output or settings.reports_path / f"{_name(conclusion.read, found.run)}.html"
    try:
        told = conclusion.report(place, found.run)
        if output is None:
            index.write(settings.reports_path)
    except OSError as error:
        raise MachineError(f"cannot write the report {place}: {error.strerror}") from error
    if json:
        terminal.answer(report=told)
    else:
        terminal.line(cells.place(told))


def _name(reading: "Reading", run: "RunInfo | None") -> str:
    """A file name that is the same for the same source; nothing in it leads elsewhere."""
    told = run.folder.name if run else reading.app.id or reading.log.name
    return "".join(part if part.isalnum() or part in "-_." else "_" for part in told)[:200].lstrip(".") or "report"

"""`spark-app observe -- COMMAND...`: runs any program unchanged, and tells what its Spark did."""

import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app import amounts
from app.commands import cells, options

if TYPE_CHECKING:
    from app.commands.terminal import Terminal
    from app.conclusions import Conclusion
    from app.eventlog.diagnoses.thresholds import Thresholds
    from app.eventlog.findings import Finding
    from app.eventlog.model import StageAttempt
    from app.eventlog.reading import Reading
    from app.observe.seen import Seen
    from app.settings import Settings

WORST: Final = 3
"""How many findings of an application are listed; the report has all."""
RIGHT: Final = ("time", "jobs", "tasks", "read", "written", "shuffled", "spilled")
SENT_BY_US: Final = {"SPARK_APP_EVENT_LOG_EXPORTER": "bridge"}
"""Lets a `spark-app etl` that is observed leave its event log to us: nothing is sent twice."""
STYLES: Final = {"failed": "red", "incomplete": "yellow", "still running": "yellow"}

Command = Annotated[
    list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, as you would type them alone.")
]


def observe(
    *,
    command: Command,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Folder for the event logs, instead of spark-events/.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="HTML file to write, instead of one in reports/.")
    ] = None,
    config: options.Config = None,
) -> None:
    """Run any command unchanged, then tell what its Spark applications did: on standard error and in a report."""
    from app.commands.terminal import Terminal
    from app.eventlog.diagnoses.thresholds import load_thresholds
    from app.folders import made
    from app.observe.child import CommandError, run
    from app.observe.launches import Switch
    from app.observe.seen import Watch
    from app.settings import load_settings, process_environment

    settings, thresholds = load_settings(config), load_thresholds(config)
    events = made(keep or settings.events_path).absolute()
    terminal = Terminal(out=sys.stderr, err=sys.stderr)  # standard output is the command's alone
    with tempfile.TemporaryDirectory(prefix="spark-app-", dir=_unquoted()) as scratch:
        switch = Switch(events, Path(scratch))
        watch, variables = Watch(switch), switch.variables(process_environment()) | SENT_BY_US
        try:
            started = time.monotonic()
            code = run(command, variables, look=watch.look)
        except CommandError as error:
            terminal.note(f"error: {error}")
            raise typer.Exit(error.shell_code) from error
        try:
            seconds, seen = time.monotonic() - started, watch.seen(command, process_environment())
            list_applications(terminal, seen, code=code, seconds=seconds)
            report_each(terminal, seen, settings, thresholds, is_good=code == 0, report=report)
            send_ended(seen, settings, thresholds)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command has ended, and how it did is what counts
            terminal.note(f"not all of what it did can be told: {type(error).__name__}: {error}")
    raise typer.Exit(code)


def list_applications(terminal: "Terminal", seen: "Seen", *, code: int, seconds: float) -> None:
    """Prints how the command ended, a row for each application, and what could not be seen."""
    count = len(seen.readings)
    terminal.line()
    terminal.line(
        f"exit code {code} in {amounts.duration(1000 * seconds)}, {count} Spark application{'' if count == 1 else 's'}",
        style="bold",
    )
    if seen.readings:
        rows = [figures(reading, is_running=seen.is_running(reading)) for reading in seen.readings]
        terminal.table(list(rows[0]), [list(row.values()) for row in rows], right=RIGHT, styles=STYLES)
    for line in seen.unseen:
        terminal.line(f"not seen: {cells.literal(line)}")


def report_each(
    terminal: "Terminal",
    seen: "Seen",
    settings: "Settings",
    thresholds: "Thresholds",
    *,
    is_good: bool,
    report: Path | None,
) -> None:
    """Diagnoses each application, prints its worst findings and where its report is, and remembers what has ended."""
    from app.conclusions import concluded
    from app.report import index

    is_only = len(seen.readings) == 1
    for reading in seen.readings:
        conclusion = concluded(reading, settings, thresholds)
        terminal.line()
        if not is_only:
            terminal.line(_name(reading), style="bold")
        _report(terminal, conclusion, _output(reading, settings=settings, report=report, is_only=is_only))
        if not seen.is_running(reading):
            _remember(terminal, conclusion, is_good=is_good)
    if seen.readings and report is None:
        index.write(settings.reports_path)


def send_ended(seen: "Seen", settings: "Settings", thresholds: "Thresholds") -> None:
    """Sends what the logs tell of applications that have ended, unless a bridge does, or the first is not accepted."""
    from app.conclusions import SENDING_SECONDS, send

    for reading in seen.readings:
        is_over = not seen.is_running(reading)
        if is_over and not send(reading.log, settings, thresholds, patience=SENDING_SECONDS):
            return


def figures(reading: "Reading", *, is_running: bool) -> dict[str, str]:
    """What an application did, by the names of the columns; `-` where the log does not tell."""
    app, stages = reading.app, reading.app.stages.values()
    end = app.ended if app.ended is not None else app.last
    tasks, failed_tasks = sum(len(stage.durations_ms) for stage in stages), sum(stage.failed for stage in stages)
    return {
        "application": _name(reading),
        "outcome": outcome(reading, is_running=is_running),
        "time": amounts.duration(None if app.started is None else end - app.started),
        "jobs": _failing(len(app.jobs), sum(job.has_failed for job in app.jobs.values())),
        "tasks": _failing(tasks, failed_tasks),
        **_amounts(stages, are_known=not tasks or any(stage.shuffle_read_bytes for stage in stages)),
    }


def outcome(reading: "Reading", *, is_running: bool) -> str:
    """How an application ended, as far as its log tells: one that was killed has no end.

    `ended` is all that is known of most: Spark does not note the exit code of a Python program.
    """
    if is_running:
        return "still running"
    if reading.app.ended is None:
        return "incomplete"
    return "failed" if reading.app.exit_code else "ended"


def _name(reading: "Reading") -> str:
    return cells.literal(reading.app.name or reading.app.id or reading.log.name)


def _failing(number: int, failed: int) -> str:
    return f"{amounts.count(number)} ({amounts.count(failed)} failed)" if failed else amounts.count(number)


def _amounts(stages: "Iterable[StageAttempt]", *, are_known: bool) -> dict[str, str]:
    """Rows and bytes; `-` where tasks have ended and none has told its metrics, as those of a lost executor."""
    if not are_known:
        return dict.fromkeys(("read", "written", "shuffled", "spilled"), amounts.UNKNOWN)
    totals = [stage.totals for stage in stages]
    return {
        "read": _amount(sum(each.input_records for each in totals), sum(each.input_bytes for each in totals)),
        "written": _amount(sum(each.output_records for each in totals), sum(each.output_bytes for each in totals)),
        "shuffled": amounts.size(sum(each.shuffle_write_bytes for each in totals)),
        "spilled": amounts.size(sum(each.disk_spilled for each in totals)),
    }


def _amount(rows: int, size: int) -> str:
    return f"{amounts.count(rows)} rows, {amounts.size(size)}"


def _report(terminal: "Terminal", conclusion: "Conclusion", output: Path) -> None:
    written, log = cells.place(conclusion.report(output)), cells.place(conclusion.read.log)
    terminal.facts([*worst(conclusion.found), ("report", written), ("event log", log)])


def _remember(terminal: "Terminal", conclusion: "Conclusion", *, is_good: bool) -> None:
    try:
        conclusion.remember(is_good=is_good)
    except OSError as error:
        terminal.note(f"it is not remembered: {error}")


def worst(found: Sequence["Finding"]) -> list[tuple[str, str]]:
    """The severity and the text of the first findings, and how many more there are."""
    more = len(found) - WORST
    rest = [("", f"{amounts.count(more)} more in the report")] if more > 0 else []
    return [*((finding.severity, cells.literal(finding.text)) for finding in found[:WORST]), *rest]


def _output(reading: "Reading", *, settings: "Settings", report: Path | None, is_only: bool) -> Path:
    """The file of a report; of several, each has its log's name in its own."""
    name = reading.log.name.removesuffix(".inprogress")
    if report is None:
        return settings.reports_path / f"{name}.html"
    return report if is_only else report.with_name(f"{report.stem}-{name}{report.suffix}")


def _unquoted() -> str | None:
    """A folder for temporary files whose path Spark's scripts can hold: they do not quote it."""
    return "/tmp" if any(part.isspace() for part in tempfile.gettempdir()) else None

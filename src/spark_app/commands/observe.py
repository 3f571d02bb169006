"""`spark-app observe -- COMMAND...`: runs any program unchanged and reports on its Spark applications."""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from spark_app import formatting
from spark_app.commands import cells, options, plugins, results
from spark_app.commands.compare import print_comparison
from spark_app.redaction import redacted

if TYPE_CHECKING:
    from spark_app.commands.plugins import LivePage
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import Thresholds
    from spark_app.eventlog.findings import Finding
    from spark_app.eventlog.reader import Reading
    from spark_app.observe.analysis import Analysis
    from spark_app.observe.event_log_injection import EventLogInjection
    from spark_app.observe.results import LaunchWatcher, ObservedApplications
    from spark_app.report.results.fail_on import Condition
    from spark_app.report.results.schema import Application, Results
    from spark_app.settings import Settings

MAX_FINDINGS: Final = 3
"""Findings listed per application; the report has all."""
UNEXPLAINED: Final = "most time"
"""What stands before the work with much of the time that no finding claims."""
COLUMNS: Final = ("application", "outcome", "time", "jobs", "tasks", "read", "written", "shuffled", "spilled")
RIGHT: Final = ("time", "jobs", "tasks", "read", "written", "shuffled", "spilled")
NO_EXPORT: Final = {"SPARK_APP_EVENT_LOG_EXPORTER": "bridge"}
"""An observed `spark-app etl` does not export its event log: `observe` does."""
STYLES: Final = {"failed": "red", "killed": "red", "incomplete": "yellow", "running": "yellow"}

Command = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND", help="The program and its arguments."),
]
Keep = Annotated[
    Path | None, typer.Option("--keep", metavar="DIR", help="Folder for the event logs, instead of spark-events/.")
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the application in reports and comparisons, not its own."),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the results as a JSON document, for scripts.")
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        metavar="",
        callback=plugins.of_annex("live"),
        help="Serve the report as a live page while the command runs.",
    ),
]
Profile = Annotated[
    bool, typer.Option("--profile", metavar="", help="Sample the stacks of JVM and Python, for flame graphs.")
]
ProfileExecutors = Annotated[
    Path | None,
    typer.Option(
        "--profile-executors", metavar="DIR", help="Folder that executors on other hosts share, to sample them."
    ),
]
Hertz = Annotated[
    float, typer.Option("--profile-hertz", metavar="N", min=1, max=100, help="Samples of a thread in a second.")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="HTML file to write, instead of one in reports/.")
]


class _Sampling(NamedTuple):
    """How many samples of a thread are taken in a second, and the folder that executors of a cluster share."""

    hertz: float
    executors: Path | None


def observe(  # noqa: PLR0913 - an argument for each option
    *,
    command: Command,
    keep: Keep = None,
    report: Report = None,
    name: Name = None,
    json: JsonFile = None,
    fail_on: options.FailOn = None,
    summary_md: options.SummaryMd = None,
    live: Live = False,
    profile: Profile = False,
    profile_hertz: Hertz = 19,
    profile_executors: ProfileExecutors = None,
    port: options.Port = 0,
    open_: options.Open = False,
    config: options.Config = None,
) -> None:
    """Run any command unchanged, then report on its Spark applications: on standard error and as HTML."""
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.local_files import ensure_dir
    from spark_app.report.results.fail_on import with_failed_conditions
    from spark_app.settings import load_settings

    pages = plugins.live_pages("--live", is_given=live, port=port)
    conditions, settings, thresholds = options.conditions(fail_on), load_settings(config), load_thresholds(config)
    events = ensure_dir(keep or settings.events_path).absolute()
    for file in filter(None, (json, summary_md)):
        ensure_dir(file.absolute().parent)
    terminal = Terminal(out=sys.stderr, err=sys.stderr)  # standard output belongs to the command
    serve = pages.command if pages else _no_page
    served = partial(serve, terminal, settings, thresholds, plugins.Browsing(port, open_))
    sampling = _Sampling(profile_hertz, profile_executors) if profile or settings.profile else None
    found = _watched(terminal, command, events, name, settings, thresholds, report, served, sampling=sampling)
    found = with_failed_conditions(found, conditions if found.program else [])
    _note_conditions(terminal, found, conditions)
    results.write(terminal, found, json=json, summary_md=summary_md)
    _send_and_prune(settings, terminal)
    if open_ and not live and found.applications:
        results.open_report(terminal, to_open(found.applications, settings, report))
    raise typer.Exit(found.exit_code)


def _send_and_prune(settings: "Settings", terminal: "Terminal") -> None:
    """Copies what has ended to the run store, and deletes once a day what has expired."""
    from spark_app.observe import retention, run_copies

    run_copies.send(settings, note=terminal.note)
    retention.prune_daily(settings, note=terminal.note)


def _note_conditions(terminal: "Terminal", found: "Results", conditions: "Sequence[Condition]") -> None:
    """Says which conditions could not be judged, and which ended the command."""
    from spark_app.report.results.fail_on import sentence, without_baseline

    for line in without_baseline(found, conditions):
        terminal.note(line)
    if found.failed_on:
        terminal.note(f"error: {sentence(found.failed_on)}")


def _no_page(*_: object) -> AbstractContextManager[None]:
    return nullcontext()


def _watched(  # noqa: PLR0913 - an argument for each option
    terminal: "Terminal",
    command: list[str],
    events: Path,
    name: str | None,
    settings: "Settings",
    thresholds: "Thresholds",
    report: Path | None,
    served: "Callable[[LaunchWatcher], AbstractContextManager[LivePage | None]]",
    *,
    sampling: _Sampling | None,
) -> "Results":
    """Observes a command, and serves a page meanwhile, if one is asked for."""
    from spark_app.observe.event_log_injection import EventLogInjection
    from spark_app.observe.results import LaunchWatcher
    from spark_app.observe.stack_capture import stack_capture

    with tempfile.TemporaryDirectory(prefix="spark-app-", dir=_unquoted()) as scratch, ExitStack() as stack:
        shared = sampling and (sampling.executors or settings.profile_executors_path)
        capture = stack.enter_context(stack_capture(Path(scratch), shared, sampling.hertz)) if sampling else None
        injection = EventLogInjection(events, Path(scratch), name, profile=capture)
        watcher = LaunchWatcher(injection)
        with served(watcher) as page:
            ended = page.stop if page else nullcontext
            found = _observed(terminal, command, injection, watcher, settings, thresholds, report, ended)
            plugins.end(page, [each.report for each in found.applications])
    return found


def _observed(
    terminal: "Terminal",
    command: list[str],
    injection: "EventLogInjection",
    watcher: "LaunchWatcher",
    settings: "Settings",
    thresholds: "Thresholds",
    report: Path | None,
    ended: "Callable[[], object]",
) -> "Results":
    """Runs a command, prints what its applications did, and writes their reports."""
    from spark_app.observe.analysis import SENDING_SECONDS, log_export
    from spark_app.observe.child import CommandError, environment_of_user, run
    from spark_app.observe.host_load import HostLoadSampler
    from spark_app.report.results.schema import Error, Program, Results
    from spark_app.settings import process_environment

    variables = injection.variables(environment_of_user(process_environment())) | NO_EXPORT
    found = Results(command="observe")
    try:
        started, sampler = time.monotonic(), HostLoadSampler(jvms=lambda: watcher.jvms)
        code = found.exit_code = run(command, variables, look=sampler.beside(watcher.look))
    except CommandError as error:
        terminal.note(f"error: {error}")
        return Results(command="observe", exit_code=error.shell_code, error=Error(type(error).__name__, str(error)))
    finally:
        ended()
    try:
        seconds, export = time.monotonic() - started, log_export(settings, thresholds, patience=SENDING_SECONDS)
        found.program = Program(code, round(seconds, 1), [])
        observed = watcher.seen(command, process_environment(), code=code, export=export)
        found.program.not_observed = [redacted(line) for line in observed.unseen]
        watcher.annotate(observed.readings, sampler.load)
        list_applications(terminal, observed, code=code, seconds=seconds)
        report_each(terminal, observed, settings, thresholds, code=code, report=report, found=found.applications)
        if export is not None:
            export.finish()
    except Exception as error:  # noqa: BLE001 - the exit code of the command matters more
        found.error = Error(type(error).__name__, redacted(f"could not analyse everything the command did: {error}"))
        terminal.note(f"could not analyse everything the command did: {type(error).__name__}: {error}")
    return found


def list_applications(terminal: "Terminal", seen: "ObservedApplications", *, code: int, seconds: float) -> None:
    """Prints the exit code, a row per application, and a line per Spark launch that left no event log."""
    count = len(seen.readings)
    terminal.line()
    terminal.line(
        f"exit code {code} in {formatting.duration(1000 * seconds)}, {formatting.quantity(count, 'Spark application')}",
        style="bold",
    )
    if seen.readings:
        rows = [list(row.values()) for row in map(_row, seen.readings) if row]
        terminal.table(COLUMNS, rows, right=RIGHT, styles=STYLES)
    for line in seen.unseen:
        terminal.line(f"not observed: {cells.literal(line)}")


def report_each(
    terminal: "Terminal",
    seen: "ObservedApplications",
    settings: "Settings",
    thresholds: "Thresholds",
    *,
    code: int,
    report: Path | None,
    found: "list[Application]",
) -> None:
    """Prints the worst findings of each application and how it compares with earlier ones; writes its report.

    What the report says is added to what was found, also if a later application cannot be analysed.
    The profile of a finished application is stored for later comparisons, unless the command failed and the exit code
    of the application itself is not known.
    """
    from spark_app.eventlog.model.failed_parts import failure_of, remark
    from spark_app.observe.analysis import analyze
    from spark_app.report import index

    is_only = len(seen.readings) == 1
    for reading in seen.readings:
        terminal.line()
        if not is_only:
            terminal.line(_name(reading), style="bold")
        try:
            analysis = analyze(reading, settings, thresholds)
            location = _report(terminal, analysis, _output(reading, settings=settings, report=report, is_only=is_only))
            found.append(results.application(analysis, None, location))
            is_known = not code or reading.app.process_exit_code is not None
            if is_known and analysis.profile.outcome != "running":
                _save_baseline(terminal, analysis)
        except OSError:  # the disk, or the folder of reports: no other report can be written either
            raise
        except Exception as error:  # noqa: BLE001 - other applications have their reports
            terminal.note(remark(f"report of {reading.log}", failure_of(error)))
        for line in reading.app.failed_parts.remarks:
            terminal.note(line)
    if seen.readings and report is None:
        index.write(settings.reports_path)


def _row(reading: "Reading") -> dict[str, str]:
    return reading.app.failed_parts.get("table of applications", partial(figures, reading), {})


def figures(reading: "Reading") -> dict[str, str]:
    """One row of the table, by column: the figures of the JSON document; `-` for what the log does not contain."""
    from spark_app.eventlog.model.outcome import ending_of
    from spark_app.report.results.markdown import moved
    from spark_app.report.scope import scope
    from spark_app.report.sections.headline import headline

    app, shown = reading.app, headline(scope(reading.app, None)).figures
    return {
        "application": _name(reading),
        "outcome": ending_of(app).outcome,
        "time": formatting.duration(None if app.started is None else shown.duration_ms),
        "jobs": _failing(shown.jobs, sum(job.has_failed for job in app.jobs.values())),
        "tasks": _failing(shown.tasks, shown.failed_tasks),
        "read": moved(shown.rows_read, shown.bytes_read),
        "written": moved(shown.rows_written, shown.bytes_written),
        "shuffled": formatting.size(shown.shuffled_bytes),
        "spilled": formatting.size(shown.spilled_bytes),
    }


def _name(reading: "Reading") -> str:
    return cells.literal(reading.app.name or reading.app.id or reading.log.name)


def _failing(number: int, failed: int) -> str:
    return f"{formatting.count(number)} ({formatting.count(failed)} failed)" if failed else formatting.count(number)


def _report(terminal: "Terminal", analysis: "Analysis", output: Path) -> str:
    """Writes the report, and prints findings, paths and the comparison; returns the path of the report."""
    location, log = analysis.report(output), analysis.reading.log
    links = {cells.shown_path(path): cells.uri(path) for path in (location, str(log))}
    paths = zip(("report", "event log"), links, strict=True)
    works = analysis.unexplained_of(None, analysis.findings)
    unexplained = [(UNEXPLAINED, cells.literal(str(work))) for work in works]
    terminal.facts([*worst(analysis.findings), *unexplained, *paths], links=links)
    if analysis.comparison is not None:
        terminal.line()
        print_comparison(terminal, analysis.comparison)
    return location


def to_open(found: "Sequence[Application]", settings: "Settings", report: Path | None) -> str:
    """The report to open in a browser; of several, the list of all."""
    from spark_app.report import index

    first = found[0].report
    return first if report or len(found) == 1 else str(settings.reports_path / index.INDEX)


def _save_baseline(terminal: "Terminal", analysis: "Analysis") -> None:
    try:
        analysis.save_baseline()
    except OSError as error:
        terminal.note(f"later runs will not be compared with this one: cannot save its profile: {error}")


def worst(findings: Sequence["Finding"]) -> list[tuple[str, str]]:
    """The severity and the text of the worst findings, and the number of the rest."""
    more = len(findings) - MAX_FINDINGS
    rest = [("", f"{formatting.count(more)} more in the report")] if more > 0 else []
    texts = ((finding.severity, _said(finding)) for finding in findings[:MAX_FINDINGS])
    return [*((severity, cells.literal(text)) for severity, text in texts), *rest]


def _said(finding: "Finding") -> str:
    return f"{finding.text} ({finding.cost})" if finding.cost else finding.text


def _output(reading: "Reading", *, settings: "Settings", report: Path | None, is_only: bool) -> Path:
    """The file of a report; with several applications, its name contains that of the event log."""
    from spark_app.eventlog.parse.log_tailer import IN_PROGRESS

    name = reading.log.name.removesuffix(IN_PROGRESS)
    if report is None:
        return settings.reports_path / f"{name}.html"
    return report if is_only else report.with_name(f"{report.stem}-{name}{report.suffix}")


def _unquoted() -> str | None:
    """A temporary folder without white space in its path, which Spark's scripts do not quote."""
    return "/tmp" if any(part.isspace() for part in tempfile.gettempdir()) else None

"""`spark-app report RUN_OR_EVENT_LOG`: one HTML file about a spark-app run or any Spark application."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app.commands import cells, options, plugins, results
from spark_app.errors import InputError, MachineError
from spark_app.installation import annexes

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import Thresholds
    from spark_app.eventlog.reader import Reading
    from spark_app.observe.analysis import Analysis
    from spark_app.report.report_source import ReportSource
    from spark_app.report.results.fail_on import Condition
    from spark_app.report.results.schema import Application, Results
    from spark_app.report.run_info import RunInfo
    from spark_app.settings import Settings

SOURCE: Final = (
    "A spark-app run (id or folder), an event log, a folder of event logs (its newest one), or an application "
    "k8s://NAMESPACE/NAME. "
    "By default the newest one in spark-events/."
)

NO_REPLAY: Final = (
    "no --what-if: the log has no executor or task to replay, or streaming queries, which wait for their input"
)

Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        metavar="",
        callback=plugins.of_annex("live"),
        help="Serve the report as a live page until the application ends, or Ctrl-C.",
    ),
]

Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="HTML file to write, instead of one in reports/.")
]
ProfileOut = Annotated[
    Path | None,
    typer.Option(
        "--profile-out",
        metavar="DIR",
        callback=plugins.of_annex("flames"),
        help="Write the samples of stacks as collapsed stacks, by stage, which flamegraph.pl and speedscope read.",
    ),
]
NameHotKeys = Annotated[
    bool,
    typer.Option(
        "--name-hot-keys",
        metavar="",
        help="Sample the Parquet and Delta files that were read, and show the key with most rows in findings of skew.",
    ),
]


def report(  # noqa: PLR0913 - an argument for each option
    *,
    source: Annotated[str | None, typer.Argument(metavar="RUN_OR_EVENT_LOG", help=SOURCE)] = None,
    output: Output = None,
    profile_out: ProfileOut = None,
    name_hot_keys: NameHotKeys = False,
    what_if: options.WhatIf = None,
    json: options.Json = False,
    fail_on: options.FailOn = None,
    summary_md: options.SummaryMd = None,
    follow: Follow = False,
    port: options.Port = 0,
    open_: options.Open = False,
    config: options.Config = None,
) -> None:
    """Write a report about a spark-app run or any Spark application: one HTML file that needs no network."""
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.observe.hot_keys import named_by
    from spark_app.report import report_source
    from spark_app.settings import load_settings

    changes, conditions = options.changes(what_if), options.conditions(fail_on)
    settings, thresholds = load_settings(config), load_thresholds(config)
    hot_keys = named_by(thresholds.skew_data_ratio) if name_hot_keys else None
    terminal, name = Terminal(), source or str(settings.events_path)
    live = _live_pages(name, is_given=follow, port=port)
    selected = report_source.source(name, settings)
    browsing = plugins.Browsing(port, open_)
    with live.log(terminal, settings, thresholds, browsing, selected) if live else nullcontext() as page:
        selected = live.as_of_now(selected) if live else selected
        analysis = replace(_analysis(terminal, selected, settings, thresholds), changes=changes, hot_keys=hot_keys)
        location = _write(analysis, selected.run, output)
        plugins.end(page, [location])
    _note(terminal, analysis, selected.run, profile_out)
    about = results.application(analysis, selected.run, location)
    found = _judged(about, conditions)
    if open_ and page is None:  # else the live page was opened, and shows the report by now
        results.open_report(terminal, location)
    show = partial(_show, terminal, location, about if changes else None)
    results.answer(terminal, found, json=json, summary_md=summary_md, show=show)


def _live_pages(location: str, *, is_given: bool, port: int) -> plugins.LivePages | None:
    """What serves the page of a log that is followed; None where it is not.

    Raises:
        UsageError: It cannot be followed, or there is a port without a page.
    """
    live = plugins.live_pages("--follow", is_given=is_given, port=port)
    if live is not None:
        live.require_log(location)
    return live


def _judged(about: "Application", conditions: "list[Condition]") -> "Results":
    """The results of the command, with the conditions that do not hold."""
    from spark_app.report.results.fail_on import with_failed_conditions
    from spark_app.report.results.schema import Results

    return with_failed_conditions(Results(command="report", applications=[about]), conditions)


def _note(terminal: "Terminal", analysis: "Analysis", run: "RunInfo | None", profile_out: Path | None) -> None:
    """Says what of the log could not be read, sends what is not in the run store yet, and writes samples of stacks."""
    from spark_app.observe import run_copies

    unnamed = analysis.hot_keys.remarks if analysis.hot_keys else ()
    for remark in (*analysis.reading.remarks, *unnamed):
        terminal.note(remark)
    run_copies.send(analysis.settings, note=terminal.note)
    if profile_out is not None:
        _write_profile(terminal, analysis, run, profile_out)


def _show(terminal: "Terminal", location: str, asked: "Application | None") -> None:
    """Prints the path of the report, and a line for each change that was asked for."""
    from spark_app.formatting import duration
    from spark_app.report.formatting import change_of_time

    terminal.line(cells.shown_path(location), link=cells.uri(location))
    if asked is not None and asked.replays is None:
        terminal.note(NO_REPLAY)
    for each in asked.replays.forecasts if asked is not None and asked.replays is not None else ():
        if each.ms is None or each.low_ms is None or each.high_ms is None or each.change_ratio is None:
            terminal.line(f"{each.change}: not known: {'; '.join(each.reasons)}")
            continue
        interval = f"{duration(each.low_ms)} to {duration(each.high_ms)}"
        terminal.line(f"{each.change}: {duration(each.ms)} ({interval}), {change_of_time(each.change_ratio)}")


def _analysis(
    terminal: "Terminal", selected: "ReportSource", settings: "Settings", thresholds: "Thresholds"
) -> "Analysis":
    from spark_app.observe.analysis import analyze
    from spark_app.report import report_source

    terminal.wait("reading the event log")
    with terminal:
        return analyze(report_source.read(selected), settings, thresholds)


def _write(analysis: "Analysis", run: "RunInfo | None", output: Path | None) -> str:
    """Writes the report, and the list of reports if it is one of them; returns its path or URL.

    Raises:
        MachineError: It cannot be written.
    """
    from spark_app.report import index

    reports = analysis.settings.reports_path
    file = output or reports / index.file_name(_subject(analysis.reading, run))
    try:
        location = analysis.report(file, run)
        if output is None:
            index.write(reports)
    except OSError as error:
        raise MachineError(f"cannot write report {file}: {error.strerror}") from error
    return location


def _write_profile(terminal: "Terminal", analysis: "Analysis", run: "RunInfo | None", folder: Path) -> None:
    """Writes the samples of stacks for other viewers; notes how many parts they have.

    Raises:
        InputError: There are none.
        MachineError: They cannot be written.
    """
    from spark_app.formatting import quantity

    section = analysis.stacks_of(run)
    if section is None:
        raise InputError(f"no --profile-out: there are no samples of stacks beside {analysis.reading.log}")
    try:
        written = annexes.added(plugins.FlameGraphs)[0].collapsed(section, folder)
    except OSError as error:
        raise MachineError(f"cannot write to {folder}: {error.strerror}") from error
    terminal.note(f"{quantity(written, 'profile')} in {folder}")


def _subject(reading: "Reading", run: "RunInfo | None") -> str:
    """What a report is about: a run, an application, or the log of one that has no id."""
    return run.folder.name if run else reading.app.id or reading.log.name

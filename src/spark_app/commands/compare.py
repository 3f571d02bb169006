"""`spark-app compare RUN [BASELINE]`: why a run took longer than before, in ranked causes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_app import formatting
from spark_app.commands import cells, options, results

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.comparison.compare import Comparison
    from spark_app.eventlog.comparison.profile import RunProfile
    from spark_app.eventlog.parse.locations import LogPath
    from spark_app.settings import Settings

FORMS = "an event log, a spark-app run (id or folder), or a run profile in reports/records/"


def compare(
    *,
    run: Annotated[str, typer.Argument(metavar="RUN", help=f"The run to explain: {FORMS}.")],
    baseline: Annotated[
        str | None,
        typer.Argument(
            metavar="BASELINE",
            help="The run to compare with; by default the last successful runs of the same application.",
        ),
    ] = None,
    json: options.Json = False,
    fail_on: options.FailOn = None,
    summary_md: options.SummaryMd = None,
    config: options.Config = None,
) -> None:
    """Explain why a run took longer or shorter than another run, or than the last successful ones."""
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.comparison import baselines
    from spark_app.eventlog.comparison import compare as comparing
    from spark_app.report.results import build
    from spark_app.report.results.fail_on import with_failed_conditions
    from spark_app.report.results.schema import Results
    from spark_app.settings import load_settings

    conditions, settings = options.conditions(fail_on, only_slower=True), load_settings(config)
    terminal = Terminal()
    terminal.wait("reading event logs")
    with terminal:
        current, log = _profile(run, settings, terminal)
        named = [_profile(baseline, settings, terminal)[0]] if baseline else None
        comparison = comparing.compare(named or baselines.earlier(settings.profiles_path, current, log), current)
    found = with_failed_conditions(Results(command="compare", comparison=build.comparison(comparison)), conditions)
    show = partial(_show, terminal, comparison, current, settings)
    results.answer(terminal, found, json=json, summary_md=summary_md, show=show)


def _show(terminal: "Terminal", comparison: "Comparison", current: "RunProfile", settings: "Settings") -> None:
    """Prints the comparison, and whether forecasts for the settings of the run came true."""
    from spark_app.commands.forecasts import forecast_lines

    print_comparison(terminal, comparison)
    try:
        lines = forecast_lines(settings, current)
    except OSError as error:
        lines = [f"forecasts cannot be kept: {error}"]
    for line in lines:
        terminal.line(cells.literal(line))


def print_comparison(terminal: "Terminal", comparison: "Comparison") -> None:
    """Prints both durations, each cause of the difference with advice, and what changed, also if that is noise."""
    from spark_app.eventlog.comparison.causes import seconds
    from spark_app.eventlog.comparison.compare import MAX_ID
    from spark_app.redaction import excerpt

    names = (comparison.application, comparison.now, comparison.before)
    name, now_id, before_id = (cells.literal(excerpt(name, MAX_ID)) for name in names)
    now, before, noise = (
        formatting.duration(ms) for ms in (comparison.now_ms, comparison.before_ms, comparison.noise_ms)
    )
    terminal.line(f"{name}: now {now}, before {before}: {seconds(comparison.difference_ms)}", style="bold")
    terminal.line(", ".join(filter(None, (f"{now_id} compared with {before_id}", comparison.choice))))
    for remark in comparison.remarks:
        terminal.line(cells.literal(remark))
    if comparison.is_noise:
        terminal.line(f"no significant difference (noise threshold {noise})")
    else:
        _print_causes(terminal, comparison)
    terminal.line()
    changes = [(change.what, cells.literal(change.text)) for change in comparison.changes]
    terminal.table(("what", "now and before"), changes, is_prose=True)


def _print_causes(terminal: "Terminal", comparison: "Comparison") -> None:
    from spark_app.eventlog.comparison.causes import seconds
    from spark_app.eventlog.comparison.compare import UNEXPLAINED

    rows: list[tuple[str, str]] = []
    for cause in comparison.causes:
        rows.append((seconds(cause.ms), cells.literal(cause.text)))
        rows += [("", f"-> {cause.advice}")] if cause.advice else []
    rows.append((seconds(comparison.unexplained_ms), UNEXPLAINED))
    terminal.line()
    terminal.table(("time", "cause"), rows, right=("time",), is_prose=True)


def _profile(name: str, settings: "Settings", terminal: "Terminal") -> tuple["RunProfile", "LogPath | None"]:
    """The run profile of a named run, and the event log that it was read from; None for a stored profile."""
    from spark_app.eventlog import reader
    from spark_app.eventlog.comparison import baselines, profiling
    from spark_app.observe.analysis import with_profiles_of_store
    from spark_app.report import report_source

    if Path(name).suffix == ".json" and Path(name).is_file():
        return baselines.load(Path(name)), None
    reading = with_profiles_of_store(reader.read(report_source.source(name, settings).log), settings)
    for remark in reading.remarks:
        terminal.note(f"{reading.log if '://' in name else name}: {remark}")
    baselines.recall(settings.profiles_path, reading)
    return profiling.of(reading), reading.log

"""`spark-app compare RUN [BASELINE]`: why a run took longer than before, in ranked causes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_app import formatting
from spark_app.commands import cells, options, plugins, results
from spark_app.errors import InputError, MachineError
from spark_app.installation import annexes

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.comparison.compare import Comparison, FunctionChange
    from spark_app.eventlog.comparison.profile import RunProfile
    from spark_app.eventlog.parse.locations import LogPath
    from spark_app.settings import Settings
    from spark_app.stack_samples.stack_profile import StackProfile

MAX_FUNCTIONS = 12
"""Functions that are printed."""
FORMS = "an event log, a spark-app run (id or folder), or a run profile in reports/records/"


FlameGraph = Annotated[
    Path | None,
    typer.Option(
        "--flame-graph",
        metavar="FILE",
        callback=plugins.of_annex("flames"),
        help="HTML file to write, with flame graphs of both runs that show which functions grew.",
    ),
]


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
    flame_graph: FlameGraph = None,
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
        named, earlier = _profile(baseline, settings, terminal) if baseline else (None, None)
        before = [named] if named else baselines.earlier(settings.profiles_path, current, log)
        comparison, stacks = comparing.compare(before, current), _stacks(log, earlier)
    functions = _functions(comparison, stacks, flame_graph)
    own, lines = plugins.forecasts(terminal, settings, current)
    compared, judged = build.comparison(comparison, functions), build.judged_forecasts(own)
    document = Results(command="compare", comparison=compared, judged_forecasts=judged)
    found = with_failed_conditions(document, conditions)
    show = partial(_show, terminal, comparison, functions, lines)
    results.answer(terminal, found, json=json, summary_md=summary_md, show=show)


def _show(
    terminal: "Terminal", comparison: "Comparison", functions: "list[FunctionChange]", forecasts: list[str]
) -> None:
    """Prints the comparison, what grew, and whether forecasts for the settings of the run came true."""
    print_comparison(terminal, comparison)
    _print_functions(terminal, functions)
    for line in forecasts:
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
    if not comparison.is_significant:
        terminal.line(f"no significant difference (noise threshold {noise})")
    else:
        _print_causes(terminal, comparison)
    terminal.line()
    changes = [(change.what, cells.literal(change.text)) for change in comparison.changes]
    terminal.table(("what", "now and before"), changes, is_prose=True)


def _print_functions(terminal: "Terminal", functions: "list[FunctionChange]") -> None:
    """Prints the functions whose time differs by more than the noise of their samples."""
    from spark_app.eventlog.comparison.causes import seconds

    rows = [
        (
            seconds(each.difference_ms),
            cells.literal(each.function) + (" (your program)" if each.is_own else ""),
            f"{formatting.share(each.ratio)}, {formatting.quantity(each.samples, 'sample')}",
            f"{formatting.share(each.ratio_before)}, {formatting.quantity(each.samples_before, 'sample')}",
        )
        for each in functions[:MAX_FUNCTIONS]
    ]
    if rows:
        terminal.line()
        terminal.table(("time", "function by samples of stacks", "now", "before"), rows, right=("time",))


def _stacks(log: "LogPath | None", earlier: "LogPath | None") -> "tuple[StackProfile, StackProfile] | None":
    """The samples of stacks of both runs; None unless both have some."""
    from spark_app.stack_samples import stack_profile

    now = stack_profile.of_log(log) if log else None
    before = stack_profile.of_log(earlier) if earlier and now else None
    return (now, before) if now and before else None


def _functions(
    comparison: "Comparison", stacks: "tuple[StackProfile, StackProfile] | None", flame_graph: Path | None
) -> "list[FunctionChange]":
    """The functions whose samples differ, which the page of `--flame-graph` draws; none without samples of both runs.

    Raises:
        InputError, MachineError: As `_draw`.
    """
    from spark_app.stack_samples import difference

    functions = difference.changes(*stacks) if stacks else []
    if flame_graph is not None:
        _draw(flame_graph, comparison, stacks, functions)
    return functions


def _draw(
    file: Path,
    comparison: "Comparison",
    stacks: "tuple[StackProfile, StackProfile] | None",
    functions: "list[FunctionChange]",
) -> None:
    """Writes the page with the flame graphs.

    Raises:
        InputError: Not both runs have samples.
        MachineError: It cannot be written.
    """
    from datetime import UTC, datetime

    if stacks is None:
        raise InputError("no --flame-graph: name two event logs or runs that both have samples of stacks beside them")
    names, difference = (comparison.now, comparison.before), annexes.added(plugins.FlameGraphs)[0].difference
    try:
        difference(file, comparison.application, *stacks, functions, names=names, at=datetime.now(UTC))
    except OSError as error:
        raise MachineError(f"cannot write {file}: {error.strerror}") from error


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
    return profiling.run_profile(reading), reading.log

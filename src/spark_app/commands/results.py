"""The end of `observe`, `report` and `compare`: the summary, the JSON document, and the conditions that hold."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spark_app.commands import cells
from spark_app.errors import FailOnError, MachineError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.observe.analysis import Analysis
    from spark_app.report.results.schema import Application, Results
    from spark_app.report.run_info import RunInfo


def application(analysis: "Analysis", run: "RunInfo | None", location: str) -> "Application":
    """What a report about an application, or about a run in it, says, as the JSON document has it."""
    from msgspec.structs import replace

    from spark_app.report.results import build

    findings, compared, prices = analysis.findings_of(run), analysis.comparison, analysis.settings.prices
    labels = analysis.profile.labels
    about = build.application(analysis.reading, run, findings, compared, report=location, prices=prices, labels=labels)
    return replace(
        about,
        replays=build.replays(analysis.replays_of(run)),
        stack_samples=build.stack_samples(analysis.stacks_of(run)),
        unexplained=build.unexplained(analysis.unexplained_of(run, findings)),
    )


def answer(
    terminal: "Terminal", results: "Results", *, json: bool, summary_md: Path | None, show: Callable[[], None]
) -> None:
    """Appends the summary, and prints the document, or shows the results as text.

    Raises:
        FailOnError: A condition holds; whoever reports it prints the document.
        MachineError: The summary cannot be written.
    """
    import msgspec

    summarize(results, summary_md)
    if not json:
        show()
    if results.failed_on and results.error is not None:
        raise FailOnError(results.error.message, msgspec.to_builtins(results))
    if json:
        terminal.document(results)


def write(terminal: "Terminal", results: "Results", *, json: Path | None, summary_md: Path | None) -> None:
    """Writes the summary and the document; what cannot be written is noted, and the exit code is not 0 then."""
    for save in (partial(summarize, results, summary_md), partial(_save, results, json)):
        try:
            save()
        except MachineError as error:
            results.exit_code = results.exit_code or error.exit_code
            terminal.note(f"error: {error}")


def _save(results: "Results", json: Path | None) -> None:
    """Writes the document to a file, if one is asked for; in place, as it may be a pipe.

    Raises:
        MachineError: It cannot be written.
    """
    from spark_app.commands.terminal import encoded

    try:
        if json is not None:
            json.write_bytes(encoded(results))
    except OSError as error:
        raise MachineError(f"cannot write {json}: {error.strerror}") from error


def summarize(results: "Results", summary_md: Path | None) -> None:
    """Appends the summary to a file, if one is asked for.

    Raises:
        MachineError: It cannot be written.
    """
    from spark_app.report.results import markdown

    try:
        if summary_md is not None:
            markdown.append(summary_md, results)
    except OSError as error:
        raise MachineError(f"cannot write summary {summary_md}: {error.strerror}") from error


def open_report(terminal: "Terminal", location: str) -> None:
    """Opens a report in the browser; notes that there is none."""
    import webbrowser

    if not webbrowser.open(cells.uri(location)):
        terminal.note(f"no browser was found for {location}: set the variable BROWSER")

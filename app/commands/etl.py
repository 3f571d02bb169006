"""`spark-app etl`: the daily job for one day or a range of days."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app import amounts
from app.commands import cells, failures, options

if TYPE_CHECKING:
    from app.commands.terminal import Terminal
    from app.records import RunRecord

FOLDERS_LISTED: Final = 2
NUMBERS: Final = ("read", "written", "quarantined", "duplicates", "time")
STYLES: Final = {
    "succeeded": "green",
    "rejected": "red",
    "failed": "red",
    "missing_input": "yellow",
    "interrupted": "yellow",
}


def etl(
    *,
    date: options.Date = None,
    first: options.From = None,
    last: options.To = None,
    replay: Annotated[
        bool,
        typer.Option("--replay", metavar="", help="Start from bronze, not from the raw files: after a fix."),
    ] = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run the daily job, customers and then sales, for one day or each day of a range; it is safe to repeat."""
    chosen = options.days(date, first, last)
    # Spark is imported only now: --help and a wrong argument answer at once.
    from app.commands.terminal import Terminal
    from app.runner import run_etl
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    job = partial(run_etl, settings, chosen, watcher=terminal, replay=replay)
    perform(job, terminal=terminal, is_json=json)


def perform(job: Callable[[], Sequence["RunRecord"]], *, terminal: "Terminal", is_json: bool) -> None:
    """Runs the job and prints its runs; after a failure those that had ended, and the failure is raised again."""
    started = time.monotonic()
    try:
        with terminal:
            terminal.wait("starting Spark")
            results = job()
    except BaseException as error:
        if not is_json:
            summarize(terminal, failures.results(error), seconds=time.monotonic() - started)
        raise
    if is_json:
        terminal.answer(runs=results)
    else:
        summarize(terminal, results, seconds=time.monotonic() - started)


def summarize(terminal: "Terminal", results: Sequence["RunRecord"], *, seconds: float) -> None:
    """Prints what was read, written and held back, how long it took, and where things are."""
    if not results:
        return
    headers, rows = _figures(results)
    terminal.line()
    terminal.line(f"{_title(results)} in {amounts.duration(1000 * seconds)}", style="bold")
    terminal.table(headers, rows, right=NUMBERS, styles=STYLES)
    terminal.line()
    terminal.facts(_places(results))


def _title(results: Sequence["RunRecord"]) -> str:
    """The days and the outcomes."""
    dates = sorted({result.date for result in results})
    when = str(dates[0]) if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    outcomes = [result.outcome for result in results]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in dict.fromkeys(outcomes))
    return f"{when}: {counts}".replace("_", " ")


def _figures(results: Sequence["RunRecord"]) -> tuple[list[str], list[list[str]]]:
    """A row per run; a column that the title says already (one day, one outcome) is left out."""
    columns: dict[str, list[str]] = {"pipeline": [result.pipeline for result in results]}
    varying: dict[str, list[Any]] = {"date": [result.date for result in results]}
    varying["outcome"] = [result.outcome for result in results]
    columns |= {name: [str(value) for value in values] for name, values in varying.items() if len(set(values)) > 1}
    columns["read"] = [amounts.count(result.rows_read) for result in results]
    columns["written"] = [amounts.count(result.rows_written) for result in results]
    columns["quarantined"] = [amounts.count(result.rows_quarantined) for result in results]
    columns["duplicates"] = [amounts.count(result.rows_duplicate) for result in results]
    columns["time"] = [amounts.duration(1000 * result.seconds) for result in results]
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def _places(results: Sequence["RunRecord"]) -> list[tuple[str, str]]:
    tables: dict[str, Path | str] = {name: path for result in results for name, path in result.tables.items()}
    places = [(f"table {name}", cells.place(path)) for name, path in tables.items()]
    if len(results) <= FOLDERS_LISTED:
        places += [(f"run {result.pipeline}", cells.place(result.folder)) for result in results]
        return places + [(f"report {each.pipeline}", cells.place(each.report)) for each in results if each.report]
    from app.report.index import INDEX

    parents = dict.fromkeys(result.folder.parent for result in results)
    places += [("runs", f"{len(results)} folders in {cells.place(parent)}") for parent in parents]
    lists = dict.fromkeys(f"{each.report.rpartition('/')[0]}/{INDEX}" for each in results if each.report)
    return places + [("reports", cells.place(each)) for each in lists]

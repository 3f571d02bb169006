"""`spark-app etl`: runs daily pipelines for one day or a range of days."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_app import formatting
from spark_app.commands import cells, errors, options
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.run import Only
    from spark_app.runs.run_record import RunRecord

FOLDERS_LISTED: Final = 2
USUAL_COUNTS: Final = ("read", "published", "quarantined", "duplicates")
WORDS: Final = ("pipeline", "query", "date", "outcome")
STYLES: Final = {
    "succeeded": "green",
    "rejected": "red",
    "failed": "red",
    "missing_input": "yellow",
    "interrupted": "yellow",
}


def etl(  # noqa: PLR0913 - an option each
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Pipelines to run, such as daily_sales; daily_sales+ with all that reads its tables; all by default.",
        ),
    ] = None,
    *,
    date: options.Date = None,
    first: options.From = None,
    last: options.To = None,
    replay: Annotated[
        bool, typer.Option("--replay", metavar="", help="Re-run from the bronze tables instead of the raw files.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", metavar="", help="Run only the days of the range that are not published.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", metavar="", help="Run the days that were made of what has changed since.")
    ] = False,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run daily pipelines, in the order of what they read and write, for one day or each day of a range."""
    only = _only(missing=missing, stale=stale, replay=replay, is_range=not date and bool(first or last))
    chosen = [] if stale and not (date or first or last) else options.days(date, first, last)
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.settings import load_settings
    from spark_app.spark.session import StartingJvm

    settings = load_settings(config)
    with StartingJvm(settings) as jvm:
        from spark_app.commands.terminal import Terminal
        from spark_app.execution.run import run_etl

        terminal = Terminal()
        how = partial(run_etl, replay=replay, only=only, jvm=jvm)
        job = partial(how, settings, chosen, listener=terminal, chosen=names or ())
        perform(job, terminal=terminal, is_json=json, also=_stale)


def _stale(results: Sequence["RunRecord"]) -> dict[str, Any]:
    return {"stale": results[-1].stale if results else []}


def _only(*, missing: bool, stale: bool, replay: bool, is_range: bool) -> "Only":
    """Which of the days are run.

    Raises:
        UsageError: Two options exclude each other.
    """
    if missing and not is_range:
        raise UsageError("--missing looks for days of a range: give --from and --to, not --date")
    if stale and (missing or replay):
        raise UsageError("--stale finds its days itself: give it without --missing and --replay")
    return "missing" if missing else "stale" if stale else "all"


Table = tuple[list[str], list[list[str]]]
"""Headers and rows."""


def summarize(
    terminal: "Terminal",
    results: Sequence["RunRecord"],
    *,
    seconds: float,
    table: Callable[[Sequence["RunRecord"]], Table] | None = None,
) -> None:
    """Prints row counts and durations of the runs, and the paths of tables, runs and reports."""
    if not results:
        return
    headers, rows = (table or _table)(results)
    terminal.line()
    terminal.line(f"{_title(results)} in {formatting.duration(1000 * seconds)}", style="bold")
    terminal.table(headers, rows, right=[name for name in headers if name not in WORDS], styles=STYLES)
    terminal.line()
    terminal.facts(_paths(results))


def perform(
    job: Callable[[], Sequence["RunRecord"]],
    *,
    terminal: "Terminal",
    is_json: bool,
    show: Callable[..., None] = summarize,
    also: Callable[[Sequence["RunRecord"]], Mapping[str, Any]] | None = None,
) -> None:
    """Runs the job and prints its runs; after a failure prints the runs so far and raises it again.

    Args:
        job: What is run.
        terminal: Where it is shown.
        is_json: Whether the runs are printed as a JSON document.
        show: Prints the runs, called as `summarize` is.
        also: What the JSON document has beside the runs.
    """
    started = time.monotonic()
    try:
        with terminal:
            terminal.wait("starting Spark")
            results = job()
    except BaseException as error:
        results = errors.results(error)
        if not is_json:
            show(terminal, results, seconds=time.monotonic() - started)
        elif also:
            errors.add(error, also(results))
        raise
    if is_json:
        terminal.answer(runs=results, **(also(results) if also else {}))
    else:
        show(terminal, results, seconds=time.monotonic() - started)


def _title(results: Sequence["RunRecord"]) -> str:
    """The days and the outcomes."""
    slices = sorted({result.slice for result in results})
    when = slices[0] if len(slices) == 1 else f"{slices[0]} to {slices[-1]}"
    outcomes = [result.outcome for result in results]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in dict.fromkeys(outcomes))
    return f"{when}: {counts}".removeprefix(": ").replace("_", " ")


def _table(results: Sequence["RunRecord"]) -> Table:
    """A row per run, without columns that the title already says (one day, one outcome)."""
    columns: dict[str, list[str]] = {"pipeline": [result.pipeline for result in results]}
    varying: dict[str, list[Any]] = {"date": [result.slice for result in results]}
    varying["outcome"] = [result.outcome for result in results]
    columns |= {name: [str(value) for value in values] for name, values in varying.items() if len(set(values)) > 1}
    counted = dict.fromkeys([*USUAL_COUNTS, *(name for result in results for name in result.counts)])
    columns |= {name: [formatting.count(result.counts.get(name)) for result in results] for name in counted}
    columns["time"] = [formatting.duration(1000 * result.seconds) for result in results]
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def _paths(results: Sequence["RunRecord"]) -> list[tuple[str, str]]:
    tables: dict[str, Path | str] = {name: path for result in results for name, path in result.tables.items()}
    paths = [(f"table {name}", cells.shown_path(path)) for name, path in tables.items()]
    if len(results) <= FOLDERS_LISTED:
        paths += [(f"run {result.pipeline}", cells.shown_path(result.folder)) for result in results]
        return paths + [(f"report {each.pipeline}", cells.shown_path(each.report)) for each in results if each.report]
    from spark_app.report.index import INDEX

    parents = dict.fromkeys(result.folder.parent for result in results)
    paths += [("runs", f"{len(results)} folders in {cells.shown_path(parent)}") for parent in parents]
    lists = dict.fromkeys(f"{each.report.rpartition('/')[0]}/{INDEX}" for each in results if each.report)
    return paths + [("reports", cells.shown_path(each)) for each in lists]

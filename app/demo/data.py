"""`spark-app data`: generates days of the demo shop, with a ledger of the planted faults."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.demo import DEMO_ROWS, DEMO_SEED
from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import ConfigError

if TYPE_CHECKING:
    from app.demo.ledger import Ledger
    from spark_app.commands.terminal import Terminal

PARTS: Final = ("valid", "quarantined", "duplicates")


def data(
    *,
    date: options.Date = None,
    first: options.From = None,
    last: options.To = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Transactions per day.")] = DEMO_ROWS,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", min=0, help="The same seed generates the same rows.")
    ] = DEMO_SEED,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Generate raw files of the demo shop, with planted faults, for one day or a range of days."""
    chosen = options.days(date, first, last)
    # numpy and pyarrow are imported only now, so that --help and usage errors answer at once.
    from app.demo.ledger import Day
    from app.demo.shop import write_day
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    folder = local_folder("raw.path", settings.raw_path)
    formats, currency = settings.raw.formats, settings.currency
    days = [Day(date=day, rows=rows, seed=seed, currency=currency, formats=formats) for day in chosen]
    ledgers: list[Ledger] = []
    with terminal:
        for day in days:
            with terminal.counting(f"generating {day.date}", day.rows) as written:
                ledgers += write_day(folder, day, progress=written).values()
            terminal.note(f"{day.date}: generated {formatting.quantity(day.rows, 'transaction')}")
    if json:
        terminal.answer(folder=folder, ledgers=ledgers)
    else:
        listing(terminal, ledgers, folder=folder)


def local_folder(key: str, path: str) -> Path:
    """The local folder that a path or a `file:` URI, which is configured under a key, names.

    Raises:
        ConfigError: The URI is not local.
    """
    from spark_app.local_files import local_path

    folder = local_path(path)
    if folder is None:
        raise ConfigError(f"{key} is {path}: demo data can be generated only in a local folder")
    return folder


def listing(terminal: "Terminal", ledgers: Sequence["Ledger"], *, folder: Path) -> None:
    """Prints the rows, the planted faults by kind over all days, and the folders of the files."""
    planted: dict[str, Counter[str]] = {ledger.source: Counter() for ledger in ledgers}
    rows = []
    for ledger in ledgers:
        planted[ledger.source] += Counter(ledger.planted)
        counts = [ledger.rows, *(ledger.parts[part] for part in PARTS)]
        rows.append([ledger.plan.name, ledger.source, *map(formatting.count, counts)])
    terminal.line()
    terminal.table(("date", "source", "rows", *PARTS), rows, right=("rows", *PARTS))
    table_of_faults(terminal, planted)
    terminal.line()
    terminal.facts([(source, cells.shown_path(folder / source)) for source in planted])


def table_of_faults(terminal: "Terminal", planted: Mapping[str, Mapping[str, int]]) -> None:
    """Prints how often each kind of fault was planted, in a column for each of several things; nothing without one."""
    kinds = dict.fromkeys(kind for counts in planted.values() for kind, count in counts.items() if count)
    names = [name for name, counts in planted.items() if any(counts.values())]
    if kinds:
        rows = [[kind, *(formatting.count(planted[name].get(kind, 0)) for name in names)] for kind in kinds]
        terminal.line()
        terminal.table(("planted fault", *names), rows, right=names)

"""`spark-app data`: made days of the demo shop, with a ledger of the faults planted in them."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app import amounts
from app.commands import cells, options
from app.errors import ConfigError
from app.samples import DEMO_ROWS, DEMO_SEED

if TYPE_CHECKING:
    from app.commands.terminal import Terminal
    from app.samples.ledger import Ledger
    from app.settings import Settings

SOURCES: Final = ("transactions", "customers")
PARTS: Final = ("rows", "valid", "quarantined", "duplicates")
BY_COLUMN: Final = {"nulls": "null", "wrong_type": "wrong type"}
BY_KIND: Final = {
    "malformed": "malformed",
    "negative_amounts": "negative amount",
    "unknown_status": "unknown status",
    "unknown_segment": "unknown segment",
    "unknown_customer": "unknown customer",
    "other_day": "of another day",
    "other_currency": "other currency",
    "exact_duplicates": "exact duplicate",
    "older_versions": "older version of a key",
    "outliers": "outlier (valid)",
    "hot_key_rows": "of the one hot customer (valid)",
}


def data(
    *,
    date: options.Date = None,
    first: options.From = None,
    last: options.To = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Transactions per day.")] = DEMO_ROWS,
    seed: Annotated[
        int, typer.Option("--seed", metavar="S", min=0, help="The same seed makes the same files.")
    ] = DEMO_SEED,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Make raw files of the demo shop, faults included, for one day or each day of a range."""
    chosen = options.days(date, first, last)
    # What makes the rows is imported only now: --help and a wrong argument answer at once.
    from app.commands.terminal import Terminal
    from app.settings import load_settings

    settings = load_settings(config)
    folder = local_folder(settings.raw_path)
    terminal = Terminal()
    with terminal:
        ledgers = [
            ledger
            for day in chosen
            for ledger in made(settings, folder, date=day, rows=rows, seed=seed, terminal=terminal)
        ]
    if json:
        terminal.answer(folder=folder, ledgers=ledgers)
    else:
        listing(terminal, ledgers, folder=folder)


def local_folder(path: str) -> Path:
    """The folder of this machine that a path or a `file:` URI names.

    Raises:
        ConfigError: It names a place that only Spark can write to.
    """
    from app.folders import local

    folder = local(path)
    if folder is None:
        raise ConfigError(f"raw.path is {path}: days can be made only in a folder of this machine")
    return folder


def made(
    settings: "Settings", folder: Path, *, date: datetime.date, rows: int, seed: int, terminal: "Terminal"
) -> list["Ledger"]:
    """Makes one day of both sources; gives a ledger for each.

    Raises:
        UsageError: The day is there, and not all of it was made by this program.
    """
    from app.samples.shop import write_day

    with terminal.counting(f"making {date}", rows) as written:
        ledgers = write_day(
            folder,
            date=date,
            rows=rows,
            seed=seed,
            formats=settings.raw.formats,
            currency=settings.currency,
            progress=written,
        )
    terminal.note(f"{date}: made {amounts.count(rows)} transactions")
    return [ledgers[source] for source in SOURCES]


def listing(terminal: "Terminal", ledgers: Sequence["Ledger"], *, folder: Path) -> None:
    """Prints how many rows there are, how many faults of each kind, and where the files are."""
    terminal.line()
    terminal.table(
        ("date", "source", *PARTS),
        [[str(ledger.date), ledger.source, *_numbers(ledger, PARTS)] for ledger in ledgers],
        right=PARTS,
    )
    terminal.line()
    terminal.table(("planted", *SOURCES), list(_faults(ledgers)), right=SOURCES)
    terminal.line()
    terminal.facts([(source, cells.place(folder / source)) for source in SOURCES])


def _numbers(ledger: "Ledger", names: Sequence[str]) -> list[str]:
    return [amounts.count(getattr(ledger, name)) for name in names]


def _faults(ledgers: Sequence["Ledger"]) -> Iterator[list[str]]:
    """A row per kind of fault with its number in each source, all days together; kinds that nobody has are left out."""
    for name, text in BY_KIND.items():
        yield from _fault(text, ledgers, attrgetter(name))
    for name, text in BY_COLUMN.items():
        for column in dict.fromkeys(column for ledger in ledgers for column in getattr(ledger, name)):
            yield from _fault(f"{text} {column}", ledgers, _of_column(name, column))


def _of_column(name: str, column: str) -> Callable[["Ledger"], int]:
    return lambda ledger: int(getattr(ledger, name).get(column, 0))


def _fault(text: str, ledgers: Sequence["Ledger"], count: Callable[["Ledger"], int]) -> Iterator[list[str]]:
    totals = [sum(count(ledger) for ledger in ledgers if ledger.source == source) for source in SOURCES]
    if any(totals):
        yield [text, *[amounts.count(total) for total in totals]]

"""`spark-app data`: generates days of the demo shop, with a ledger of the planted faults."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app.demo import DEMO_ROWS, DEMO_SEED
from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import ConfigError

if TYPE_CHECKING:
    from app.demo.ledger import Ledger
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import Settings

SOURCES: Final = ("transactions", "customers", "refunds")
FAULTY: Final = ("transactions", "customers")
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
        int, typer.Option("--seed", metavar="S", min=0, help="The same seed generates the same rows.")
    ] = DEMO_SEED,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Generate raw files of the demo shop, with planted faults, for one day or a range of days."""
    chosen = options.days(date, first, last)
    # numpy and pyarrow are imported only now, so that --help and usage errors answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    settings = load_settings(config)
    folder = local_folder(settings.raw_path)
    terminal = Terminal()
    with terminal:
        ledgers = [
            ledger
            for day in chosen
            for ledger in generate(settings, folder, date=day, rows=rows, seed=seed, terminal=terminal)
        ]
    if json:
        terminal.answer(folder=folder, ledgers=ledgers)
    else:
        listing(terminal, ledgers, folder=folder)


def local_folder(path: str) -> Path:
    """The local folder that a path or a `file:` URI names.

    Raises:
        ConfigError: The URI is not local.
    """
    from spark_app.local_files import local_path

    folder = local_path(path)
    if folder is None:
        raise ConfigError(f"raw.path is {path}: demo data can be generated only in a local folder")
    return folder


def generate(
    settings: "Settings", folder: Path, *, date: datetime.date, rows: int, seed: int, terminal: "Terminal"
) -> list["Ledger"]:
    """Generates one day of all sources and returns their ledgers.

    Raises:
        UsageError: The folder of the day holds files that spark-app did not generate.
    """
    from app.demo import refunds
    from app.demo.shop import day_folder, require_generated, write_day

    require_generated(day_folder(folder, refunds.SOURCE, date))  # before any other source is replaced
    of: dict[str, Any] = {"rows": rows, "seed": seed, "formats": settings.raw.formats, "currency": settings.currency}
    with terminal.counting(f"generating {date}", rows) as written:
        ledgers = write_day(folder, date=date, progress=written, **of)
    ledgers[refunds.SOURCE] = refunds.write_refunds(folder, date=date, **of)
    terminal.note(f"{date}: generated {formatting.quantity(rows, 'transaction')}")
    return [ledgers[source] for source in SOURCES]


def listing(terminal: "Terminal", ledgers: Sequence["Ledger"], *, folder: Path) -> None:
    """Prints the rows, the planted faults by kind, and the folders of the files."""
    terminal.line()
    terminal.table(
        ("date", "source", *PARTS),
        [[str(ledger.date), ledger.source, *_numbers(ledger, PARTS)] for ledger in ledgers],
        right=PARTS,
    )
    terminal.line()
    terminal.table(("planted fault", *FAULTY), list(_faults(ledgers)), right=FAULTY)
    terminal.line()
    terminal.facts([(source, cells.place(folder / source)) for source in SOURCES])


def _numbers(ledger: "Ledger", names: Sequence[str]) -> list[str]:
    return [formatting.count(getattr(ledger, name)) for name in names]


def _faults(ledgers: Sequence["Ledger"]) -> Iterator[list[str]]:
    """A row per kind of fault with its count in each source over all days, without kinds that do not occur."""
    for name, text in BY_KIND.items():
        yield from _fault(text, ledgers, attrgetter(name))
    for name, text in BY_COLUMN.items():
        for column in dict.fromkeys(column for ledger in ledgers for column in getattr(ledger, name)):
            yield from _fault(f"{text} {column}", ledgers, _of_column(name, column))


def _of_column(name: str, column: str) -> Callable[["Ledger"], int]:
    return lambda ledger: int(getattr(ledger, name).get(column, 0))


def _fault(text: str, ledgers: Sequence["Ledger"], count: Callable[["Ledger"], int]) -> Iterator[list[str]]:
    totals = [sum(count(ledger) for ledger in ledgers if ledger.source == source) for source in FAULTY]
    if any(totals):
        yield [text, *[formatting.count(total) for total in totals]]

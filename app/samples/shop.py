"""Made days of an online shop: raw files of both sources, and a ledger of the faults planted in them."""

import datetime
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from app.errors import UsageError
from app.samples.customers import Customers
from app.samples.formats import FORMATS, write_files
from app.samples.ledger import LEDGER_NAME, Ledger, read_ledger, write_ledger
from app.samples.publishing import draft, publish, writing
from app.samples.transactions import Transactions

# Before it the shop's customers have not all signed up; beyond this many rows the customers' numbers run out.
FIRST_DATE: Final = datetime.date(2012, 1, 1)
MOST_ROWS: Final = 190_000_000

# In the order of publication: where there are transactions, their customers are there already.
SOURCES: Final = ("customers", "transactions")

# What is made, and the checksums that Hadoop keeps beside what it copies.
_OURS: Final = re.compile(rf"part-\d{{5,}}\.({'|'.join(FORMATS)})|{LEDGER_NAME}|\..+\.crc")


def day_folder(folder: Path, source: str, date: datetime.date) -> Path:
    """Where a source's files of one day are."""
    return folder / source / f"date={date.isoformat()}"


def write_day(
    folder: Path,
    *,
    date: datetime.date,
    rows: int,
    seed: int,
    formats: Mapping[str, str],
    currency: str = "EUR",
    replace: bool = True,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Ledger]:
    """Makes the transactions and the customers of one day; each appears at once or not at all.

    The same arguments give the same bytes. A day that was made before is replaced, unless it is the same already;
    one that holds anything else is left as it is.

    Args:
        folder: The raw folder, of which `transactions/` and `customers/` are parts.
        date: The day.
        rows: Lines of transactions; the number of customers follows from it.
        seed: What all rows are drawn from. Customers of two days fit together if seed and rows are the same.
        formats: For each source `json`, `json.gz`, `csv` or `parquet`.
        currency: The shop's own currency.
        replace: Whether another making of the day may be replaced.
        progress: Called with how many more transactions are written.

    Returns:
        The ledger of each source.

    Raises:
        UsageError: There can be no such day, or what is there may not be replaced.
        MachineError: The folder cannot be written to.
    """
    _require_possible(date, rows, formats)
    made: dict[str, Customers | Transactions] = {
        "customers": Customers(date=date, rows=rows, seed=seed, file_format=formats["customers"]),
        "transactions": Transactions(
            date=date, rows=rows, seed=seed, file_format=formats["transactions"], currency=currency
        ),
    }
    targets = {source: day_folder(folder, source, date) for source in SOURCES}
    for target in targets.values():
        _require_ours(target)
    notified = {"customers": _ignored, "transactions": progress or _ignored}
    with ExitStack() as drafts, writing(folder):
        folders = {source: drafts.enter_context(draft(target)) for source, target in targets.items()}
        for source, rows_of in made.items():
            write_files(folders[source], rows_of.chunks(), file_format=formats[source], written=notified[source])
            write_ledger(folders[source], rows_of.ledger())
        for source, target in targets.items():
            _require_ours(target)  # making may have taken long
            if not replace:
                _require_same(target, made[source].ledger())
        for source in SOURCES:
            publish(folders[source], targets[source])
    return {source: rows_of.ledger() for source, rows_of in made.items()}


def _require_ours(target: Path) -> None:
    """Makes sure that nobody's files are deleted: a folder with a ledger and with files of ours only may be replaced.

    Raises:
        UsageError: There is another file, hidden or not.
    """
    try:
        names = sorted(path.name for path in target.iterdir())
    except (FileNotFoundError, NotADirectoryError):  # nothing is there, or another maker has just put it away
        return
    is_made = LEDGER_NAME in names
    for name in names:
        if not (is_made and _OURS.fullmatch(name)):
            raise UsageError(f"{target / name} was not made by this program and would be deleted: move it away first")


def _require_same(target: Path, ledger: Ledger) -> None:
    if (target / LEDGER_NAME).exists() and read_ledger(target) != ledger:
        raise UsageError(f"{target} is of another making and would be replaced: delete it, or make the day anew")


def _require_possible(date: datetime.date, rows: int, formats: Mapping[str, str]) -> None:
    if not 1 <= rows <= MOST_ROWS:
        raise UsageError(f"rows must be from 1 to {MOST_ROWS:,}, not {rows:,}")
    if date < FIRST_DATE:
        raise UsageError(f"days can be made from {FIRST_DATE} on, not for {date}")
    for source in SOURCES:
        if formats.get(source) not in FORMATS:
            raise UsageError(f"format of {source} must be one of {', '.join(FORMATS)}, not {formats.get(source)}")


def _ignored(rows: int) -> None:
    """Takes a progress report that nobody waits for."""

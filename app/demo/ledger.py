"""The ledger of a generated day: its rows, and the number of planted faults of each kind."""

import datetime
from pathlib import Path
from typing import Final

import msgspec

from spark_app.errors import InputError

LEDGER_NAME: Final = "_ledger.json"


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Row and fault counts of one source on one day; the counts of the pipeline must equal them exactly.

    A row has at most one fault, so `rows == valid + quarantined + duplicates`. Columns that a fault can hit are listed
    even if the count is 0. A kind of fault that the source does not have counts 0.

    Attributes:
        source: `transactions`, `customers` or `refunds`.
        date: The day.
        seed: The seed of the rows.
        format: `json`, `json.gz`, `csv` or `parquet`.
        rows: All lines, with malformed ones, without CSV headers.
        valid: Rows to be published, with outliers: one per key; for customers one per key and `updated_at`.
        quarantined: Rows with a fault that quarantines them.
        duplicates: Valid rows to be removed: `exact_duplicates`, and `older_versions` except of customers.
        exact_duplicates: Lines that repeat another line byte for byte.
        older_versions: Valid rows with a later version of the same key (`updated_at`); the history of customers keeps
            them, so there they are `valid`.
        malformed: Lines that cannot be parsed.
        nulls: Planted nulls by column, among rows that parse.
        wrong_type: Values of a wrong type, by column.
        negative_amounts: Rows with an amount below zero.
        outliers: Valid rows with an amount beyond mean + 3 sigma.
        unknown_status: Rows with an unknown status.
        unknown_segment: Rows with an unknown segment.
        unknown_customer: Rows of a customer that is in no customers file.
        other_day: Rows that were created on another day.
        other_currency: Rows in another currency than the configured one.
        hot_key: The customer with far more rows than any other: skew, not a fault.
        hot_key_rows: Parseable rows of the hot customer.
    """

    source: str
    date: datetime.date
    seed: int
    format: str
    rows: int
    valid: int
    quarantined: int
    duplicates: int
    exact_duplicates: int
    older_versions: int
    malformed: int
    nulls: dict[str, int]
    wrong_type: dict[str, int]
    negative_amounts: int = 0
    outliers: int = 0
    unknown_status: int = 0
    unknown_segment: int = 0
    unknown_customer: int = 0
    other_day: int = 0
    other_currency: int = 0
    hot_key: str | None = None
    hot_key_rows: int = 0


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Writes the ledger into the folder of its day, under a name that Spark ignores."""
    (folder / LEDGER_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(ledger), indent=2) + b"\n")


def read_ledger(folder: Path) -> Ledger:
    """The ledger of a generated day.

    Raises:
        InputError: The file is missing or cannot be read.
    """
    path = folder / LEDGER_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ledger)
    except OSError as error:
        raise InputError(f"cannot read ledger {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is not a ledger: {error}") from error

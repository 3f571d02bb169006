"""The ledger of a made day: how many rows it has, and how many faults of each kind were planted in them."""

import datetime
from pathlib import Path
from typing import Final

import msgspec

from app.errors import InputError

LEDGER_NAME: Final = "_ledger.json"


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What one source has on one day; the figures of the pipeline's quality must equal these exactly.

    A row carries at most one fault, so `rows == valid + quarantined + duplicates`. Columns that a fault can
    hit are listed even where the count is 0. A figure that the source has no such fault for is 0.

    Attributes:
        source: `transactions` or `customers`.
        date: The day.
        seed: What the rows were drawn from.
        format: `json`, `json.gz`, `csv` or `parquet`.
        rows: All lines, malformed ones too (the header of a CSV file is none).
        valid: Rows to be published, outliers among them: one per key; of customers one per key and `updated_at`.
        quarantined: Rows with a fault that keeps them out.
        duplicates: Valid rows to be left out: `exact_duplicates` and, but for customers, `older_versions`.
        exact_duplicates: Lines that repeat another line byte by byte.
        older_versions: Valid rows of which another valid row has the same key and a later `updated_at`; the history of
            customers keeps them, so there they are `valid`.
        malformed: Lines that are no row.
        nulls: Planted nulls by column, among rows that parse.
        wrong_type: Values that are not of their column's type, by column.
        negative_amounts: Rows with an amount below zero.
        outliers: Valid rows with an amount beyond mean + 3 sigma.
        unknown_status: Rows with a status that is none of the known ones.
        unknown_segment: Rows with a segment that is none of the known ones.
        unknown_customer: Rows of a customer that no customers file knows.
        other_day: Rows that were created on another day.
        other_currency: Rows in another currency than the configured one.
        hot_key: The customer that has far more rows than any other; skew, no fault.
        hot_key_rows: Rows that parse and belong to the hot customer.
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
    """Writes the ledger into the folder of its day, under a name that Spark does not see."""
    (folder / LEDGER_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(ledger), indent=2) + b"\n")


def read_ledger(folder: Path) -> Ledger:
    """The ledger in the folder of a made day.

    Raises:
        InputError: There is none, or it cannot be read.
    """
    path = folder / LEDGER_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ledger)
    except OSError as error:
        raise InputError(f"cannot read ledger {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is not a ledger: {error}") from error

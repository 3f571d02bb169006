"""Counts the faults of a made day by plain Python from its files alone, to compare with the day's ledger."""

import csv
import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

Row = dict[str, Any]

COLUMNS: Final = {
    "transactions": [
        *("transaction_id", "customer_id", "product_id", "category", "quantity", "amount", "currency", "status"),
        *("payment_method", "channel", "country", "created_at", "updated_at"),
    ],
    "customers": ["customer_id", "segment", "country", "signed_up_at", "updated_at"],
}
ALLOWED: Final = {
    "status": {"completed", "pending", "failed", "refunded"},
    "segment": {"consumer", "business", "vip"},
    "category": {"electronics", "fashion", "grocery", "home", "toys", "books"},
    "payment_method": {"card", "paypal", "bank_transfer", "gift_card"},
    "channel": {"web", "app", "store"},
}
PATTERNS: Final = {"transaction_id": r"t-\d{8}-\d{7}", "customer_id": r"c-\d{7}", "product_id": r"p-\d{5}"}
INSTANT: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@dataclass
class Recount:
    """What the files of one source hold.

    Attributes:
        rows: All lines.
        faults: How many rows have which fault, by the names of the ledger.
        most_faults: The most faults that one row has.
        valid: The rows without a fault, as text and parsed, further versions and copies of a key among them.
        rows_of: How many rows that parse each customer has.
    """

    rows: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    most_faults: int = 0
    valid: list[tuple[str, Row]] = field(default_factory=list)
    rows_of: Counter[str] = field(default_factory=Counter)

    def by_key(self, key: str) -> dict[str, list[tuple[str, Row]]]:
        """The valid rows of each key."""
        grouped: dict[str, list[tuple[str, Row]]] = {}
        for text, row in self.valid:
            grouped.setdefault(row[key], []).append((text, row))
        return grouped

    def published(self, key: str) -> dict[str, Row]:
        """Of each key the valid row that was updated last."""
        return {
            value: max((row for _, row in rows), key=lambda row: row["updated_at"])
            for value, rows in self.by_key(key).items()
        }

    def exact_duplicates(self, key: str) -> int:
        """How many rows repeat another one character by character."""
        return sum(len(rows) - len({text for text, _ in rows}) for rows in self.by_key(key).values())

    def older_versions(self, key: str) -> int:
        """How many rows have a newer version of other content."""
        return sum(len({text for text, _ in rows}) - 1 for rows in self.by_key(key).values())


def recounted(
    folder: Path, source: str, date: datetime.date, *, customers: set[str] | None = None, currency: str = "EUR"
) -> Recount:
    """Reads every file of a source's day and looks at every row."""
    found = Recount()
    for text, row in read_rows(folder / source / f"date={date}", source):
        found.rows += 1
        reasons = ["malformed"] if row is None else list(faults_of(row, source, date, customers, currency))
        found.faults.update(reasons)
        found.most_faults = max(found.most_faults, len(reasons))
        if row is not None:
            found.rows_of[row["customer_id"]] += 1
        if row is not None and not reasons:
            found.valid.append((text, row))
    return found


def read_rows(folder: Path, source: str) -> Iterator[tuple[str, Row | None]]:
    """Each row as text and parsed; None for a line that is no row."""
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            yield from ((repr(row), as_text(row)) for row in pq.read_table(path).to_pylist())
        elif path.suffix == ".csv":
            yield from csv_rows(path.read_text(), source)
        else:
            yield from ((line, json_row(line)) for line in path.read_text().splitlines())


def json_row(line: str) -> Row | None:
    """The object of a line, its numbers exact; None if it is none."""
    try:
        row = json.loads(line, parse_float=Decimal)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def csv_rows(text: str, source: str) -> Iterator[tuple[str, Row | None]]:
    """The rows of a CSV file; the header must be the schema."""
    header, *lines = text.splitlines()
    assert header.split(",") == COLUMNS[source]
    for line in lines:
        values = [value or None for value in next(csv.reader([line]))]
        yield line, dict(zip(COLUMNS[source], values, strict=True)) if len(values) == len(COLUMNS[source]) else None


def as_text(row: Row) -> Row:
    """A row of Parquet with instants written as in the text formats."""
    return {
        name: value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime.datetime) else value
        for name, value in row.items()
    }


def faults_of(row: Row, source: str, date: datetime.date, customers: set[str] | None, currency: str) -> Iterator[str]:
    """Everything that is wrong with a row."""
    assert list(row) == COLUMNS[source]
    for name, value in row.items():
        if value is None:
            yield f"null_{name}"
        elif not is_typed(name, value):
            yield f"wrong_type_{name}"
        elif name in ALLOWED and value not in ALLOWED[name]:
            yield f"unknown_{name}"
        elif name == "amount" and Decimal(value) < 0:
            yield "negative_amount"
        elif name == "currency" and value != currency:
            yield "other_currency"
        elif name == "created_at" and value[:10] != date.isoformat():
            yield "other_day"
        elif name == "customer_id" and customers is not None and value not in customers:
            yield "unknown_customer"


def is_typed(name: str, value: Any) -> bool:
    """Whether a value can be of its column's type."""
    if name == "amount":
        return is_money(value)
    if name == "quantity":
        return re.fullmatch(r"[1-9]", str(value)) is not None
    if name.endswith("_at"):
        return re.fullmatch(INSTANT, value) is not None
    return re.fullmatch(PATTERNS.get(name, r"\w+"), value) is not None


def is_money(value: Any) -> bool:
    """Whether a value is a number with two decimals."""
    try:
        return Decimal(value).as_tuple().exponent == -2
    except InvalidOperation:
        return False


def beyond_three_sigma(amounts: list[Decimal]) -> int:
    """How many amounts are more than three standard deviations above the mean."""
    numbers = [float(amount) for amount in amounts]
    mean = math.fsum(numbers) / len(numbers)
    sigma = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / len(numbers))
    return sum(number > mean + 3 * sigma for number in numbers)

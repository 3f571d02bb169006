"""The faults that are planted: a fixed share of each, the same every day, spread evenly over lines and records."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from app.demo.draws import Codes, Draws, Ints

# Parts of 10,000, by kind. A line or record has at most one.
TRANSACTION_SHARES: Final = {
    **{f"null_{column}": 3 for column in ("transaction_id", "customer_id", "amount", "currency", "status", "category")},
    "null_created_at": 2,
    "malformed": 10,
    "wrong_type_amount": 5,
    "wrong_type_quantity": 3,
    "wrong_type_created_at": 2,
    "negative_amount": 10,
    "outlier": 10,
    "unknown_status": 10,
    "unknown_customer": 10,
    "other_day": 20,
    "other_currency": 10,
    "exact_duplicate": 50,
    "older_version": 30,
}
CUSTOMER_SHARES: Final = {
    "null_segment": 10,
    "malformed": 10,
    "wrong_type_updated_at": 10,
    "unknown_segment": 10,
    "exact_duplicate": 20,
    "older_version": 20,
}
STREAM_SHARES: Final = {
    "duplicate_near": 100,
    "duplicate_far": 50,
    "late": 100,
    "out_of_order": 200,
    "very_late": 20,
    "not_json": 5,
    "wrong_type": 5,
    "no_event_id": 5,
    "cut": 5,
    "not_utf8": 5,
    "negative_amount": 5,
    "hot_user": 500,
    "unknown_user": 50,
    "late_click": 20,
    "unknown_click": 20,
}
PARTS: Final = 10_000
DUPLICATES: Final = ("exact_duplicate", "older_version")
VALID: Final = ("outlier", *DUPLICATES)
"""Kinds whose rows are valid; the rows of all other kinds of a day are quarantined."""
TEXT_ONLY: Final = (
    "malformed",
    *(kind for kind in TRANSACTION_SHARES | CUSTOMER_SHARES if kind.startswith("wrong_type_")),
)
"""Kinds that Parquet cannot hold."""
EVERY_KIND_FROM: Final = 1_000
"""From so many transactions on every kind of fault is planted at least once."""
_GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2


class Layout:
    """Which line is of which kind: exact counts, spread evenly over the lines, with no memory of any line.

    Lines and slots are one-to-one by a multiplication modulo the number of lines. Slots are given to the kinds
    one after the other; what is left is of the last kind, `rest`.
    """

    def __init__(self, lines: int, counts: Mapping[str, int], draws: Draws) -> None:
        """Lays out so many lines, of which so many of each kind."""
        self.lines = lines
        self.kinds = {kind: code for code, kind in enumerate((*counts, "rest"))}
        self._starts = np.cumsum([0, *counts.values()])
        self._step = _coprime_near(int(lines * _GOLDEN_RATIO), lines)
        self._inverse = pow(self._step, -1, lines) if lines > 1 else 0
        self._shift = draws.integer("layout", lines)

    def at(self, lines: Ints) -> tuple[Codes, Ints]:
        """For each line the code of its kind and its index among the lines of that kind."""
        slots = (lines - self._shift) % self.lines * self._inverse % self.lines
        codes = np.searchsorted(self._starts, slots, side="right") - 1
        return codes.astype(np.int8), slots - self._starts[codes]

    def line(self, kind: str, indexes: Ints) -> Ints:
        """The lines that have these indexes among the lines of a kind."""
        slots = indexes + self._starts[self.kinds[kind]]
        lines: Ints = (slots * self._step + self._shift) % self.lines
        return lines


def _coprime_near(number: int, modulus: int) -> int:
    while math.gcd(number, modulus) != 1:
        number += 1
    return number

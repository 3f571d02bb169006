"""Which faults are planted, and how many of each: a fixed share, the same for every day."""

from collections.abc import Mapping
from typing import Final

from app.demo.formats import has_text_faults

# Parts of 10,000. The kind named `..._original` or `newer_version` is the row that a duplicate repeats or
# that replaces the older one: rows without a fault, set apart so that none is taken twice.
TRANSACTION_SHARES: Final = {
    "null": 20,
    "malformed": 10,
    "wrong_type": 10,
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
    "null": 10,
    "malformed": 10,
    "wrong_type": 10,
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
KEPT: Final = ("outlier",)
DUPLICATES: Final = ("exact_duplicate", "older_version")
TEXT_FAULTS: Final = ("malformed", "wrong_type")

# From so many transactions on every kind of fault is planted at least once.
EVERY_KIND_FROM: Final = 1_000


def planted(shares: Mapping[str, int], *, base: int, rows: int, file_format: str) -> dict[str, int]:
    """How many rows of each kind of fault there are.

    Args:
        shares: Parts of 10,000 by kind.
        base: What the shares are parts of.
        rows: Transactions of the day.
        file_format: Text formats hold all kinds; Parquet has neither malformed rows nor wrong types.
    """
    least = 1 if rows >= EVERY_KIND_FROM else 0
    counts = {kind: max(least, (base * share + 5_000) // 10_000) for kind, share in shares.items()}
    if not has_text_faults(file_format):
        counts.update(dict.fromkeys(TEXT_FAULTS, 0))
    return counts


def quarantined(counts: Mapping[str, int]) -> int:
    """How many rows the faults keep out."""
    return sum(count for kind, count in counts.items() if kind not in KEPT + DUPLICATES)


def spread(count: int, over: tuple[str, ...]) -> dict[str, int]:
    """How often each of the targets is hit when they take turns; a target that is listed twice has two turns."""
    hits = dict.fromkeys(over, 0)
    for turn, target in enumerate(over):
        hits[target] += (count - turn + len(over) - 1) // len(over)
    return hits

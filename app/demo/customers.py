"""Generated customers of one day: all customers of the shop at the end of that day."""

import datetime
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from app.demo import columns, faults
from app.demo.columns import DAY_US
from app.demo.draws import Codes, Draws, Ints, Layout
from app.demo.formats import CHUNK_ROWS
from app.demo.ledger import Ledger
from app.demo.text import Chunk, Misfit

SCHEMA: Final = pa.schema(
    {
        "customer_id": columns.TEXT,
        "segment": columns.CHOICE,
        "country": columns.CHOICE,
        "signed_up_at": columns.INSTANT,
        "updated_at": columns.INSTANT,
    }
)
COUNTRIES: Final = ("DE", "FR", "NL", "AT", "BE", "ES", "IT", "IE", "FI", "PT")
# All sign up long before the first day that can be generated, so that every transaction has its customer.
SIGNED_UP_FROM: Final = datetime.date(2010, 1, 1)
SIGNED_UP_DAYS: Final = 600
# Customers change once in each period. The next change always differs: segments follow this round, one step on.
CHANGE_DAYS: Final = 30
SEGMENTS: Final = ("consumer", "business", "vip", "partner")
UNKNOWN_SEGMENT: Final = 3
_SEGMENT_ROUND: Final = np.array([0, 1, 0, 2], dtype=np.int8)

# Numbers that no customer has: of rows with a fault here, and of transactions with an unknown customer.
FAULTY_FROM: Final = 9_800_001
UNKNOWN_FROM: Final = 9_900_001


def customer_count(rows: int) -> int:
    """How many customers a shop with so many transactions a day has: numbers 1 to this."""
    return max(50, rows // 20)


class Customers:
    """The customers of one day, row by row and counted."""

    def __init__(self, *, date: datetime.date, rows: int, seed: int, file_format: str) -> None:
        """The customers of a day that has so many transactions."""
        self.date, self.seed, self.file_format = date, seed, file_format
        self.count = customer_count(rows)
        self.counts = faults.planted(faults.CUSTOMER_SHARES, base=self.count, rows=rows, file_format=file_format)
        self.lines = self.count + sum(self.counts.values())
        self._draws = Draws(seed, "customers")
        today = Draws(seed, "customers", date)
        self._layout = Layout(self.lines, self.counts, today)
        self._repeated_from = today.integer("repeated", self.count)

    def ledger(self) -> Ledger:
        """Row and fault counts."""
        counts = self.counts
        return Ledger(
            source="customers",
            date=self.date,
            seed=self.seed,
            format=self.file_format,
            rows=self.lines,
            valid=self.count + counts["older_version"],
            quarantined=faults.quarantined(counts),
            duplicates=counts["exact_duplicate"],
            exact_duplicates=counts["exact_duplicate"],
            older_versions=counts["older_version"],
            malformed=counts["malformed"],
            nulls={"segment": counts["null"]},
            wrong_type={"updated_at": counts["wrong_type"]},
            unknown_segment=counts["unknown_segment"],
        )

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in chunks that are generated one at a time."""
        for start in range(0, self.lines, CHUNK_ROWS):
            yield self._chunk(np.arange(start, min(start + CHUNK_ROWS, self.lines)))

    def _chunk(self, lines: Ints) -> Chunk:
        kinds, indexes = self._layout.at(lines)
        is_kind = {kind: kinds == code for kind, code in self._layout.kinds.items()}
        numbers = self._numbers(kinds, indexes)
        signed_up, changed, version = self._history(numbers, is_kind["older_version"])
        segments = self._segments(numbers, version)
        segments[is_kind["unknown_segment"]] = UNKNOWN_SEGMENT
        countries = (self._draws.below("country", numbers, len(COUNTRIES)) + (version + 1) // 2) % len(COUNTRIES)
        rows = pa.record_batch(
            [
                columns.identifiers("c-", numbers, width=7),
                columns.choice(SEGMENTS, segments, null=is_kind["null"]),
                columns.choice(COUNTRIES, countries.astype(np.int8)),
                columns.instants(signed_up),
                columns.instants(changed),
            ],
            schema=SCHEMA,
        )
        misfits = [Misfit(int(row), "updated_at", "yesterday") for row in np.flatnonzero(is_kind["wrong_type"])]
        return Chunk(rows, misfits, np.flatnonzero(is_kind["malformed"]).tolist())

    def _numbers(self, kinds: Codes, indexes: Ints) -> Ints:
        """The customers' numbers. Faulty rows are extra ones, so that no customer is missing because of them."""
        code = self._layout.kinds
        repeated = self._repeated_from + indexes
        repeated[kinds == code["older_version"]] += self.counts["exact_duplicate"]
        numbers = 1 + np.where(kinds == code["rest"], indexes, repeated % self.count)
        before = 0
        for kind in ("null", "malformed", "wrong_type", "unknown_segment"):
            numbers = np.where(kinds == code[kind], FAULTY_FROM + before + indexes, numbers)
            before += self.counts[kind]
        return numbers

    def _history(self, numbers: Ints, is_older: columns.Mask) -> tuple[Ints, Ints, Ints]:
        """When each signed up, was changed last (or the time before that), and in which period that was."""
        start = columns.midnight(SIGNED_UP_FROM)
        signed_up = self._draws.between("signed up", numbers, start, start + SIGNED_UP_DAYS * DAY_US)
        period = np.full(len(numbers), self.date.toordinal() // CHANGE_DAYS)
        is_to_come = self._changed_at(numbers, period) >= columns.midnight(self.date) + DAY_US
        period -= is_to_come
        period -= is_older
        return signed_up, np.maximum(self._changed_at(numbers, period), signed_up), period

    def _changed_at(self, numbers: Ints, period: Ints) -> Ints:
        """The instant in a period at which a customer changes."""
        start = columns.midnight(datetime.date.fromordinal(1)) - DAY_US
        within = self._draws.between("change", numbers * 65_536 + period, 0, CHANGE_DAYS * DAY_US - 1)
        return start + period * CHANGE_DAYS * DAY_US + within

    def _segments(self, numbers: Ints, version: Ints) -> Codes:
        """Every other change is one of the segment, the ones between are of the country."""
        turn = self._draws.below("segment", numbers, len(_SEGMENT_ROUND)) + version // 2
        segments: Codes = _SEGMENT_ROUND[turn % len(_SEGMENT_ROUND)]
        return segments

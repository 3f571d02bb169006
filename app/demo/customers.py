"""Generated customers of one day: all customers of the shop at the end of that day."""

import datetime
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from app.demo import files
from app.demo.draws import Draws, Ints, Mask
from app.demo.faults import CUSTOMER_SHARES, Layout
from app.demo.files import DAY_US, Chunk, line_numbers
from app.demo.ledger import Day

COUNTRIES: Final = ("DE", "FR", "NL", "AT", "BE", "ES", "IT", "IE", "FI", "PT")
# All sign up long before the first day that can be generated, so that every transaction has its customer.
SIGNED_UP_FROM: Final = datetime.date(2010, 1, 1)
SIGNED_UP_DAYS: Final = 600
# Customers change once in each period. The next change always differs: segments follow this round, one step on.
CHANGE_DAYS: Final = 30
SEGMENTS: Final = ("consumer", "business", "vip", "partner")
UNKNOWN_SEGMENT: Final = 3
_SEGMENT_ROUND: Final = np.array([0, 1, 0, 2], dtype=np.int8)

# Numbers that no customer has: of rows with a fault here, and of transactions and events with an unknown customer.
FAULTY_FROM: Final = 9_800_001
UNKNOWN_FROM: Final = 9_900_001
UNKNOWN: Final = 90_000


def customer_count(rows: int) -> int:
    """How many customers a shop with so many transactions a day has: numbers 1 to this."""
    return max(50, rows // 20)


class Customers:
    """The customers of one day, row by row and counted."""

    source: Final = "customers"

    def __init__(self, day: Day) -> None:
        self._count = customer_count(day.rows)
        self._date = day.date
        self.planted = day.planted(self.source, CUSTOMER_SHARES, self._count)
        self._draws, today = Draws(day.seed, "customers"), Draws(day.seed, "customers", day.date)
        self._layout = Layout(self._count + sum(self.planted.values()), self.planted, today)
        self._repeated_from = today.integer("repeated", self._count)

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in chunks that are generated one at a time."""
        return map(self._chunk, line_numbers(self._layout.lines))

    def _chunk(self, lines: Ints) -> Chunk:
        kinds, indexes = self._layout.at(lines)
        is_kind = {kind: kinds == code for kind, code in self._layout.kinds.items()}
        numbers = self._numbers(is_kind, indexes)
        signed_up, changed, version = self._history(numbers, is_kind["older_version"])
        # Every other change is one of the segment, the ones between are of the country.
        turn = self._draws.below("segment", numbers, len(_SEGMENT_ROUND)) + version // 2
        segments = _SEGMENT_ROUND[turn % len(_SEGMENT_ROUND)]
        segments[is_kind["unknown_segment"]] = UNKNOWN_SEGMENT
        countries = (self._draws.below("country", numbers, len(COUNTRIES)) + (version + 1) // 2) % len(COUNTRIES)
        rows = {
            "customer_id": files.identifiers("c-", numbers),
            "segment": files.choice(SEGMENTS, segments, null=is_kind["null_segment"]),
            "country": files.choice(COUNTRIES, countries.astype(np.int8)),
            "signed_up_at": files.instants(signed_up),
            "updated_at": files.instants(changed),
        }
        wrong = [("updated_at", "yesterday", is_kind["wrong_type_updated_at"])]
        return Chunk(pa.record_batch(rows), wrong, is_kind["malformed"])

    def _numbers(self, is_kind: dict[str, Mask], indexes: Ints) -> Ints:
        """The customers' numbers. Faulty rows are extra ones, so that no customer is missing because of them."""
        repeated = self._repeated_from + indexes
        repeated[is_kind["older_version"]] += self.planted["exact_duplicate"]
        numbers = 1 + np.where(is_kind["rest"], indexes, repeated % self._count)
        before = FAULTY_FROM
        for kind in ("null_segment", "malformed", "wrong_type_updated_at", "unknown_segment"):
            numbers = np.where(is_kind[kind], before + indexes, numbers)
            before += self.planted[kind]
        return numbers

    def _history(self, numbers: Ints, is_older: Mask) -> tuple[Ints, Ints, Ints]:
        """When each signed up and changed last, and the version of their attributes: the period of that change."""
        start = files.midnight(SIGNED_UP_FROM)
        signed_up = self._draws.between("signed up", numbers, start, start + SIGNED_UP_DAYS * DAY_US)
        period = np.full(len(numbers), self._date.toordinal() // CHANGE_DAYS)
        is_to_come = self._changed_at(numbers, period) >= files.midnight(self._date) + DAY_US
        period -= is_to_come
        period -= is_older
        return signed_up, np.maximum(self._changed_at(numbers, period), signed_up), period

    def _changed_at(self, numbers: Ints, period: Ints) -> Ints:
        """The instant in a period at which a customer changes."""
        start = files.midnight(datetime.date.fromordinal(1)) - DAY_US
        within = self._draws.between("change", numbers * 65_536 + period, 0, CHANGE_DAYS * DAY_US - 1)
        return start + period * CHANGE_DAYS * DAY_US + within

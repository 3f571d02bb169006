"""Generated transactions of one day: the sales of the shop, with planted faults as real feeds have them."""

import datetime
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from app.demo import columns, faults, sales
from app.demo.columns import DAY_US, HOUR_US, MINUTE_US, Mask
from app.demo.customers import UNKNOWN_FROM, customer_count
from app.demo.draws import Codes, Draws, Ints, Layout
from app.demo.formats import CHUNK_ROWS
from app.demo.ledger import Ledger
from app.demo.sales import Sales
from app.demo.text import Chunk, Misfit

SCHEMA: Final = pa.schema(
    {
        "transaction_id": columns.TEXT,
        "customer_id": columns.TEXT,
        "product_id": columns.TEXT,
        "category": columns.CHOICE,
        "quantity": pa.int32(),
        "amount": columns.MONEY,
        "currency": columns.CHOICE,
        "status": columns.CHOICE,
        "payment_method": columns.CHOICE,
        "channel": columns.CHOICE,
        "country": columns.CHOICE,
        "created_at": columns.INSTANT,
        "updated_at": columns.INSTANT,
    }
)
NULLED: Final = ("transaction_id", "customer_id", "amount", "currency", "status", "category", "created_at")
WRONG: Final = (("amount", "abc"), ("quantity", "two"), ("created_at", "yesterday"), ("amount", "12,50"))

STATUSES: Final = (*sales.STATUSES, "chargeback", "on_hold")
PUBLISHED: Final = ("outlier", "original", "newer_version", "rest")
"""The kinds of lines that are published."""
COMPLETED: Final = STATUSES.index("completed")
PENDING: Final = STATUSES.index("pending")
OTHER_CURRENCIES: Final = ("USD", "GBP", "CHF", "SEK", "EUR")
_UNKNOWN_CUSTOMERS: Final = 90_000
_OUTLIER_CENTS: Final = (25_000_00, 50_000_00)


class Transactions:
    """The transactions of one day, row by row and counted."""

    def __init__(self, *, date: datetime.date, rows: int, seed: int, file_format: str, currency: str) -> None:
        """The transactions of a day: so many lines in all."""
        self.date, self.rows, self.seed, self.file_format = date, rows, seed, file_format
        self._currencies = (currency, *(other for other in OTHER_CURRENCIES if other != currency))
        self._counts = faults.planted(faults.TRANSACTION_SHARES, base=rows, rows=rows, file_format=file_format)
        self._hot_rows = 0
        self._draws = Draws(seed, "transactions", date)
        faultless = {"original": self._counts["exact_duplicate"], "newer_version": self._counts["older_version"]}
        self._layout = Layout(rows, {**self._counts, **faultless}, self._draws)

    def ledger(self) -> Ledger:
        """Row and fault counts; complete once all chunks were generated."""
        counts = self._counts
        duplicates = counts["exact_duplicate"] + counts["older_version"]
        quarantined = faults.quarantined(counts)
        return Ledger(
            source="transactions",
            date=self.date,
            seed=self.seed,
            format=self.file_format,
            rows=self.rows,
            valid=self.rows - quarantined - duplicates,
            quarantined=quarantined,
            duplicates=duplicates,
            exact_duplicates=counts["exact_duplicate"],
            older_versions=counts["older_version"],
            malformed=counts["malformed"],
            nulls=faults.spread(counts["null"], NULLED),
            wrong_type=faults.spread(counts["wrong_type"], tuple(column for column, _ in WRONG)),
            negative_amounts=counts["negative_amount"],
            outliers=counts["outlier"],
            unknown_status=counts["unknown_status"],
            unknown_customer=counts["unknown_customer"],
            other_day=counts["other_day"],
            other_currency=counts["other_currency"],
            hot_key=f"c-{sales.HOT_CUSTOMER:07}",
            hot_key_rows=self._hot_rows,
        )

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in chunks that are generated one at a time."""
        for start in range(0, self.rows, CHUNK_ROWS):
            yield self._chunk(np.arange(start, min(start + CHUNK_ROWS, self.rows)))

    def published(self, lines: Ints) -> Sales:
        """The sales of those of these lines that a run publishes: valid, and of each key the newest version."""
        sold, kinds, _ = self._sold(lines)
        is_published = np.isin(kinds, [self._layout.kinds[kind] for kind in PUBLISHED])
        return sales.where(sold, is_published)

    def _chunk(self, lines: Ints) -> Chunk:
        sold, kinds, indexes = self._sold(lines)
        null = {column: self._of(kinds, "null") & (indexes % len(NULLED) == turn) for turn, column in enumerate(NULLED)}
        malformed = self._of(kinds, "malformed")
        is_hot = (sold.customer == sales.HOT_CUSTOMER) & ~malformed & ~null["customer_id"]
        self._hot_rows += int(np.count_nonzero(is_hot))
        return Chunk(self._rows(sold, null), self._misfits(kinds, indexes), np.flatnonzero(malformed).tolist())

    def _sold(self, lines: Ints) -> tuple[Sales, Codes, Ints]:
        """The sales of these lines with the faults that are values, and the kind and index of each line."""
        kinds, indexes = self._layout.at(lines)
        sold = sales.drawn(
            self._draws,
            1 + self._origins(lines, kinds, indexes),
            of=self.rows,
            customers=customer_count(self.rows),
            midnight=columns.midnight(self.date),
        )
        self._close_day(sold, kinds, indexes)
        self._plant_versions(sold, kinds, indexes)
        self._plant_values(sold, kinds, indexes)
        return sold, kinds, indexes

    def _of(self, kinds: Codes, kind: str) -> Mask:
        mask: Mask = kinds == self._layout.kinds[kind]
        return mask

    def _origins(self, lines: Ints, kinds: Codes, indexes: Ints) -> Ints:
        """The line that each row is drawn from: its own, or that of the row it repeats or is an older version of.

        Counted from the other end, so that the two are now near each other and now far apart.
        """
        origins = lines.copy()
        for kind, origin in (("exact_duplicate", "original"), ("older_version", "newer_version")):
            here = self._of(kinds, kind)
            origins[here] = self._layout.line(origin, self._counts[kind] - 1 - indexes[here])
        return origins

    def _close_day(self, sold: Sales, kinds: Codes, indexes: Ints) -> None:
        """The last faultless row is of the last hour, so that the smallest day is fresh at its end too."""
        last = self.rows - 1 - (sum(self._counts.values()) + self._counts["exact_duplicate"])
        last -= self._counts["older_version"]
        here = self._of(kinds, "rest") & (indexes == last)
        time_of_day = self._draws.between("closing", sold.number[here], 23 * HOUR_US, DAY_US - 1)
        delay = sold.updated[here] - sold.created[here]
        sold.created[here] = columns.midnight(self.date) + time_of_day
        sold.updated[here] = sold.created[here] + delay

    def _plant_versions(self, sold: Sales, kinds: Codes, indexes: Ints) -> None:
        sold.status[self._of(kinds, "older_version")] = PENDING
        newer = self._of(kinds, "newer_version")
        sold.status[newer] = COMPLETED
        sold.updated[newer] += self._draws.between("completed", sold.number[newer], 10 * MINUTE_US, 3 * HOUR_US)
        corrected = newer & (indexes % 2 == 1)
        sold.cents[corrected] = sales.amounts(self._draws, "corrected amount", sold.number[corrected])

    def _plant_values(self, sold: Sales, kinds: Codes, indexes: Ints) -> None:
        """Faults that are values like any other."""
        draws, of = self._draws, self._of
        sold.cents[of(kinds, "negative_amount")] *= -1
        here = of(kinds, "outlier")
        sold.cents[here] = draws.between("outlier", sold.number[here], *_OUTLIER_CENTS)
        here = of(kinds, "unknown_status")
        sold.status[here] = len(sales.STATUSES) + indexes[here] % (len(STATUSES) - len(sales.STATUSES))
        here = of(kinds, "unknown_customer")
        sold.customer[here] = UNKNOWN_FROM + draws.below("unknown", sold.number[here], _UNKNOWN_CUSTOMERS)
        here = of(kinds, "other_currency")
        sold.currency[here] = 1 + indexes[here] % (len(self._currencies) - 1)
        here = of(kinds, "other_day")
        shift = np.array([-1, 1, -2, 2, -3, 3])[indexes[here] % 6] * DAY_US
        sold.created[here] += shift
        sold.updated[here] += shift

    def _misfits(self, kinds: Codes, indexes: Ints) -> Sequence[Misfit]:
        rows = np.flatnonzero(self._of(kinds, "wrong_type")).tolist()
        return [Misfit(row, *WRONG[int(indexes[row]) % len(WRONG)]) for row in rows]

    def _rows(self, sold: Sales, null: dict[str, Mask]) -> pa.RecordBatch:
        arrays = [
            columns.identifiers(f"t-{self.date:%Y%m%d}-", sold.number, width=7, null=null["transaction_id"]),
            columns.identifiers("c-", sold.customer, width=7, null=null["customer_id"]),
            columns.identifiers("p-", sold.product, width=5),
            columns.choice(sales.CATEGORIES, sold.category, null=null["category"]),
            pa.array(sold.quantity, pa.int32()),
            columns.money(sold.cents, null=null["amount"]),
            columns.choice(self._currencies, sold.currency, null=null["currency"]),
            columns.choice(STATUSES, sold.status, null=null["status"]),
            columns.choice(tuple(sales.PAYMENTS), sold.payment),
            columns.choice(tuple(sales.CHANNELS), sold.channel),
            columns.choice(tuple(sales.COUNTRIES), sold.country),
            columns.instants(sold.created, null=null["created_at"]),
            columns.instants(sold.updated),
        ]
        return pa.record_batch(arrays, schema=SCHEMA)

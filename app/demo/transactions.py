"""Generated transactions of one day: the sales of the shop, with planted faults as real feeds have them."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from app.demo import files, sales
from app.demo.customers import UNKNOWN, UNKNOWN_FROM, customer_count
from app.demo.draws import Draws, Ints, Mask
from app.demo.faults import TRANSACTION_SHARES, Layout
from app.demo.files import DAY_US, HOUR_US, MINUTE_US, Chunk, line_numbers
from app.demo.ledger import Day
from app.demo.sales import Sales

WRONG: Final = {"amount": ("abc", "12,50"), "quantity": ("two",), "created_at": ("yesterday",)}
STATUSES: Final = (*sales.STATUSES, "chargeback", "on_hold")
COMPLETED: Final = STATUSES.index("completed")
PENDING: Final = STATUSES.index("pending")
OTHER_CURRENCIES: Final = ("USD", "GBP", "CHF", "SEK", "EUR")
_PUBLISHED: Final = ("outlier", "original", "newer_version", "rest")
_OUTLIER_CENTS: Final = (25_000_00, 50_000_00)
_SHIFTS: Final = np.array([-1, 1, -2, 2, -3, 3]) * DAY_US

Kinds = dict[str, Mask]


class Transactions:
    """The transactions of one day, row by row and counted."""

    source: Final = "transactions"

    def __init__(self, day: Day) -> None:
        self._day = day
        self._currencies = (day.currency, *(other for other in OTHER_CURRENCIES if other != day.currency))
        self.planted = day.planted(self.source, TRANSACTION_SHARES, day.rows)
        # The rows that a duplicate repeats or that replace an older one are set apart, so that none is taken twice.
        apart = {"original": self.planted["exact_duplicate"], "newer_version": self.planted["older_version"]}
        self._draws = Draws(day.seed, "transactions", day.date)
        self._layout = Layout(day.rows, {**self.planted, **apart}, self._draws)

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in chunks that are generated one at a time."""
        return map(self._chunk, line_numbers(self._day.rows))

    def published(self, lines: Ints) -> Sales:
        """The sales of those of these lines that a run publishes: valid, and of each key the newest version."""
        sold, is_kind, _ = self._sold(lines)
        return sales.where(sold, np.logical_or.reduce([is_kind[kind] for kind in _PUBLISHED]))

    def _chunk(self, lines: Ints) -> Chunk:
        sold, is_kind, indexes = self._sold(lines)
        wrong = [
            (column, text, is_kind[f"wrong_type_{column}"] & (indexes % len(texts) == turn))
            for column, texts in WRONG.items()
            for turn, text in enumerate(texts)
        ]
        return Chunk(self._rows(sold, is_kind), wrong, is_kind["malformed"])

    def _sold(self, lines: Ints) -> tuple[Sales, Kinds, Ints]:
        """The sales of these lines with the faults that are values, which are of each kind, and their indexes in it."""
        kinds, indexes = self._layout.at(lines)
        is_kind = {kind: kinds == code for kind, code in self._layout.kinds.items()}
        sold = sales.drawn(
            self._draws,
            1 + self._origins(lines, is_kind, indexes),
            of=self._day.rows,
            customers=customer_count(self._day.rows),
            midnight=files.midnight(self._day.date),
        )
        self._plant_versions(sold, is_kind, indexes)
        self._plant_values(sold, is_kind, indexes)
        return sold, is_kind, indexes

    def _origins(self, lines: Ints, is_kind: Kinds, indexes: Ints) -> Ints:
        """The line that each row is drawn from: its own, or that of the row it repeats or is an older version of.

        Counted from the other end, so that the two are now near each other and now far apart.
        """
        origins = lines.copy()
        for kind, origin in (("exact_duplicate", "original"), ("older_version", "newer_version")):
            here = is_kind[kind]
            origins[here] = self._layout.line(origin, self.planted[kind] - 1 - indexes[here])
        return origins

    def _plant_versions(self, sold: Sales, is_kind: Kinds, indexes: Ints) -> None:
        sold.status[is_kind["older_version"]] = PENDING
        newer = is_kind["newer_version"]
        sold.status[newer] = COMPLETED
        sold.updated[newer] += self._draws.between("completed", sold.number[newer], 10 * MINUTE_US, 3 * HOUR_US)
        corrected = newer & (indexes % 2 == 1)
        sold.cents[corrected] = sales.amounts(self._draws, "corrected amount", sold.number[corrected])

    def _plant_values(self, sold: Sales, is_kind: Kinds, indexes: Ints) -> None:
        """Faults that are values like any other."""
        sold.cents[is_kind["negative_amount"]] *= -1
        here = is_kind["outlier"]
        sold.cents[here] = self._draws.between("outlier", sold.number[here], *_OUTLIER_CENTS)
        here = is_kind["unknown_status"]
        sold.status[here] = len(sales.STATUSES) + indexes[here] % (len(STATUSES) - len(sales.STATUSES))
        here = is_kind["unknown_customer"]
        sold.customer[here] = UNKNOWN_FROM + self._draws.below("unknown", sold.number[here], UNKNOWN)
        here = is_kind["other_currency"]
        sold.currency[here] = 1 + indexes[here] % (len(self._currencies) - 1)
        here = is_kind["other_day"]
        sold.created[here] += _SHIFTS[indexes[here] % len(_SHIFTS)]
        sold.updated[here] += _SHIFTS[indexes[here] % len(_SHIFTS)]

    def _rows(self, sold: Sales, is_kind: Kinds) -> pa.RecordBatch:
        null = {kind.removeprefix("null_"): mask for kind, mask in is_kind.items() if kind.startswith("null_")}
        rows = {
            "transaction_id": files.identifiers(
                f"t-{self._day.date:%Y%m%d}-", sold.number, null=null["transaction_id"]
            ),
            "customer_id": files.identifiers("c-", sold.customer, null=null["customer_id"]),
            "product_id": files.identifiers("p-", sold.product, width=5),
            "category": files.choice(sales.CATEGORIES, sold.category, null=null["category"]),
            "quantity": pa.array(sold.quantity, pa.int32()),
            "amount": files.money(sold.cents, null=null["amount"]),
            "currency": files.choice(self._currencies, sold.currency, null=null["currency"]),
            "status": files.choice(STATUSES, sold.status, null=null["status"]),
            "payment_method": files.choice(tuple(sales.PAYMENTS), sold.payment),
            "channel": files.choice(tuple(sales.CHANNELS), sold.channel),
            "country": files.choice(tuple(sales.COUNTRIES), sold.country),
            "created_at": files.instants(sold.created, null=null["created_at"]),
            "updated_at": files.instants(sold.updated),
        }
        return pa.record_batch(rows)

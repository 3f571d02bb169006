"""Generated refunds: a learnable, noisy cause decides which sales are refunded, and when it becomes known.

The cause is what is known at the instant of the sale, a trait of the customer that only earlier refunds show, and
chance. So a model can be far better than chance and cannot be perfect; the probabilities give the best score.
"""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from app.demo import files, sales
from app.demo.draws import Draws, Floats, Ints, Mask
from app.demo.files import DAY_US, HOUR_US, Chunk, line_numbers
from app.demo.ledger import Day
from app.demo.sales import Sales
from app.demo.transactions import COMPLETED, PENDING, Transactions

LATEST_HOURS: Final = 24
"""A refund comes at most so many hours after its sale."""
LATEST_DAYS: Final = LATEST_HOURS // 24

# Log odds. Together about 5 % of the sales are refunded.
_BASE: Final = -4.75
_PER_MAGNITUDE: Final = 1.1
_CATEGORY: Final = {"electronics": 0.4, "fashion": 1.2, "grocery": -1.8, "home": 0.0, "toys": 0.2, "books": -1.0}
_CHANNEL: Final = {"web": 0.0, "app": 0.5, "store": -1.2}
_PAYMENT: Final = {"card": 0.0, "paypal": 0.6, "bank_transfer": -0.5, "gift_card": -0.8}
_COUNTRY: Final = {"DE": 0.3, "FR": 0.0, "NL": 0.2, "AT": 0.2, "BE": 0.0, "ES": -0.3, "IT": -0.4, "PL": 0.5}
_AT_NIGHT: Final = 0.6
_SEVERAL_SIZES: Final = 1.0
"""Three and more pieces of fashion: some of them are sizes to choose from."""
_TRAIT: Final = 2.4


@dataclass(frozen=True)
class Truth:
    """The published sales of one day that can be refunded, with the probability of it, and whether each is."""

    sold: Sales
    probability: Floats
    is_refunded: Mask


class Refunds:
    """The sales of one day that are refunded, then or later."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self._transactions = Transactions(day)
        self._draws, self._traits = Draws(day.seed, "refunds", day.date), Draws(day.seed, "refunds")

    def truth(self, lines: Ints | None = None) -> Truth:
        """What is known about the sales of these lines of transactions, or of all."""
        sold = self._transactions.published(np.arange(self._day.rows) if lines is None else lines)
        sold = sales.where(sold, np.isin(sold.status, [COMPLETED, PENDING]))
        probability = refund_probability(sold, self._traits)
        return Truth(sold, probability, self._draws.unit("refunded", sold.number) < probability)

    def between(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The refunds of an interval of time, in microseconds since 1970, its end excluded."""
        for lines in line_numbers(self._day.rows):
            truth = self.truth(lines)
            sold = sales.where(truth.sold, truth.is_refunded)
            share = self._draws.unit("delay", sold.number)
            at = sold.created + HOUR_US + (share * share * (LATEST_HOURS - 1) * HOUR_US).astype(np.int64)
            here = (first <= at) & (at < last)
            yield self._records(sales.where(sold, here), at[here])

    def _records(self, sold: Sales, at: Ints) -> pa.RecordBatch:
        day = f"{self._day.date:%Y%m%d}"
        rows = {
            "refund_id": files.identifiers(f"r-{day}-", sold.number),
            "transaction_id": files.identifiers(f"t-{day}-", sold.number),
            "customer_id": files.identifiers("c-", sold.customer),
            "amount": files.money(sold.cents),
            "refunded_at": files.instants(at),
        }
        return pa.record_batch(rows)


class KnownRefunds:
    """The refunds that become known on one day, of sales of that day and those before; no row has a fault."""

    source: Final = "refunds"
    planted: Final[dict[str, int]] = {}

    def __init__(self, day: Day) -> None:
        self._day = day

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in chunks that are generated one at a time."""
        midnight = files.midnight(self._day.date)
        for age in range(LATEST_DAYS, -1, -1):
            sold_on = msgspec.structs.replace(self._day, date=self._day.date - datetime.timedelta(days=age))
            for rows in Refunds(sold_on).between(midnight, midnight + DAY_US):
                if rows.num_rows:
                    yield Chunk(rows, (), np.zeros(rows.num_rows, dtype=np.bool_))


def refund_probability(sold: Sales, traits: Draws) -> Floats:
    """The probability that each sale is refunded: logistic in what is known of it, and in the trait of its customer."""
    hour = sold.created % DAY_US // HOUR_US
    is_fashion = sold.category == sales.CATEGORIES.index("fashion")
    odds = (
        _BASE
        + _PER_MAGNITUDE * np.log10(sold.cents / 100_00)
        + _weights(_CATEGORY, sales.CATEGORIES)[sold.category]
        + _weights(_CHANNEL, sales.CHANNELS)[sold.channel]
        + _weights(_PAYMENT, sales.PAYMENTS)[sold.payment]
        + _weights(_COUNTRY, sales.COUNTRIES)[sold.country]
        + _AT_NIGHT * ((hour < 6) | (hour >= 22))
        + _SEVERAL_SIZES * (is_fashion & (sold.quantity >= 3))
        + _TRAIT * _trait(traits, sold.customer)
    )
    probability: Floats = 1 / (1 + np.exp(-odds))
    return probability


def _trait(draws: Draws, customer: Ints) -> Floats:
    """Nearly normal with a standard deviation of a half: the sum of three draws."""
    parts = [draws.unit(f"trait {part}", customer) for part in range(3)]
    return parts[0] + parts[1] + parts[2] - 1.5


def _weights(by_value: Mapping[str, float], values: Mapping[str, int] | tuple[str, ...]) -> Floats:
    return np.array([by_value[value] for value in values])

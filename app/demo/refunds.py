"""Generated refunds: a learnable, noisy cause decides which sales are refunded, and when it becomes known.

The cause is what is known at the instant of the sale, a trait of the customer that only earlier refunds show, and
chance. So a model can be far better than chance and cannot be perfect; the probabilities give the best score.
"""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.demo import columns, sales
from app.demo.columns import DAY_US, HOUR_US
from app.demo.draws import Draws, Ints
from app.demo.formats import CHUNK_ROWS, write_files
from app.demo.ledger import Ledger, write_ledger
from app.demo.publishing import draft, publish, writing
from app.demo.sales import Sales
from app.demo.shop import LOCK, day_folder, require_generated
from app.demo.text import Chunk
from app.demo.transactions import COMPLETED, PENDING, Transactions
from spark_app.local_files import exclusive_lock

Floats = npt.NDArray[np.float64]

SOURCE: Final = "refunds"
SCHEMA: Final = pa.schema(
    {
        "refund_id": columns.TEXT,
        "transaction_id": columns.TEXT,
        "customer_id": columns.TEXT,
        "amount": columns.MONEY,
        "refunded_at": columns.INSTANT,
    }
)
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
    """What the generator knows about the published sales of one day.

    Attributes:
        number: The numbers of the sales, as in their keys.
        probability: With which each is refunded.
        is_refunded: Whether it is.
    """

    number: Ints
    probability: Floats
    is_refunded: npt.NDArray[np.bool_]


class Refunds:
    """The sales of one day that are refunded, then or later."""

    def __init__(self, *, date: datetime.date, rows: int, seed: int, file_format: str, currency: str) -> None:
        """The refunds of the sales of a day that has so many lines of transactions."""
        self._sales_date, self._rows = date, rows
        self._transactions = Transactions(date=date, rows=rows, seed=seed, file_format=file_format, currency=currency)
        self._draws, self._traits = Draws(seed, SOURCE, date), Draws(seed, SOURCE)

    def sold(self) -> Sales:
        """The published sales that can be refunded: those that are completed or pending."""
        return self._sold(np.arange(self._rows))

    def truth(self) -> Truth:
        """The probability of each sale that can be refunded, and whether it is."""
        return self._truth(self.sold())

    def between(self, first: int, last: int) -> pa.Table:
        """The refunds of an interval of time, in microseconds since 1970, its end excluded."""
        starts = range(0, self._rows, CHUNK_ROWS)
        lines = (np.arange(start, min(start + CHUNK_ROWS, self._rows)) for start in starts)
        return pa.Table.from_batches([self._refunds(part, first, last) for part in lines], schema=SCHEMA)

    def _sold(self, lines: Ints) -> Sales:
        sold = self._transactions.published(lines)
        return sales.where(sold, np.isin(sold.status, [COMPLETED, PENDING]))

    def _truth(self, sold: Sales) -> Truth:
        probability = refund_probability(sold, self._traits)
        return Truth(sold.number, probability, self._draws.unit("refunded", sold.number) < probability)

    def _refunds(self, lines: Ints, first: int, last: int) -> pa.RecordBatch:
        all_sold = self._sold(lines)
        sold = sales.where(all_sold, self._truth(all_sold).is_refunded)
        share = self._draws.unit("delay", sold.number)
        at = sold.created + HOUR_US + (share * share * (LATEST_HOURS - 1) * HOUR_US).astype(np.int64)
        here = (first <= at) & (at < last)
        return self._records(sales.where(sold, here), at[here])

    def _records(self, sold: Sales, at: Ints) -> pa.RecordBatch:
        day = f"{self._sales_date:%Y%m%d}"
        arrays = [
            columns.identifiers(f"r-{day}-", sold.number, width=7),
            columns.identifiers(f"t-{day}-", sold.number, width=7),
            columns.identifiers("c-", sold.customer, width=7),
            columns.money(sold.cents),
            columns.instants(at),
        ]
        return pa.record_batch(arrays, schema=SCHEMA)


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


def write_refunds(
    folder: Path, *, date: datetime.date, rows: int, seed: int, formats: Mapping[str, str], currency: str = "EUR"
) -> Ledger:
    """Generates the refunds that become known on one day, of sales of that day and those before.

    The sales are those that `write_day` generates from the same arguments. The folder appears whole or not at all, and
    is replaced only if it was generated.

    Returns:
        The ledger: no row has a fault.

    Raises:
        MachineError: The folder cannot be written to.
        UsageError: It holds files of other origin.
    """
    midnight, file_format = columns.midnight(date), formats.get(SOURCE, "json")
    days = [date - datetime.timedelta(days=age) for age in range(LATEST_DAYS, -1, -1)]
    parts = [
        Refunds(date=day, rows=rows, seed=seed, file_format=formats["transactions"], currency=currency) for day in days
    ]
    table = pa.concat_tables([part.between(midnight, midnight + DAY_US) for part in parts])
    ledger = _ledger(date=date, seed=seed, file_format=file_format, rows=table.num_rows)
    target = day_folder(folder, SOURCE, date)
    with writing(folder), exclusive_lock(folder / LOCK), draft(target) as draft_folder:
        require_generated(target)
        write_files(draft_folder, _chunks(table), file_format=file_format, written=lambda _: None)
        write_ledger(draft_folder, ledger)
        publish(target)
    return ledger


def _ledger(*, date: datetime.date, seed: int, file_format: str, rows: int) -> Ledger:
    return Ledger(
        source=SOURCE, date=date, seed=seed, format=file_format, rows=rows, valid=rows, quarantined=0, duplicates=0,
        exact_duplicates=0, older_versions=0, malformed=0, nulls={}, wrong_type={},
    )  # fmt: skip


def _chunks(table: pa.Table) -> Iterator[Chunk]:
    for batch in table.combine_chunks().to_batches(max_chunksize=CHUNK_ROWS):
        yield Chunk(batch)

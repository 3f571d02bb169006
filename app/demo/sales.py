"""What the shop sold: transactions without any fault, each drawn from its number alone."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from app.demo.draws import Codes, Draws, Floats, Ints, Mask
from app.demo.files import HOUR_US, MINUTE_US

PRODUCTS: Final = 5_000
CATEGORIES: Final = ("electronics", "fashion", "grocery", "home", "toys", "books")
STATUSES: Final = {"completed": 86, "pending": 7, "failed": 4, "refunded": 3}
PAYMENTS: Final = {"card": 55, "paypal": 30, "bank_transfer": 10, "gift_card": 5}
CHANNELS: Final = {"web": 55, "app": 35, "store": 10}
COUNTRIES: Final = {"DE": 40, "FR": 20, "NL": 10, "AT": 10, "BE": 5, "ES": 5, "IT": 5, "PL": 5}

# One customer has far more rows than any other, as a reseller or a test account has.
HOT_CUSTOMER: Final = 1

_HOT: Final = {"other": 95, "hot": 5}
_QUANTITIES: Final = {"none": 0, "one": 60, "two": 20, "three": 10, "four": 6, "five": 4}

# Of any 20 neighbours 10 are small, 7 medium and 3 large, so that mean and sigma are as good as fixed:
# mean + 3 sigma is about 1,930 without outliers and 4,400 with them, between the normal rows and the outliers.
_BANDS: Final = np.array([0] * 10 + [1] * 7 + [2] * 3)
_BAND_FIRST: Final = np.array([5_00, 100_00, 1_000_00])
_BAND_LAST: Final = np.array([99_99, 999_99, 1_800_00])

# Sales by hour of the day in UTC: quiet at night, the peak in the evening.
_HOURLY: Final = np.array([2, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 6, 6, 5, 5, 5, 6, 7, 9, 10, 9, 6, 4, 3])
_UNTIL_HOUR: Final = np.concatenate(([0], np.cumsum(_HOURLY))) / _HOURLY.sum()
_LAST: Final = 1e-6


@dataclass
class Sales:
    """Columns of numbers: positions in the lists of this module, cents, and microseconds since 1970 in UTC."""

    number: Ints
    customer: Ints
    product: Ints
    category: Codes
    quantity: Ints
    cents: Ints
    currency: Codes
    status: Codes
    payment: Codes
    channel: Codes
    country: Codes
    created: Ints
    updated: Ints


def where(sold: Sales, mask: Mask) -> Sales:
    """Those of the sales that a mask selects."""
    return Sales(**{name: column[mask] for name, column in vars(sold).items()})


def drawn(draws: Draws, numbers: Ints, *, of: int, customers: int, midnight: int) -> Sales:
    """The sales with these numbers, of so many on the day that starts at this midnight; they come in order of time.

    The last is of the last moment, so that the smallest day is fresh at its end, too.
    """
    product = 1 + draws.below("product", numbers, PRODUCTS)
    back = np.where(numbers == of, _LAST, draws.unit("created", numbers))
    created = midnight + time_of_day((numbers - back) / of)
    is_hot = draws.codes("hot", numbers, _HOT) == 1
    return Sales(
        number=numbers,
        customer=np.where(is_hot, HOT_CUSTOMER, 2 + draws.below("customer", numbers, customers - 1)),
        product=product,
        category=(product % len(CATEGORIES)).astype(np.int8),
        quantity=draws.codes("quantity", numbers, _QUANTITIES).astype(np.int64),
        cents=amounts(draws, "amount", numbers),
        currency=np.zeros(len(numbers), dtype=np.int8),
        status=draws.codes("status", numbers, STATUSES),
        payment=draws.codes("payment", numbers, PAYMENTS),
        channel=draws.codes("channel", numbers, CHANNELS),
        country=draws.codes("country", numbers, COUNTRIES),
        created=created,
        updated=created + draws.between("updated", numbers, 2 * MINUTE_US, 6 * HOUR_US),
    )


def amounts(draws: Draws, purpose: str, numbers: Ints) -> Ints:
    """Normal amounts in cents: bounded, and of the three sizes in fixed proportions."""
    band = _BANDS[numbers * 7 % len(_BANDS)]
    size = _BAND_LAST[band] - _BAND_FIRST[band] + 1
    cents: Ints = _BAND_FIRST[band] + (draws.unit(purpose, numbers) * size).astype(np.int64)
    return cents


def time_of_day(share: Floats) -> Ints:
    """The microsecond of the day until which this share of a day's sales, in [0, 1), was sold."""
    hour = np.searchsorted(_UNTIL_HOUR, share, side="right") - 1
    within = (share - _UNTIL_HOUR[hour]) / (_UNTIL_HOUR[hour + 1] - _UNTIL_HOUR[hour])
    micros: Ints = hour * HOUR_US + np.minimum((within * HOUR_US).astype(np.int64), HOUR_US - 1)
    return micros

"""What people do in the shop: visits that end in purchases or in abandoned carts, step by step."""

import itertools
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, NamedTuple

from app.demo import customers, sales

PRODUCTS: Final = 5_000
MOST_VIEWS: Final = 4
THINKS_MS: Final = (1_000, 10_000)
"""The least and the most time between two steps of a visit."""
CART_RATIO: Final = 0.5
REMOVED_RATIO: Final = 0.1
PURCHASE_RATIO: Final = 0.6
"""Of the carts that were not emptied; the others are abandoned."""
BIG_RATIO: Final = 0.02
USUAL_CENTS: Final = (5_00, 1_500_00)
BIG_CENTS: Final = (2_500_00, 5_000_00)
"""Amounts of big purchases; a limit for alerts between the two ranges tells them apart."""

MOST_PIECES: Final = 5
ONLINE: Final = {name: weight for name, weight in sales.CHANNELS.items() if name != "store"}


class Step(NamedTuple):
    """One step of a visit: the time since the step before, and the event."""

    after_ms: int
    event_type: str
    properties: dict[str, str]


def between(chance: Random, first: int, last: int) -> int:
    """A number from first to last, drawn by `random()`, whose sequence is the same in every Python."""
    return first + int(chance.random() * (last - first + 1))


def visit(chance: Random, currency: str) -> Iterator[Step]:
    """The steps of one visit: views, and perhaps a cart with the product that was viewed last."""
    product = _product(chance)
    yield Step(0, "view", {"product_id": product})
    for _ in range(between(chance, 0, MOST_VIEWS - 1)):
        product = _product(chance)
        yield Step(_thinking(chance), "view", {"product_id": product})
    if chance.random() < CART_RATIO:
        yield from _cart(chance, {"product_id": product, "amount": _amount(chance), "currency": currency})


def purchase(chance: Random, user: int, properties: Mapping[str, str]) -> dict[str, str | int]:
    """What the shop knows of a purchase when it is made: the product says its category, the user their segment."""
    product = int(properties["product_id"].removeprefix("p-"))
    return {
        "category": sales.CATEGORIES[product % len(sales.CATEGORIES)],
        "quantity": between(chance, 1, MOST_PIECES),
        "amount": properties["amount"],
        "payment_method": _drawn(chance, sales.PAYMENTS),
        "channel": _drawn(chance, ONLINE),
        "country": _drawn(chance, sales.COUNTRIES),
        "customer_segment": customers.SEGMENTS[user % customers.UNKNOWN_SEGMENT],
        "customer_country": customers.COUNTRIES[user % len(customers.COUNTRIES)],
    }


def _drawn(chance: Random, weights: Mapping[str, int]) -> str:
    """One of the keys, as often as its weight says."""
    position = between(chance, 0, sum(weights.values()) - 1)
    until = itertools.accumulate(weights.values())
    return next(key for key, end in zip(weights, until, strict=True) if position < end)


def _cart(chance: Random, properties: dict[str, str]) -> Iterator[Step]:
    yield Step(_thinking(chance), "add_to_cart", properties)
    if chance.random() < REMOVED_RATIO:
        yield Step(_thinking(chance), "remove_from_cart", properties)
    elif chance.random() < PURCHASE_RATIO:
        yield Step(_thinking(chance), "purchase", properties)


def _thinking(chance: Random) -> int:
    return between(chance, *THINKS_MS)


def _product(chance: Random) -> str:
    return f"p-{between(chance, 1, PRODUCTS):05}"


def _amount(chance: Random) -> str:
    cents = between(chance, *(BIG_CENTS if chance.random() < BIG_RATIO else USUAL_CENTS))
    return f"{cents // 100}.{cents % 100:02}"

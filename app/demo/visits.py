"""What people do in the shop: visits that end in purchases or in abandoned carts, step by step."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from app.demo import customers, sales
from app.demo.draws import Chance

MAX_VIEWS: Final = 4
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
MAX_PIECES: Final = 5
ONLINE: Final = {name: weight for name, weight in sales.CHANNELS.items() if name != "store"}


class Step(NamedTuple):
    """One step of a visit: the time since the step before, and the event."""

    after_ms: int
    event_type: str
    properties: dict[str, str]


def visit(chance: Chance, currency: str) -> Iterator[Step]:
    """The steps of one visit: views, and perhaps a cart with the product that was viewed last."""
    viewed = product(chance)
    yield Step(0, "view", {"product_id": viewed})
    for _ in range(chance.between(0, MAX_VIEWS - 1)):
        viewed = product(chance)
        yield Step(chance.between(*THINKS_MS), "view", {"product_id": viewed})
    if chance.unit() < CART_RATIO:
        cart = {"product_id": viewed, "amount": _amount(chance), "currency": currency}
        yield Step(chance.between(*THINKS_MS), "add_to_cart", cart)
        if chance.unit() < REMOVED_RATIO:
            yield Step(chance.between(*THINKS_MS), "remove_from_cart", cart)
        elif chance.unit() < PURCHASE_RATIO:
            yield Step(chance.between(*THINKS_MS), "purchase", cart)


def purchase(chance: Chance, user: int, properties: dict[str, str]) -> dict[str, str | int]:
    """What the shop knows of a purchase when it is made: the product says its category, the user their segment."""
    number = int(properties["product_id"].removeprefix("p-"))
    return {
        "category": sales.CATEGORIES[number % len(sales.CATEGORIES)],
        "quantity": chance.between(1, MAX_PIECES),
        "amount": properties["amount"],
        "payment_method": chance.one_of(sales.PAYMENTS),
        "channel": chance.one_of(ONLINE),
        "country": chance.one_of(sales.COUNTRIES),
        "customer_segment": customers.SEGMENTS[user % customers.UNKNOWN_SEGMENT],
        "customer_country": customers.COUNTRIES[user % len(customers.COUNTRIES)],
    }


def product(chance: Chance) -> str:
    """Any product of the shop."""
    return f"p-{chance.between(1, sales.PRODUCTS):05}"


def _amount(chance: Chance) -> str:
    cents = chance.between(*(BIG_CENTS if chance.unit() < BIG_RATIO else USUAL_CENTS))
    return f"{cents // 100}.{cents % 100:02}"

"""Carts that users filled and left."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from app.schemas import ABANDONED_CARTS
from spark_app import stream

ADD, REMOVE, PURCHASE = "add_to_cart", "remove_from_cart", "purchase"
STEP: Final = "at_ms bigint, event_type string, product_id string"
LEFT: Final = "user_id string, started_ms bigint, last_added_ms bigint, product_ids array<string>"


class Step(NamedTuple):
    """What a user did to the cart; steps of one instant are in the order of their names: add, purchase, remove."""

    at_ms: int
    event_type: str
    product_id: str


class Cart(NamedTuple):
    """The products that a user put into a cart, in order."""

    started_ms: int
    last_added_ms: int
    products: tuple[str, ...]


def left_carts(steps: Iterable[Step], *, after_ms: int, until_ms: int) -> tuple[list[Cart], list[Step]]:
    """The carts that were left before an instant, and the steps that later ones still need.

    A cart begins with a product that is added. It ends when a purchase is made or when no product is left in it; it is
    left when nothing was added for some time. The result depends on the set of steps only, and not on their order.

    Args:
        steps: Steps of one user; all until the instant, and perhaps later ones.
        after_ms: The time after which a cart is left.
        until_ms: The instant.
    """
    left: list[Cart] = []
    cart: Cart | None = None
    ordered = sorted(set(steps))
    for step in [each for each in ordered if each.at_ms <= until_ms]:
        if cart is not None and step.at_ms > cart.last_added_ms + after_ms:
            left.append(cart)
            cart = None
        cart = _after(cart, step)
    if cart is not None and cart.last_added_ms + after_ms <= until_ms:
        left.append(cart)
        cart = None
    first = until_ms + 1 if cart is None else cart.started_ms
    return left, [step for step in ordered if step.at_ms >= first]


def _after(cart: Cart | None, step: Step) -> Cart | None:
    """The cart after a step; None while there is none."""
    if step.event_type == ADD:
        if cart is None:
            return Cart(step.at_ms, step.at_ms, (step.product_id,))
        products = cart.products if step.product_id in cart.products else (*cart.products, step.product_id)
        return cart._replace(last_added_ms=step.at_ms, products=products)
    if cart is None or step.event_type == PURCHASE:
        return None
    products = tuple(product for product in cart.products if product != step.product_id)
    return cart._replace(products=products) if products else None


class LeftCarts(StatefulProcessor):
    """The steps of each user until the watermark has passed them; then the carts that were left.

    A purchase may come before what was added earlier, so nothing is decided before the watermark allows no more steps.
    """

    def __init__(self, after_ms: int) -> None:
        self._after_ms = after_ms

    def init(self, handle: Any) -> None:
        """Opens the state of a partition."""
        self._handle = handle
        self._steps = handle.getListState("steps", STEP)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Keeps the steps, with one timer for the instant at which all of them can be decided.

        A timer for each step would give carts that were left in the middle of a long micro-batch sooner, and would cost
        a third more CPU where users take five steps in a batch.
        """
        steps = [Step(row.at_ms, row.event_type, row.product_id) for row in rows]
        self._steps.appendList(steps)
        self._handle.registerTimer(
            max(step.at_ms + (self._after_ms if step.event_type == ADD else 0) for step in steps)
        )
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Gives the carts that were left until the timer, and forgets what is decided."""
        until = expiredTimerInfo.getExpiryTimeInMs()
        carts, rest = left_carts(map(Step._make, self._steps.get()), after_ms=self._after_ms, until_ms=until)
        if rest:
            self._steps.put(rest)
        else:
            self._steps.clear()
        for cart in carts:
            yield Row(
                user_id=key[0],
                started_ms=cart.started_ms,
                last_added_ms=cart.last_added_ms,
                product_ids=list(cart.products),
            )

    def close(self) -> None:
        """Nothing is open."""


@stream.table(schema=ABANDONED_CARTS, once=False)
def abandoned_carts(user_events: DataFrame, *, abandoned_after: stream.Interval = "1 hour") -> DataFrame:
    """One row per cart in which nothing was added, and after which nothing was purchased, for the configured time.

    It is appended when the watermark has passed the time in which it could have been purchased.

    Columns in: those of `USER_EVENT`.
    Columns out: those of `ABANDONED_CARTS`.
    """
    after_ms = stream.milliseconds(abandoned_after)
    # The observation keeps the filter from moving below the watermark, which all events move on.
    is_step = F.col("event_type").isin(ADD, REMOVE, PURCHASE)
    steps = user_events.observe("cart", F.count_if(is_step).alias("steps")).where(is_step)
    left = (
        steps.select(
            "timestamp",
            "user_id",
            F.unix_millis("timestamp").alias("at_ms"),
            "event_type",
            F.coalesce(F.col("properties")["product_id"], F.lit("")).alias("product_id"),
        )
        .groupBy("user_id")
        .transformWithState(LeftCarts(after_ms), LEFT, "Append", "EventTime")
    )
    return left.select(
        "user_id",
        F.timestamp_millis("started_ms").alias("started_at"),
        F.timestamp_millis("last_added_ms").alias("last_added_at"),
        F.timestamp_millis(F.col("last_added_ms") + after_ms).alias("abandoned_at"),
        "product_ids",
    )

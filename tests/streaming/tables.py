"""What streaming queries write, tables and topics, as multisets of the same plain values as its truth."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Row

from app.demo.event_records import Record
from tests.integration.home import Home
from tests.streaming import truth
from tests.streaming.sentinels import SENTINEL_USER
from tests.streaming.truth import Rows, Rules, milliseconds

Received = Callable[[str], Sequence[bytes]]
"""Gives the values of an outgoing topic."""
Content = Callable[[Home, Received], Rows]


def rows(home: Home, table: str) -> Iterator[Row]:
    """The rows of a table; none if it does not exist."""
    return iter(home.table(table).collect() if table in home.warehouse.existing() else ())


def events(home: Home, received: Received) -> Rows:
    """What `truth.events` gives, without sentinels."""
    return Counter(
        truth.Event(
            row.event_id,
            row.user_id,
            row.event_type,
            milliseconds(row.timestamp),
            tuple(sorted((row.properties or {}).items())),
        )
        for row in rows(home, "events")
        if row.user_id != SENTINEL_USER
    )


def activity(home: Home, received: Received) -> Rows:
    """What `truth.activity` gives."""
    return Counter(
        (milliseconds(row.window_start), row.event_type, row.events, row.users, row.conversion_ratio)
        for row in rows(home, "activity")
    )


def sessions(home: Home, received: Received) -> Rows:
    """What `truth.sessions` gives."""
    return Counter(
        (row.user_id, milliseconds(row.started_at), milliseconds(row.ended_at), row.events, row.purchases)
        for row in rows(home, "sessions")
    )


def abandoned_carts(home: Home, received: Received) -> Rows:
    """What `truth.abandoned_carts` gives."""
    return Counter(
        (row.user_id, milliseconds(row.started_at), milliseconds(row.last_added_at), tuple(row.product_ids))
        for row in rows(home, "abandoned_carts")
    )


def balances(home: Home, received: Received) -> Rows:
    """What `truth.balances` gives."""
    return Counter(
        (row.user_id, row.currency, row.purchases, row.spent, milliseconds(row.last_purchase_at))
        for row in rows(home, "balances")
    )


def attributions(home: Home, received: Received) -> Rows:
    """What `truth.attributions` gives, without that of the sentinel."""
    return Counter(
        (
            row.impression_id,
            milliseconds(row.shown_at),
            row.click_id,
            milliseconds(row.clicked_at) if row.clicked_at else None,
        )
        for row in rows(home, "attributions")
        if row.user_id != SENTINEL_USER
    )


def dead_letters(home: Home, received: Received) -> Rows:
    """What `truth.dead_letters` gives."""
    return Counter((row.topic, bytes(row.value)) for row in rows(home, "dead_letters"))


def alerts(home: Home, received: Received) -> Rows:
    """What `truth.big_purchases` gives: alerts come at least once, and equal ids tell repetitions."""
    return Counter({json.loads(value)["event_id"] for value in received("purchase_alerts")})


def predictions(home: Home, received: Received) -> Rows:
    """What `truth.predictions` gives: equal ids tell repetitions, of replies as of dead letters."""
    replies = [json.loads(value) for value in received("predictions")]
    scored = {reply["request_id"] for reply in replies if "probability" in reply}
    return Counter(scored) + Counter(
        {"not scored": len({reply["dead_letter_id"] for reply in replies if "error" in reply})}
    )


def sent_dead_letters(home: Home, received: Received) -> Rows:
    """What `truth.dead_letters` gives: letters come at least once, and equal ids tell repetitions."""
    letters = {letter["dead_letter_id"]: letter for letter in map(json.loads, received("dead_letters"))}
    return Counter((letter["topic"], base64.b64decode(letter["value"])) for letter in letters.values())


CONTENT: Final[Mapping[str, Content]] = {
    "streaming.events": events,
    "streaming.activity": activity,
    "streaming.sessions": sessions,
    "streaming.carts": abandoned_carts,
    "streaming.balances": balances,
    "streaming.attribution": attributions,
    "streaming.dead_letters": dead_letters,
    "streaming.alerts": alerts,
    "streaming.predictions": predictions,
    "topic dead_letters": sent_dead_letters,
}
"""How each result is read."""


def expected(sent: Sequence[Record], rules: Rules) -> Mapping[str, Rows]:
    """What must have been written about these records, and nothing else."""
    happened = truth.events(sent, rules)
    return {
        "streaming.events": Counter(happened),
        "streaming.activity": truth.activity(happened, rules),
        "streaming.sessions": truth.sessions(happened, rules),
        "streaming.carts": truth.abandoned_carts(happened, rules),
        "streaming.balances": truth.balances(happened),
        "streaming.attribution": truth.attributions(sent, rules),
        "streaming.dead_letters": truth.dead_letters(sent),
        "streaming.alerts": truth.big_purchases(happened, rules),
        "streaming.predictions": truth.predictions(sent),
        "topic dead_letters": truth.dead_letters(sent),
    }


def difference(found: Rows, wanted: Rows) -> dict[str, Any]:
    """What is lost and what is too much, some of it; nothing if both are equal."""
    lost, doubled = wanted - found, found - wanted
    counts = {"lost": lost.total(), "too much": doubled.total()}
    samples = {"lost such as": [*lost][:3], "too much such as": [*doubled][:3]}
    return counts | samples if lost or doubled else {}

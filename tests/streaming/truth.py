"""What the tables of streaming queries must hold, computed from the records of a stream in plain Python.

Everything is a multiset of plain values: a row that is lost or doubled makes a difference. Instants are milliseconds.
"""

import datetime
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, NamedTuple

from app.demo.event_records import CLICKS, IMPRESSIONS, PREDICTION_REQUESTS, USER_EVENTS, Record

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
REQUIRED: Final = {
    USER_EVENTS: ("event_id", "user_id", "event_type", "timestamp"),
    IMPRESSIONS: ("impression_id", "ad_id", "user_id", "timestamp"),
    CLICKS: ("click_id", "impression_id", "timestamp"),
    PREDICTION_REQUESTS: ("request_id", "customer_id", "amount", "created_at"),
}
"""The fields that every value of a topic has; the first identifies it, the last is its instant."""

Rows = Counter[Any]


class Event(NamedTuple):
    """One event of a user."""

    event_id: str
    user_id: str
    event_type: str
    ms: int
    properties: tuple[tuple[str, str], ...]

    @property
    def amount(self) -> Decimal:
        """The amount of a cart or a purchase."""
        return Decimal(dict(self.properties)["amount"])


@dataclass(frozen=True)
class Rules:
    """What the configuration of the queries says, in milliseconds."""

    watermark: int = 10 * MINUTE
    window: int = 5 * MINUTE
    gap: int = 3 * MINUTE
    abandoned_after: int = 2 * MINUTE
    click_within: int = 10 * MINUTE
    big_from: Decimal = Decimal(2_000)


def milliseconds(instant: datetime.datetime) -> int:
    """Milliseconds since 1970."""
    return round(instant.timestamp() * 1000)


def parsed(record: Record) -> dict[str, Any] | None:
    """The value of a record, with `ms`; None if it is malformed."""
    try:
        value = json.loads(record.value.decode("utf-8"))
        texts = [value[name] for name in REQUIRED[record.topic]]
        instant = datetime.datetime.fromisoformat(texts[-1])
    except (ValueError, KeyError, TypeError):
        return None
    is_well_formed = all(isinstance(text, str) for text in texts) and isinstance(value.get("properties", {}), dict)
    is_well_formed = is_well_formed and Decimal(value.get("amount", 1)) > 0
    return value | {"ms": milliseconds(instant)} if is_well_formed else None


def values(records: Iterable[Record], topic: str, rules: Rules) -> list[dict[str, Any]]:
    """The well-formed values of a topic that come in time, each once."""
    newest, seen, kept = 0, set(), []
    for value in filter(None, (parsed(record) for record in records if record.topic == topic)):
        identifier = value[REQUIRED[topic][0]]
        if value["ms"] >= newest - rules.watermark and identifier not in seen:
            seen.add(identifier)
            kept.append(value)
        newest = max(newest, value["ms"])
    return kept


def events(records: Iterable[Record], rules: Rules) -> list[Event]:
    """The rows of `events`."""
    return [
        Event(value["event_id"], value["user_id"], value["event_type"], value["ms"], _sorted(value.get("properties")))
        for value in values(records, USER_EVENTS, rules)
    ]


def dead_letters(records: Iterable[Record]) -> Rows:
    """Topic and bytes of each row of `dead_letters`."""
    return Counter((record.topic, record.value) for record in records if parsed(record) is None)


def predictions(records: Iterable[Record]) -> Rows:
    """The id of each request that is scored, and how many others are answered: replies come at least once."""
    asked = [record for record in records if record.topic == PREDICTION_REQUESTS]
    scored = {value["request_id"] for value in map(parsed, asked) if value is not None}
    return Counter(scored) + Counter({"not scored": sum(parsed(record) is None for record in asked)})


def activity(rows: Sequence[Event], rules: Rules) -> Rows:
    """Each row of `activity`: start, event type or None, events, users, conversion or None."""
    windows: dict[int, list[Event]] = defaultdict(list)
    for event in rows:
        windows[event.ms // rules.window * rules.window].append(event)
    return Counter(row for start, inside in windows.items() for row in _window(start, inside))


def _window(start: int, rows: Sequence[Event]) -> Iterator[tuple[int, str | None, int, int, float | None]]:
    for event_type in {event.event_type for event in rows}:
        users = [event.user_id for event in rows if event.event_type == event_type]
        yield start, event_type, len(users), len(set(users)), None
    viewers = {event.user_id for event in rows if event.event_type == "view"}
    purchasers = {event.user_id for event in rows if event.event_type == "purchase"}
    conversion = len(purchasers) / len(viewers) if viewers else None
    yield start, None, len(rows), len({event.user_id for event in rows}), conversion


def sessions(rows: Sequence[Event], rules: Rules) -> Rows:
    """Each row of `sessions`: user, first and last event, events, purchases."""
    found: Rows = Counter()
    for user, mine in _by_user(rows).items():
        ends = [0, *(place for place, (a, b) in enumerate(pairwise(mine), 1) if b.ms - a.ms > rules.gap), len(mine)]
        for first, end in pairwise(ends):
            part = mine[first:end]
            purchases = sum(event.event_type == "purchase" for event in part)
            found[user, part[0].ms, part[-1].ms, len(part), purchases] += 1
    return found


def balances(rows: Sequence[Event]) -> Rows:
    """Each row of `balances`: user, currency, purchases, their sum, the last one."""
    purchases: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in rows:
        if event.event_type == "purchase":
            purchases[event.user_id, dict(event.properties)["currency"]].append(event)
    return Counter(
        (*key, len(mine), sum((event.amount for event in mine), Decimal()), max(event.ms for event in mine))
        for key, mine in purchases.items()
    )


def big_purchases(rows: Sequence[Event], rules: Rules) -> Rows:
    """The id of each event that `purchase_alerts` tells of."""
    return Counter(
        event.event_id for event in rows if event.event_type == "purchase" and event.amount >= rules.big_from
    )


def abandoned_carts(rows: Sequence[Event], rules: Rules) -> Rows:
    """Each row of `abandoned_carts`: user, first and last addition, products."""
    found: Rows = Counter()
    for user, mine in _by_user(rows).items():
        added: dict[str, int] = {}
        first = last = 0
        for event in mine:
            if added and event.ms > last + rules.abandoned_after:
                found[user, first, last, tuple(added)] += 1
                added = {}
            product = dict(event.properties).get("product_id", "")
            if event.event_type == "add_to_cart":
                first, last = (first if added else event.ms), event.ms
                added.setdefault(product, event.ms)
            elif event.event_type == "purchase":
                added = {}
            elif event.event_type == "remove_from_cart":
                added.pop(product, None)
        if added:
            found[user, first, last, tuple(added)] += 1
    return found


def attributions(records: Sequence[Record], rules: Rules) -> Rows:
    """Each row of `attributions`: impression, its instant, click or None, its instant or None."""
    clicks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for click in values(records, CLICKS, rules):
        clicks[click["impression_id"]].append(click)
    found: Rows = Counter()
    for shown in values(records, IMPRESSIONS, rules):
        mine = [
            (click["click_id"], click["ms"])
            for click in clicks[shown["impression_id"]]
            if 0 <= click["ms"] - shown["ms"] <= rules.click_within
        ]
        for click_id, ms in mine or [(None, None)]:
            found[shown["impression_id"], shown["ms"], click_id, ms] += 1
    return found


def _by_user(rows: Iterable[Event]) -> dict[str, list[Event]]:
    users: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(rows, key=lambda event: event.ms):
        users[event.user_id].append(event)
    return users


def _sorted(properties: dict[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((properties or {}).items()))

"""The truth that streaming queries are compared with is right itself: small cases, by hand, and the ledger."""

import datetime
import itertools
import json
from collections import Counter
from decimal import Decimal
from typing import Any, Final

import pytest

from app.demo.event_records import CLICKS, IMPRESSIONS, MALFORMED, USER_EVENTS, Record
from app.demo.event_stream import records
from app.demo.ledger import Plan
from tests.streaming import truth
from tests.streaming.truth import MINUTE, SECOND, Event, Rules

RULES: Final = Rules()
START: Final = datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC)
PLAN: Final = Plan(start=START, rate=5)
START_MS: Final = truth.milliseconds(START)


def at(ms: int) -> str:
    """An instant so long after the start, as in values."""
    return (START + datetime.timedelta(milliseconds=ms)).isoformat()


def record(topic: str, **value: Any) -> Record:
    """A record with that value."""
    return Record(topic, b"key", json.dumps(value).encode(), "")


def event_record(identifier: str, ms: int, event_type: str = "view") -> Record:
    """An event of one user."""
    return record(USER_EVENTS, event_id=identifier, user_id="u", event_type=event_type, timestamp=at(ms))


def event(ms: int, event_type: str = "view", user: str = "u", **properties: str) -> Event:
    """An event as queries see it."""
    return Event(f"{user}-{ms}", user, event_type, START_MS + ms, tuple(sorted(properties.items())))


@pytest.mark.parametrize(
    "value",
    [
        b"oops",
        b"[1]",
        b'"x"',
        b'{"event_id": "e"}',
        b'{"event_id": null, "user_id": "u", "event_type": "view", "timestamp": "2024-01-01T08:00:00Z"}',
        b'{"event_id": "e", "user_id": "u", "event_type": "view", "timestamp": "yesterday"}',
        b'{"event_id": "e", "user_id": "u", "event_type": "view", "timestamp": "2024-01-01T08:00Z", "properties": 1}',
        b'{"event_id": "e", "user_id": "u", "event_type": "view", "timestamp": "2024-01-01T08:00:00Z"',
        b'{"event_id": "caf\xe9", "user_id": "u", "event_type": "view", "timestamp": "2024-01-01T08:00:00Z"}',
    ],
)
def test_a_malformed_record_is_a_dead_letter_and_no_event(value: bytes) -> None:
    """Whatever is wrong with it."""
    bad = Record(USER_EVENTS, b"key", value, "")
    assert truth.events([bad], RULES) == []
    assert truth.dead_letters([bad, event_record("e", 0)]) == {(USER_EVENTS, value): 1}


def test_an_event_counts_once_if_it_comes_in_time() -> None:
    """Later than the newest by less than the watermark; what comes again counts no more."""
    sent = [
        event_record("a", 0),
        event_record("b", 20 * MINUTE),
        event_record("late", 10 * MINUTE),
        event_record("too late", 10 * MINUTE - 1),
        event_record("b", 20 * MINUTE),
    ]
    assert [each.event_id for each in truth.events(sent, RULES)] == ["a", "b", "late"]


def test_windows_count_events_and_users_by_type_and_in_all() -> None:
    """The conversion is that of the row about all types; without viewers there is none."""
    rows = [event(0), event(1, user="v"), event(2), event(3, "purchase"), event(5 * MINUTE, "purchase")]
    start, second = START_MS, START_MS + 5 * MINUTE
    assert truth.activity(rows, RULES) == Counter(
        [
            (start, "view", 3, 2, None),
            (start, "purchase", 1, 1, None),
            (start, None, 4, 2, 0.5),
            (second, "purchase", 1, 1, None),
            (second, None, 1, 1, None),
        ]
    )


def test_a_session_ends_where_the_gap_begins() -> None:
    """An event after exactly the gap belongs to the session; the order of arrival does not matter."""
    rows = [event(0), event(6 * MINUTE + 1), event(3 * MINUTE, "purchase"), event(9 * MINUTE + 2), event(1, user="v")]
    assert truth.sessions(rows, RULES) == Counter(
        [
            ("u", START_MS, START_MS + 3 * MINUTE, 2, 1),
            ("u", START_MS + 6 * MINUTE + 1, START_MS + 6 * MINUTE + 1, 1, 0),
            ("u", START_MS + 9 * MINUTE + 2, START_MS + 9 * MINUTE + 2, 1, 0),
            ("v", START_MS + 1, START_MS + 1, 1, 0),
        ]
    )


def test_balances_are_exact_sums_by_user_and_currency() -> None:
    """Of purchases only."""
    rows = [
        event(0, "purchase", amount="0.10", currency="EUR"),
        event(1, "purchase", amount="0.20", currency="EUR"),
        event(2, "purchase", amount="2000.00", currency="USD"),
        event(3, "add_to_cart", amount="9.00", currency="EUR"),
    ]
    assert truth.balances(rows) == Counter(
        [("u", "EUR", 2, Decimal("0.30"), START_MS + 1), ("u", "USD", 1, Decimal("2000.00"), START_MS + 2)]
    )
    assert truth.big_purchases(rows, RULES) == {f"u-{2}": 1}


def test_a_cart_is_abandoned_unless_it_is_purchased_or_emptied_in_time() -> None:
    """A purchase in time counts also if it came first; one after the limit finds no cart any more."""
    left = [event(0, "add_to_cart", product_id="p"), event(SECOND, "add_to_cart", product_id="q")]
    in_time, too_late = 2 * MINUTE + SECOND, 2 * MINUTE + SECOND + 1
    row = ("u", START_MS, START_MS + SECOND, ("p", "q"))
    assert truth.abandoned_carts(left, RULES) == {row: 1}
    assert truth.abandoned_carts([event(in_time, "purchase"), *left], RULES) == {}
    assert truth.abandoned_carts([*left, event(too_late, "purchase")], RULES) == {row: 1}
    emptied = [*left, event(2 * SECOND, "remove_from_cart", product_id="p")]
    assert truth.abandoned_carts(emptied, RULES) == {("u", START_MS, START_MS + SECOND, ("q",)): 1}
    assert truth.abandoned_carts([*emptied, event(3 * SECOND, "remove_from_cart", product_id="q")], RULES) == {}


def test_an_impression_has_the_clicks_on_it_that_come_in_time_or_none() -> None:
    """A click without an impression has no row."""
    shown = [record(IMPRESSIONS, impression_id=name, ad_id="a", user_id="u", timestamp=at(0)) for name in "ijk"]
    clicks = [
        record(CLICKS, click_id=f"on {name}", impression_id=name, timestamp=at(ms))
        for name, ms in (("i", 10 * MINUTE), ("j", 10 * MINUTE + 1), ("x", 0))
    ]
    assert truth.attributions([*shown, *clicks, *clicks], RULES) == Counter(
        [
            ("i", START_MS, "on i", START_MS + 10 * MINUTE),
            ("j", START_MS, None, None),
            ("k", START_MS, None, None),
        ]
    )


def test_the_truth_of_a_stream_is_what_was_planted() -> None:
    """Each record is kept, a dead letter, a repetition or too late; what was planted says which."""
    sent = list(itertools.islice(records(PLAN), 12_000))
    planted = Counter(each.fault for each in sent)
    malformed = sum(planted[kind] for kind in [*MALFORMED, "negative_amount"])
    assert truth.dead_letters(sent).total() == malformed > 0
    repeated = planted["duplicate_near"] + planted["duplicate_far"]
    kept = sum(len(truth.values(sent, topic, RULES)) for topic in truth.REQUIRED)
    assert kept == len(sent) - malformed - repeated - planted["very_late"]
    assert planted["very_late"] > 0


@pytest.mark.parametrize("watermark", [5 * MINUTE, 12 * 60 * MINUTE])
def test_the_truth_does_not_depend_on_where_the_limits_lie_exactly(watermark: int) -> None:
    """No event is near a limit, so micro-batches of any size give the same tables."""
    sent = list(itertools.islice(records(PLAN), 12_000))
    other = Rules(watermark=watermark, click_within=3 * MINUTE if watermark == 5 * MINUTE else 19 * MINUTE)
    assert truth.events(sent, other) == truth.events(sent, RULES)
    assert truth.attributions(sent, other) == truth.attributions(sent, RULES)
    big = [truth.big_purchases(truth.events(sent, RULES), Rules(big_from=Decimal(limit))) for limit in (1_501, 2_500)]
    assert big[0] == big[1] != {}

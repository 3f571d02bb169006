"""The stream is the same for the same plan, and what is planted in it lies far from every limit."""

import datetime
import itertools
import json
import re
from collections import Counter, defaultdict
from typing import Any, Final

import pytest

from app.demo.customers import UNKNOWN_FROM
from app.demo.event_records import (
    CLICKS,
    IMPRESSIONS,
    KEY_FIELD,
    MALFORMED,
    PREDICTION_REQUESTS,
    TOPICS,
    USER_EVENTS,
    Record,
)
from app.demo.event_stream import records
from app.demo.faults import STREAM_SHARES
from app.demo.ledger import Plan
from app.schemas import PREDICTION_REQUEST

START: Final = datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC)
COUNT: Final = 60_000
PLAN: Final = Plan(start=START, rate=20)


def first(plan: Plan, count: int = COUNT) -> list[Record]:
    """The first records of a plan."""
    return list(itertools.islice(records(plan), count))


@pytest.fixture(scope="module")
def sent() -> list[Record]:
    """Fifty minutes of the demo shop."""
    return first(PLAN)


def value(record: Record) -> dict[str, Any]:
    """The JSON object of a record that is not malformed."""
    content: dict[str, Any] = json.loads(record.value)
    return content


def values(stream: list[Record], topic: str) -> list[dict[str, Any]]:
    """The JSON objects of a topic, without malformed records."""
    return [value(record) for record in stream if record.topic == topic and record.fault not in MALFORMED]


def instant(text: str) -> datetime.datetime:
    """The instant of an event."""
    return datetime.datetime.fromisoformat(text)


def sent_at(number: int, plan: Plan = PLAN) -> datetime.datetime:
    """When the record of a number is sent."""
    return plan.start + datetime.timedelta(seconds=number / plan.rate)


def test_the_same_plan_gives_the_same_bytes(sent: list[Record]) -> None:
    """Keys, values, trace contexts and their order; another seed gives others."""
    assert first(Plan(start=START, rate=20)) == sent
    other = first(Plan(start=START, rate=20, seed=8), 1_000)
    values = [{record.value for record in stream if record.fault not in MALFORMED} for stream in (sent, other)]
    assert not values[0] & values[1]


def test_streams_of_other_starts_share_no_id(sent: list[Record]) -> None:
    """So a feed that is started again adds events, and never repeats one."""
    later = first(Plan(start=START + datetime.timedelta(milliseconds=1), rate=20), 1_000)
    fields = ("event_id", "impression_id", "click_id")
    both = [
        {value(record).get(field) for record in stream if record.fault not in MALFORMED for field in fields} - {None}
        for stream in (sent, later)
    ]
    assert both[1]
    assert {*both[0]} & {*both[1]} <= {None}


def test_each_kind_is_planted_as_often_as_its_share_says(sent: list[Record]) -> None:
    """But for records that are still to come when the stream is cut; nothing else is planted."""
    planted = Counter(record.fault for record in sent if record.fault)
    assert set(planted) == set(STREAM_SHARES)
    for kind, count in planted.items():
        wanted = COUNT * STREAM_SHARES[kind] // 10_000
        to_come = {"late": 40, "duplicate_far": 20, "late_click": wanted, "very_late": 25}.get(kind, 10)
        assert wanted - to_come <= count <= wanted, kind


def test_only_chosen_kinds_are_planted() -> None:
    """Shares that are not given are 0."""
    stream = first(Plan(start=START, rate=20, shares={"late": 200}), 5_000)
    assert {record.fault for record in stream} == {None, "late"}


def test_every_record_has_a_key_and_a_valid_trace_context(sent: list[Record]) -> None:
    """The key is the user or the impression; no two records but duplicates have the same span."""
    fields = {
        USER_EVENTS: "user_id",
        IMPRESSIONS: "impression_id",
        CLICKS: "impression_id",
        PREDICTION_REQUESTS: "customer_id",
    }
    contexts = [record.traceparent for record in sent if not str(record.fault).startswith("duplicate")]
    assert all(re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01", each) for each in contexts)
    assert len(set(contexts)) == len(contexts)
    for record in sent:
        assert record.fault in MALFORMED or value(record)[fields[record.topic]].encode() == record.key


def test_a_duplicate_repeats_a_record_soon_or_inside_the_watermark(sent: list[Record]) -> None:
    """Byte for byte; any other record has an id of its own."""
    numbers = defaultdict(list)
    for number, record in enumerate(sent):
        if record.fault not in MALFORMED:
            numbers[record.value].append(number)
    seconds = {"duplicate_near": 1, "duplicate_far": 120}
    for record_numbers in numbers.values():
        original, *copies = record_numbers
        assert len(copies) <= 1
        for copy in copies:
            assert sent[original].fault is None
            limit = datetime.timedelta(seconds=seconds[str(sent[copy].fault)] + 5)
            assert sent_at(copy) - sent_at(original) <= limit


def test_late_events_lie_far_inside_and_very_late_ones_far_outside_the_watermark(sent: list[Record]) -> None:
    """Two minutes, and a few seconds of a crowd, against a day: any watermark from 5 minutes to 12 hours tells them."""
    late: list[datetime.timedelta] = []
    very_late: list[datetime.timedelta] = []
    for number, record in enumerate(sent):
        if record.fault not in MALFORMED:
            event = value(record)
            delay = sent_at(number) - instant(event.get("timestamp") or event["created_at"])
            (very_late if record.fault == "very_late" else late).append(delay)
    assert max(late) < datetime.timedelta(seconds=250)
    assert min(late) > datetime.timedelta(seconds=-5)
    assert min(very_late) > datetime.timedelta(hours=23)
    first_number = next(number for number, record in enumerate(sent) if record.fault == "very_late")
    assert sent_at(first_number) >= START + datetime.timedelta(minutes=10)


def test_malformed_records_are_malformed_each_in_its_way(sent: list[Record]) -> None:
    """All topics have some, and none has a line feed, which would end a line of a file."""
    assert {record.topic for record in sent if record.fault in MALFORMED} == set(TOPICS)
    assert not any(b"\n" in record.value or not record.value for record in sent)
    for record in sent:
        if record.fault == "not_utf8":
            with pytest.raises(UnicodeDecodeError):
                record.value.decode()
        elif record.fault == "cut":
            with pytest.raises(json.JSONDecodeError):
                json.loads(record.value)
        elif record.fault == "no_event_id":
            assert value(record).get(KEY_FIELD[record.topic]) is None


def test_users_are_customers_of_the_demo_shop_but_for_a_few(sent: list[Record]) -> None:
    """The numbers 1 to 500, and for the unknown users numbers that no customer has."""
    for record in sent:
        if record.topic == USER_EVENTS and record.fault not in MALFORMED:
            user = int(value(record)["user_id"].removeprefix("c-"))
            assert user >= UNKNOWN_FROM if record.fault == "unknown_user" else 1 <= user <= 500


def test_one_user_is_hot_and_the_others_rest(sent: list[Record]) -> None:
    """The hot user has many times the events of any other; each other is away most of the time, so sessions end."""
    events = values(sent, USER_EVENTS)
    [(hot, most), (_, second)] = Counter(event["user_id"] for event in events).most_common(2)
    assert hot == "c-0000001"
    assert most > 5 * second
    times = [instant(event["timestamp"]) for event in events if event["user_id"] == "c-0000002"]
    times = [time for time in times if time >= START]
    assert max(times) - min(times) < datetime.timedelta(minutes=10)


def test_a_user_has_no_two_events_of_the_same_instant() -> None:
    """So that the order of a user's events is certain, at any rate."""
    crowded = first(Plan(start=START, rate=20_000, shares={"hot_user": 2_000}), 20_000)
    keys = [(value(record)["user_id"], value(record)["timestamp"]) for record in crowded if record.topic == USER_EVENTS]
    assert len(set(keys)) == len(keys)


def test_carts_are_purchased_emptied_or_abandoned(sent: list[Record]) -> None:
    """A purchase has the amount of its cart; some amounts are large, and none is between the two sizes."""
    events = values(sent, USER_EVENTS)
    kinds = Counter(event["event_type"] for event in events)
    assert kinds["add_to_cart"] > 1.3 * kinds["purchase"] > 10 * kinds["remove_from_cart"] / 5 > 0
    amounts = [float(event["properties"]["amount"]) for event in events if event["event_type"] == "purchase"]
    assert any(amount >= 2_500 for amount in amounts)
    assert not any(1_500 < amount < 2_500 for amount in amounts)


def test_clicks_come_in_time_too_late_or_out_of_nowhere(sent: list[Record]) -> None:
    """About a fifth of the impressions are clicked within two minutes; nothing lies near a bound of ten minutes."""
    shown = {value["impression_id"]: value for value in values(sent, IMPRESSIONS)}
    delays = defaultdict(list)
    for record in sent:
        if record.topic == CLICKS and record.fault not in MALFORMED and not str(record.fault).startswith("dup"):
            impression = shown.get(value(record)["impression_id"])
            assert (impression is None) == (record.fault == "unknown_click")
            if impression is not None:
                is_late = record.fault == "late_click"
                delays[is_late].append(instant(value(record)["timestamp"]) - instant(impression["timestamp"]))
    assert max(delays[False]) < datetime.timedelta(minutes=3) < datetime.timedelta(minutes=19) < min(delays[True])
    assert 0.15 < len(delays[False]) / len(shown) < 0.25


def test_a_purchase_is_asked_about_in_the_trace_of_its_visit(sent: list[Record]) -> None:
    """At once, by its user and with its amount; but for the requests that are planted, there are no others."""
    purchases = {
        record.traceparent.split("-")[1]: value(record)
        for record in sent
        if record.topic == USER_EVENTS and record.fault is None and value(record)["event_type"] == "purchase"
    }
    asked = [record for record in sent if record.topic == PREDICTION_REQUESTS and record.fault is None]
    assert len(asked) > 100
    found = [(value(record), purchases.get(record.traceparent.split("-")[1])) for record in asked]
    assert sum(bought is None for _, bought in found) < len(asked) / 20, "held back and repeated purchases only"
    for request, bought in found:
        if bought is not None:
            same = (bought["user_id"], bought["properties"]["amount"])
            assert (request["customer_id"], request["amount"]) == same
            late = instant(request["created_at"]) - instant(bought["timestamp"])
            assert datetime.timedelta() <= late < datetime.timedelta(seconds=10)
    assert set(value(asked[0])) == set(PREDICTION_REQUEST.names)

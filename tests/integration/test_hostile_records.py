"""Records that no producer should send cost no query its life and no other record its place: each query reads them.

What is well-formed says a judge in plain Python, which shares nothing with the parser. Queries with state are here
before a release only: `tests/streaming` sends malformed records to all queries, too.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from app import topics
from app.streaming import activity, alerts, attribution, balances, carts, dead_letters, events, predictions, sessions
from spark_app.engine.dead_letters import NAME as DEAD_LETTERS
from spark_app.spark.kafka import client_options, sink_options
from tests import models
from tests.kafka import Broker
from tests.streaming import truth
from tests.streaming.hostile_records import Hostile, records, written
from tests.streaming.record_judge import Judged
from tests.streaming.truth import MINUTE, Event, Rules
from tests.unit.streaming.drained import Drained, dropped, pipeline_of

SEED: Final = 22
NUMBERS: Final = {"user_events": 2_000, "impressions": 1_000, "clicks": 1_000, "prediction_requests": 1_000}
IDS: Final = {
    "user_events": "event_id",
    "impressions": "impression_id",
    "clicks": "click_id",
    "prediction_requests": "request_id",
}
WITH_NULLS: Final = 50
"""How many of each topic have nulls where they can."""
RULES: Final = Rules()
INTERVALS: Final = {
    activity: {"window": "5 minutes"},
    sessions: {"gap": "3 minutes"},
    carts: {"abandoned_after": "2 minutes"},
    attribution: {"click_within": "10 minutes"},
}
Sent = Mapping[str, Sequence[Hostile]]


@pytest.fixture(scope="module")
def sent(spark: SparkSession, broker: Broker) -> Sent:
    """What is in the topics by now: hostile records, and one at the end that closes windows."""
    now_ms = time.time_ns() // 10**6
    for topic in (*(each.name for each in topics.INCOMING), *topics.OUTGOING):
        broker.create_anew(topic)
    made = {topic: records(topic, number, SEED, now_ms) for topic, number in NUMBERS.items()}
    without = [each for of_topic in made.values() for each in of_topic[-WITH_NULLS:]]
    with_nulls = [replace(each, key=None, headers=(("a", None),), timestamp_ms=now_ms) for each in without]
    last = [Hostile(topic, b"", _last(now_ms), (), now_ms) for topic in ("user_events", "impressions", "clicks")]
    _send(broker, [each for of_topic in made.values() for each in of_topic[:-WITH_NULLS]])
    _send_by_spark(spark, broker, with_nulls)
    _send(broker, last)
    return {
        topic: [*of_topic[:-WITH_NULLS], *(each for each in (*with_nulls, *last) if each.topic == topic)]
        for topic, of_topic in made.items()
    }


def _last(now_ms: int) -> bytes:
    names = ("event_id", "user_id", "event_type", "ad_id", "impression_id", "click_id")
    return json.dumps(dict.fromkeys(names, "last") | {"timestamp": written(now_ms)}).encode()


def _send(broker: Broker, made: Iterable[Hostile]) -> None:
    producer = KafkaProducer(**client_options(broker.kafka))
    try:
        for each in made:
            given = {"key": each.key, "headers": list(each.headers), "timestamp_ms": each.timestamp_ms}
            producer.send(each.topic, each.value, **given)
        producer.flush()
    finally:
        producer.close()


def _send_by_spark(spark: SparkSession, broker: Broker, made: Sequence[Hostile]) -> None:
    """Sends records with null as key, as value and in headers, which the client of Python refuses to do."""
    rows = [(each.topic, each.key, each.value, list(each.headers)) for each in made]
    frame = spark.createDataFrame(
        rows, "topic string, key binary, value binary, headers array<struct<key string, value binary>>"
    )
    frame.coalesce(1).write.format("kafka").options(**sink_options(broker.kafka)).save()


@pytest.fixture
def drained(tmp_path: Path, spark: SparkSession, broker: Broker, sent: Sent) -> Callable[[ModuleType], Drained]:
    """Makes a query that takes all hostile records in its first micro-batch, and then the last ones."""

    def make(module: ModuleType) -> Drained:
        pipeline = pipeline_of(module)
        given: dict[str, Any] = {"records_per_trigger": NUMBERS[pipeline.topics[0]]} | INTERVALS.get(module, {})
        given |= {"watermark": "1 second"} if "watermark" in pipeline.config.model_fields else {}
        return Drained(tmp_path, spark, module, broker.kafka, **given)

    return make


def judged(sent: Sent, topic: str) -> Iterator[tuple[Hostile, Judged]]:
    """The well-formed records of a topic, without the last one, and what is in them."""
    for record in sent[topic][: NUMBERS[topic]]:
        found = record.judged()
        if found is not None:
            yield record, found


def in_time(sent: Sent, topic: str) -> Iterator[Judged]:
    """The well-formed values that are not before the first watermark, which is 1970, each once."""
    values = {found.fields[IDS[topic]]: found for _, found in judged(sent, topic) if found.fields["timestamp"] > 0}
    yield from values.values()


def late(sent: Sent, topic: str) -> int:
    """How many well-formed records are before it."""
    return sum(found.fields["timestamp"] <= 0 for _, found in judged(sent, topic))


def happened(sent: Sent) -> list[Event]:
    """The events, as `truth` takes them."""
    return [_event(found.fields) for found in in_time(sent, "user_events")]


def _event(fields: Mapping[str, Any]) -> Event:
    properties = {name: text for name, text in (fields["properties"] or {}).items() if isinstance(text, str)}
    return Event(
        fields["event_id"],
        fields["user_id"],
        fields["event_type"],
        fields["timestamp"] // 1000,
        tuple(properties.items()),
    )


def priced(rows: Iterable[Event]) -> list[Event]:
    """The events that are no purchase without an amount or currency."""
    return [row for row in rows if row.event_type != "purchase" or _is_priced(dict(row.properties))]


def _is_priced(properties: Mapping[str, str]) -> bool:
    return "currency" in properties and bool(re.fullmatch(r"\d{1,10}\.\d\d", properties.get("amount", ""), re.ASCII))


def assert_equal(found: Iterable[Any], wanted: Iterable[Any], sent: Iterable[Hostile]) -> None:
    """Both are the same multiset of rows, whose first value is an id; says which records make the difference."""
    there, expected = Counter(found), Counter(wanted)
    lost, extra = expected - there, there - expected
    ids = [json.dumps(row[0]).strip('"').encode() for row in (*lost, *extra) if isinstance(row[0], str)]
    causes = [str(each) for each in sent if each.value and any(name in each.value for name in ids)]
    lines = [f"lost {lost.total()}: {[*lost][:5]}", f"too much {extra.total()}: {[*extra][:5]}", *causes[:5]]
    assert there == expected, "\n".join(lines)


def test_each_event_is_in_the_table_once(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """With its properties and the fields that nobody knows; what is older than 1970 is late, and counted."""
    query = drained(events)
    progress = query.drain()
    table = query.home.table("events").where("event_id != 'last'")
    rows = table.selectExpr("event_id", "user_id", "event_type", "unix_micros(timestamp) us", "properties", "extra")
    found = [(*row[:4], _flat(row.properties), _flat(row.extra)) for row in rows.collect()]
    wanted = [
        (*(each.fields[name] for name in ("event_id", "user_id", "event_type", "timestamp")),
         _flat(each.fields["properties"]), _flat(each.others or None))
        for each in in_time(sent, "user_events")
    ]  # fmt: skip
    assert_equal(found, wanted, sent["user_events"])
    assert dropped(progress) == late(sent, "user_events") > 0


def _flat(values: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The names of fields; how Spark writes values that are no text is its own."""
    return None if values is None else frozenset(values)


@pytest.mark.before_release
def test_windows_count_each_event(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """By type and in all; numbers of users are estimates."""
    query = drained(activity)
    query.drain()
    rows = query.home.table("activity").selectExpr("unix_millis(window_start) ms", "event_type", "events")
    found = [(row.ms, row.event_type, row.events) for row in rows.collect()]
    assert_equal(found, [row[:3] for row in truth.activity(happened(sent), RULES).elements()], ())


@pytest.mark.before_release
def test_sessions_have_each_event(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """Of each user, whatever the name is."""
    query = drained(sessions)
    query.drain()
    columns = "user_id", "unix_millis(started_at)", "unix_millis(ended_at)", "events", "purchases"
    found = [tuple(row) for row in query.home.table("sessions").selectExpr(*columns).collect()]
    assert_equal(found, truth.sessions(happened(sent), RULES).elements(), sent["user_events"])


@pytest.mark.before_release
def test_carts_have_each_product(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """The processor in Python gets texts of any kind."""
    query = drained(carts)
    query.drain()
    columns = "user_id", "unix_millis(started_at)", "unix_millis(last_added_at)", "product_ids"
    found = [(*row[:3], tuple(row[3])) for row in query.home.table("abandoned_carts").selectExpr(*columns).collect()]
    assert_equal(found, truth.abandoned_carts(happened(sent), RULES).elements(), sent["user_events"])


@pytest.mark.before_release
def test_balances_have_each_purchase(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """Whose amount is one; no text in its place ends or holds the query."""
    query = drained(balances)
    query.drain()
    columns = "user_id", "currency", "purchases", "spent", "unix_millis(last_purchase_at)"
    found = [tuple(row) for row in query.home.table("balances").selectExpr(*columns).collect()]
    assert_equal(found, truth.balances(priced(happened(sent))).elements(), sent["user_events"])


def test_alerts_come_of_each_big_purchase(drained: Callable[[ModuleType], Drained], broker: Broker, sent: Sent) -> None:
    """As often as its event; also of the year 1."""
    drained(alerts).drain()
    found = [(record.key.decode(),) for record in broker.records(topics.PURCHASE_ALERTS)]
    rows = priced(_event(found.fields) for _, found in judged(sent, "user_events"))
    big = [(row.event_id,) for row in rows if row.event_type == "purchase" and row.amount >= RULES.big_from]
    assert_equal(found, big, sent["user_events"])


@pytest.mark.before_release
def test_impressions_have_their_clicks(drained: Callable[[ModuleType], Drained], sent: Sent) -> None:
    """Or none; each is there."""
    query = drained(attribution)
    query.drain()
    columns = "impression_id", "unix_micros(shown_at)", "click_id", "unix_micros(clicked_at)"
    rows = query.home.table("attributions").where("impression_id != 'last'").selectExpr(*columns)
    clicks = [found.fields for found in in_time(sent, "clicks")]
    wanted = [row for shown in in_time(sent, "impressions") for row in _attributed(shown.fields, clicks)]
    assert_equal(map(tuple, rows.collect()), wanted, [*sent["impressions"], *sent["clicks"]])


def _attributed(shown: Mapping[str, Any], clicks: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    first, last = shown["timestamp"], shown["timestamp"] + 10 * MINUTE * 1000
    mine = [each for each in clicks if each["impression_id"] == shown["impression_id"]]
    found = [(each["click_id"], each["timestamp"]) for each in mine if first <= each["timestamp"] <= last]
    return [(shown["impression_id"], shown["timestamp"], *each) for each in found or [(None, None)]]


def test_every_other_record_is_a_dead_letter(
    drained: Callable[[ModuleType], Drained], broker: Broker, sent: Sent
) -> None:
    """With a reason; bytes, key and headers as they came, in the table and in the topic; they are counted."""
    query = drained(dead_letters)
    query.drain()
    rows = query.home.table("dead_letters").drop("timestamp").collect()
    found = [(row.topic, row.offset, _bytes(row.key), _bytes(row.value), _headers(row.headers)) for row in rows]
    wanted = [
        (topic, offset, each.key, each.value, each.headers)
        for topic, made in sent.items()
        for offset, each in enumerate(made)
        if each.judged() is None
    ]
    causes = (Counter(wanted) - Counter(found)) + (Counter(found) - Counter(wanted))
    assert not causes, [f"{row[1]} {sent[row[0]][row[1]]}" for row in [*causes][:5]]
    assert all(row.reason for row in rows)
    assert query.context.counts["dead_letters"] == len(wanted) > 1_000
    letters = {record.key.decode(): record.value for record in broker.records(DEAD_LETTERS)}
    assert letters == {f"{topic}-0-{offset}": value for topic, offset, _, value, _ in wanted}


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _headers(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header.key, _bytes(header.value)) for header in headers or ())


def test_each_request_has_a_reply(drained: Callable[[ModuleType], Drained], broker: Broker, sent: Sent) -> None:
    """A probability, or an error with the id of its dead letter."""
    query = drained(predictions)
    models.promote(query.home, 1, 0.25)
    query.drain()
    replies = [json.loads(record.value) for record in broker.records(topics.PREDICTIONS)]
    found = [(each.get("request_id"), each.get("probability"), each.get("dead_letter_id")) for each in replies]
    made = [
        (f"prediction_requests-0-{offset}", each.judged()) for offset, each in enumerate(sent["prediction_requests"])
    ]
    scored = [(each.fields["request_id"], 0.25, None) for _, each in made if each is not None]
    refused = [letter for letter, each in made if each is None]
    assert_equal([each for each in found if each[1] is not None], scored, sent["prediction_requests"])
    assert sorted(each[2] for each in found if each[1] is None) == sorted(refused)

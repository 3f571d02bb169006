"""Queries that write to topics, on a real broker."""

import datetime
import json
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.consumer.fetcher import ConsumerRecord
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.streaming import alerts, dead_letters, events, predictions
from app.topics import INCOMING, PREDICTIONS, PURCHASE_ALERTS, USER_EVENTS
from spark_app.engine import bisection, topic_writer
from spark_app.engine.dead_letters import NAME as DEAD_LETTERS
from spark_app.engine.dead_letters import Replay, leave_out, replay
from spark_app.engine.stream import StreamContext
from spark_app.errors import InputError
from spark_app.execution import stream_position
from spark_app.spark.stream_errors import cause_of
from tests import models
from tests.kafka import Broker
from tests.polling import poll_until
from tests.unit.streaming.drained import Drained, event, written

PRODUCER: Final = "00-" + 32 * "a" + "-" + 16 * "b" + "-01"
BIG: Final = written(event(1, 0, "purchase", amount="5000.00", currency="EUR"))


@pytest.fixture
def broker_with_topics(broker: Broker) -> Broker:
    """A broker with empty topics."""
    for topic in (*(topic.name for topic in INCOMING), PURCHASE_ALERTS, DEAD_LETTERS, PREDICTIONS):
        broker.create_anew(topic)
    return broker


def header(record: ConsumerRecord, name: str) -> str:
    """The value of a header."""
    return bytes(dict(record.headers)[name]).decode()


def test_an_alert_names_its_micro_batch_and_its_event(
    tmp_path: Path, spark: SparkSession, broker_with_topics: Broker
) -> None:
    """Its context is that of the batch, which links to the producer; a repeated event gives an equal key."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, alerts, broker.kafka)
    broker.send("user_events", [BIG, BIG, written(event(2))], headers=[("traceparent", PRODUCER.encode())])
    query.drain()
    found = broker.records(PURCHASE_ALERTS)
    assert [record.key for record in found] == [b"e-1", b"e-1"]
    assert len(header(found[0], "traceparent")) == len(PRODUCER)
    assert header(found[0], "traceparent") != PRODUCER


def test_alerts_come_in_real_time(tmp_path: Path, spark: SparkSession, broker_with_topics: Broker) -> None:
    """Without a micro-batch having ended: the interval is that of commits. The record keeps the producer's context."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, alerts, broker.kafka, real_time="10 minutes")
    query.context.is_draining = False
    running = query.start()
    try:
        poll_until(lambda: running.status["isTriggerActive"], "a micro-batch that has begun", seconds=60)
        broker.send("user_events", [BIG, b"broken"], headers=[("traceparent", PRODUCER.encode())])
        poll_until(
            lambda: bool(broker.records(PURCHASE_ALERTS)), lambda: f"an alert; {running.exception()}", seconds=60
        )
        assert running.recentProgress == []
    finally:
        running.stop()
    (alert,) = broker.records(PURCHASE_ALERTS)
    assert (alert.key, header(alert, "traceparent")) == (b"e-1", PRODUCER)


def test_a_reply_belongs_to_the_trace_of_its_request(
    tmp_path: Path, spark: SparkSession, broker_with_topics: Broker
) -> None:
    """Also if it is an error, whose key is the id of the dead letter that the request is."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, predictions, broker.kafka)
    models.promote(query.home, 1, 0.25)
    asked = {"request_id": "r-1", "customer_id": "c-1", "amount": "1.00", "created_at": "2024-01-01T12:00:00Z"}
    broker.send("prediction_requests", [written(asked), b"{}"], key=b"k", headers=[("traceparent", PRODUCER.encode())])
    query.drain()
    found = sorted(broker.records(PREDICTIONS), key=lambda record: record.key)
    assert [record.key for record in found] == [b"prediction_requests-0-1", b"r-1"]
    assert [header(record, "traceparent") for record in found] == [PRODUCER, PRODUCER]
    assert json.loads(found[1].value)["probability"] == 0.25


def test_a_dead_letter_is_found_by_its_offset_and_sent_again(
    tmp_path: Path, spark: SparkSession, broker_with_topics: Broker
) -> None:
    """Its key in the topic is that of the table; a replayed record is as it was, and says what it was."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, dead_letters, broker.kafka)
    broker.send("user_events", [written(event(1)), b"\xff"], key=b"k", headers=[("a", b"b")])
    broker.send("clicks", [b"{}"])
    query.drain()
    ids = ["clicks-0-0", "user_events-0-1"]
    assert query.rows("dead_letters", "dead_letter_id") == [(each,) for each in ids]
    letters = {header(record, "dead_letter.topic"): record for record in broker.records(DEAD_LETTERS)}
    assert (letters["user_events"].value, header(letters["user_events"], "a")) == (b"\xff", "b")
    about = [header(letters["user_events"], f"dead_letter.{name}") for name in ("reason", "partition", "offset", "key")]
    assert about == ["not UTF-8", "0", "1", "k"]
    assert sorted(record.key.decode() for record in broker.records(DEAD_LETTERS)) == ids
    table = query.context.warehouse.path("dead_letters")
    repaired = written(event(2)).hex()
    spark.sql(f"UPDATE delta.`{table}` SET value = X'{repaired}' WHERE topic = 'user_events'")
    assert replay(query.context.warehouse, query.home.settings, INCOMING) == Replay({"user_events": 1}, {"clicks": 1})
    again = broker.records("user_events")[-1]
    assert (again.value, again.key) == (written(event(2)), b"k")
    assert dict(again.headers) == {"a": b"b", "dead_letter_id": b"user_events-0-1"}


def test_a_dead_letter_of_any_size_ends_no_query(
    tmp_path: Path, spark: SparkSession, broker_with_topics: Broker
) -> None:
    """What the topic has room for is sent as it was; of the rest it has a stub, and the table the whole."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, dead_letters, broker.kafka)
    large, too_large = b"x" * 950_000, b"y" * 1_048_300
    broker.send("clicks", [large, too_large, b"{}"], headers=[("a", b"b" * 100)])
    broker.send("impressions", [None, b"[]"], key=b"k" * 100_000)
    query.drain()
    sent = {record.key.decode(): record for record in broker.records(DEAD_LETTERS)}
    stub = sent["clicks-0-1"]
    assert (sent["clicks-0-0"].value, sent["clicks-0-2"].value, sent["impressions-0-0"].value) == (large, b"{}", None)
    assert (json.loads(stub.value)["too_large"] > 2**20, header(stub, "dead_letter.offset")) == (True, "1")
    assert query.rows("dead_letters", "coalesce(length(value), 0)")[-1:] == [(len(too_large),)]
    broker.delete(DEAD_LETTERS)
    broker.create(DEAD_LETTERS, max_message_bytes="10000")
    topic_writer._largest_of.cache_clear()
    broker.send("clicks", [b"z" * 20_000])
    query.drain()
    assert [json.loads(record.value).keys() for record in broker.records(DEAD_LETTERS)] == [{"too_large"}]


def test_a_query_leaves_out_a_record_and_begins_where_it_is_told(
    tmp_path: Path, spark: SparkSession, broker_with_topics: Broker
) -> None:
    """By hand, or since the record makes it fail; its table stays where it begins elsewhere, at an offset or a time."""
    broker = broker_with_topics
    query = Drained(tmp_path, spark, events, broker.kafka)
    context, settings, warehouse = query.context, query.home.settings, query.context.warehouse
    broker.send("user_events", [written(event(number)) for number in range(5)])

    def failing(context: StreamContext, config: Any) -> DataStreamWriter:
        values = context.read_once(USER_EVENTS, config, watermark=config.watermark, keep=["extra"])
        is_bad = F.col("event_id") == "e-2"
        values = values.withColumn("event_type", F.when(is_bad, F.raise_error(F.lit("no e-2"))).otherwise("view"))
        return context.append(events.events(values, context.table("customers")), "events", config)

    config = query.config
    with pytest.raises(StreamingQueryException):
        failing(context, config).start().awaitTermination()
    found = bisection.culprits(context, failing, config, ["user_events"], cause_of)
    assert found is not None
    assert {name: "no e-2" in reason for name, reason in found.reasons.items()} == {"user_events-0-2": True}
    leave_out(warehouse, found.rows, context.name, settings)
    stream_position.leave_out(warehouse, settings, context.name, stream_position.record_position("user_events:0:3"))
    failing(context, config).start().awaitTermination()
    assert query.rows("events", "event_id") == [("e-0",), ("e-1",), ("e-4",)]
    assert query.rows("dead_letters", "offset", "query") == [(2, context.name), (3, context.name)]
    assert [header(record, "dead_letter.query") for record in broker.records(DEAD_LETTERS)] == [context.name] * 2
    stream_position.move(warehouse, settings, context.name, stream_position.record_position("user_events:0:4"))
    query.drain()
    assert query.rows("events", "event_id") == [("e-0",), ("e-1",), ("e-4",), ("e-4",)]
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    stream_position.move(warehouse, settings, context.name, later)
    query.drain()
    broker.send("user_events", [written(event(5))])
    query.drain()
    assert query.rows("events", "event_id")[-2:] == [("e-4",), ("e-5",)]
    with pytest.raises(InputError, match="no record of offset 99"):
        stream_position.leave_out(
            warehouse, settings, context.name, stream_position.record_position("user_events:0:99")
        )

"""A generated stream in a real Kafka: every record once, with its key and its trace context."""

import datetime
import io
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import pytest

from app.demo import data_stream, kafka_topics
from app.demo.event_records import TOPICS, USER_EVENTS, Record
from app.demo.event_stream import records
from app.demo.kafka_topics import KafkaTopics
from app.demo.ledger import Ledger, Plan
from spark_app.commands.terminal import Terminal
from spark_app.errors import MachineError
from spark_app.execution.kafka_topics import create_topics
from spark_app.settings import load_settings
from spark_app.spark.kafka import client_options
from tests.kafka import Broker, running_broker, settings

PLAN: Final = Plan(start=datetime.datetime(2024, 1, 1, 8, tzinfo=datetime.UTC), rate=5_000)
COUNT: Final = 10_000


def content(broker: Broker, topic: str) -> list[tuple[int, bytes, bytes, str]]:
    """Partition, key, value and trace context of every record of a topic, by partition and offset."""
    return [
        (record.partition, record.key, record.value, dict(record.headers)["traceparent"].decode())
        for record in broker.records(topic)
    ]


def sent_to(topic: str, stream: list[Record]) -> list[Record]:
    """The records of a topic."""
    return [record for record in stream if record.topic == topic]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker without a topic."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def ledger(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """What the command says that it has sent."""
    given = {"home": tmp_path_factory.mktemp("home"), "kafka": broker.kafka}
    terminal = Terminal(out=io.StringIO(), err=io.StringIO())
    return data_stream.stream(load_settings().model_copy(update=given), PLAN, "kafka", count=COUNT, terminal=terminal)[
        0
    ]


def test_every_record_arrives_once_with_its_key_and_trace_context(broker: Broker, ledger: Ledger) -> None:
    """Nothing is lost, doubled or changed on the way, whatever bytes it is made of."""
    stream = list(itertools.islice(records(PLAN), COUNT))
    for topic in TOPICS:
        arrived = Counter((key, value, context) for _, key, value, context in content(broker, topic))
        assert arrived == Counter((each.key, each.value, each.traceparent) for each in sent_to(topic, stream))
        assert arrived.total() == ledger.parts[topic]


def test_records_of_one_user_stay_in_order(broker: Broker, ledger: Ledger) -> None:
    """They share a partition, in the order of sending; all partitions have some."""
    order, partitions = defaultdict(list), defaultdict(set)
    for partition, key, value, _ in content(broker, USER_EVENTS):
        order[key].append(value)
        partitions[key].add(partition)
    expected = defaultdict(list)
    for record in sent_to(USER_EVENTS, list(itertools.islice(records(PLAN), COUNT))):
        expected[record.key].append(record.value)
    assert order == expected
    assert {len(each) for each in partitions.values()} == {1}
    assert set.union(*partitions.values()) == set(range(kafka_topics.PARTITIONS))


def test_an_existing_topic_keeps_its_partitions(broker: Broker) -> None:
    """A missing one is created as configured."""
    broker.create("words", partitions=1)
    create_topics(client_options(broker.kafka), dict.fromkeys(["words", "others"], 2))
    with broker.admin() as admin:
        described = {each["name"]: len(each["partitions"]) for each in admin.describe_topics(["words", "others"])}
    assert described == {"words": 1, "others": 2}


def test_a_broker_that_is_away_is_named() -> None:
    """In one line, at once."""
    with pytest.raises(MachineError, match=r"cannot reach Kafka at 127\.0\.0\.1:1: Connection refused; start it"):
        KafkaTopics(client_options(settings(servers="127.0.0.1:1")))

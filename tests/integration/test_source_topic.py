"""A day of a topic: the records that came on it, the same however often it is read."""

import datetime
import json
import secrets
from collections.abc import Sequence
from contextlib import closing

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from spark_app.engine.source_topic import SourceTopic
from spark_app.errors import InputError
from spark_app.spark.kafka import client_options
from tests.kafka import Broker, settings

DAY = datetime.date(2024, 5, 2)
SCHEMA = StructType([StructField("id", StringType()), StructField("n", IntegerType())])


def at(text: str) -> int:
    """Milliseconds of an instant in UTC."""
    return int(datetime.datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of two partitions with records of three days, of which one came late."""
    name = f"clicks-{secrets.token_hex(4)}"
    broker.create(name, partitions=2, **{"retention.ms": "-1"})
    send(
        broker,
        name,
        [
            (0, "2024-05-01T23:59:59.999", {"id": "before"}),
            (0, "2024-05-02T00:00:00", {"id": "first", "n": 1}),
            (1, "2024-05-02T23:59:59.999", {"id": "last", "more": "x"}),
            (0, "2024-05-03T00:00:00", {"id": "after"}),
            (0, "2024-05-02T10:00:00", {"id": "late"}),
        ],
    )
    return name


def send(broker: Broker, topic: str, records: Sequence[tuple[int, str, object]]) -> None:
    """Sends values of JSON to partitions, each with a timestamp; a tombstone for None."""
    with closing(KafkaProducer(**client_options(broker.kafka))) as producer:
        for partition, instant, value in records:
            text = None if value is None else json.dumps(value).encode()
            producer.send(topic, text, key=b"k", partition=partition, timestamp_ms=at(instant)).get(30)


def ids(spark: SparkSession, broker: Broker, topic: str, day: datetime.date) -> list[str]:
    """The ids of the records of a day, in order."""
    found = SourceTopic(topic, broker.kafka).read(spark, day, SCHEMA)
    return sorted(row.text.id for row in found.rows.collect())


def test_a_day_has_the_same_records_again(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A record that comes late is one of the day on which it came; none is in two days, and none in no day."""
    days = [DAY + datetime.timedelta(days=number) for number in (-2, -1, 0, 1, 2)]
    expected = [[], ["before"], ["first", "last"], ["after", "late"], []]
    assert [ids(spark, broker, topic, day) for day in days] == expected
    send(broker, topic, [(1, "2024-05-02T01:00:00", {"id": "later"}), (1, "2024-05-03T01:00:00", {"id": "x"})])
    assert ids(spark, broker, topic, DAY) == ["first", "last", "later"]
    send(broker, topic, [(1, "2024-05-02T01:00:00", {"id": "latest"})])
    assert ids(spark, broker, topic, DAY) == ["first", "last", "later"]


def test_a_record_is_a_row_of_text(spark: SparkSession, broker: Broker, topic: str) -> None:
    """With what its schema does not know, and with its place; one that is no object is malformed."""
    send(broker, topic, [(1, "2024-05-02T23:59:59.999", [1]), (1, "2024-05-02T23:59:59.999", None)])
    rows = SourceTopic(topic, broker.kafka).read(spark, DAY, SCHEMA).rows.orderBy("source_file").collect()
    assert [(row.source_file, row.text.id, row.text.n, row.extra, row.is_malformed) for row in rows] == [
        (f"{topic}-0-1", "first", "1", None, False),
        (f"{topic}-1-0", "last", None, {"more": "x"}, False),
        (f"{topic}-1-1", None, None, None, True),
    ]


def test_a_day_that_is_not_whole_any_more_is_refused(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Fewer rows would replace those that were published; a day after what was deleted is whole."""
    broker.forget(topic, before=2, partition=0)
    with pytest.raises(
        InputError, match=r"does not have all records of 2024-05-02 any more: the oldest of partition 0 "
    ):
        ids(spark, broker, topic, DAY)
    assert ids(spark, broker, topic, DAY + datetime.timedelta(days=1)) == ["after", "late"]


def test_what_cannot_be_read_is_one_line(spark: SparkSession, broker: Broker) -> None:
    """A topic that is not there, brokers that do not listen, and none at all."""
    for kafka, problem in (
        (broker.kafka, "there is no topic clikcs at "),
        (settings(servers="127.0.0.1:1"), "topic clikcs cannot be read: Connection refused"),
        (settings(servers=None), "topic clikcs cannot be read: set kafka.servers in config/app.yml to its brokers"),
    ):
        with pytest.raises(InputError, match=problem):
            SourceTopic("clikcs", kafka).is_delivered(spark, DAY)

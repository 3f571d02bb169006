"""Asks brokers what they have, with the Java client and the settings of Spark's Kafka source."""

import re
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_app.settings import Kafka
from spark_app.spark.kafka import source_options
from spark_app.vocabulary.stream_lag import BrokerOffsets, Partition

ASK_MS: Final = 3_000
"""How long the brokers have for an answer."""
POLL_MS: Final = 500
DISCOVERY_SECONDS: Final = 30.0
"""How often it is looked for new partitions of a topic."""
CONNECT_SECONDS: Final = 5.0
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_TIMEOUTS: Final = MappingProxyType({"default.api.timeout.ms": f"{ASK_MS}", "request.timeout.ms": f"{ASK_MS}"})
_OPTIONS: Final = MappingProxyType(
    {
        **_TIMEOUTS,
        "key.deserializer": _BYTES,
        "value.deserializer": _BYTES,
        "allow.auto.create.topics": "false",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "reconnect.backoff.max.ms": "5000",
        # Of a partition one record is wanted, to see its timestamp; a broker sends at least one batch of records.
        "max.partition.fetch.bytes": "1",
        "max.poll.records": "1",
    }
)
_OFFSET: Final = re.compile(r"([\w.-]+)-(\d+)=(\d+)")
"""A partition and its offset, as a map of Java writes them."""


class KafkaOffsets:
    """A consumer of no group; one thread may use it at a time."""

    def __init__(self, spark: SparkSession, kafka: Kafka) -> None:
        """Nothing is connected before the first question."""
        self._jvm = _jvm(spark)
        options = _properties(self._jvm, kafka, _OPTIONS)
        self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(options)
        self._partitions: dict[str, tuple[float, Sequence[JavaObject]]] = {}

    def ask(self, topics: Iterable[str]) -> BrokerOffsets:
        """The first and end offsets of all partitions of topics; topics that do not exist have none.

        Raises:
            Py4JError: No broker answers, or the JVM has ended.
        """
        partitions = self._jvm.java.util.ArrayList()
        for topic in topics:
            for each in self._known_partitions(topic):
                partitions.add(each)
        first = _parsed(self._consumer.beginningOffsets(partitions))
        return BrokerOffsets(first, _parsed(self._consumer.endOffsets(partitions)))

    def timestamp(self, partition: Partition, offset: int) -> float | None:
        """The timestamp of the first record at an offset or after it, in Unix time; None if none came in time.

        Raises:
            Py4JError: No broker answers, or the JVM has ended.
        """
        one = self._jvm.org.apache.kafka.common.TopicPartition(*partition)
        self._consumer.assign(self._jvm.java.util.List.of(one))
        self._consumer.seek(one, offset)
        found = self._consumer.poll(self._jvm.java.time.Duration.ofMillis(POLL_MS)).records(one)
        return None if found.isEmpty() else found.get(0).timestamp() / 1000

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close(self._jvm.java.time.Duration.ofMillis(POLL_MS))

    def _known_partitions(self, topic: str) -> Sequence[JavaObject]:
        looked_at, known = self._partitions.get(topic, (0.0, ()))
        if not known or time.monotonic() > looked_at + DISCOVERY_SECONDS:
            new = self._jvm.org.apache.kafka.common.TopicPartition
            known = [new(each.topic(), each.partition()) for each in self._consumer.partitionsFor(topic) or ()]
            self._partitions[topic] = time.monotonic(), known
        return known


def topic_ids(spark: SparkSession, kafka: Kafka, topics: Iterable[str]) -> dict[str, str]:
    """The id that Kafka gave each topic when it was created; none of a topic that the brokers do not describe now."""
    jvm, ids = _jvm(spark), dict[str, str]()
    unset = jvm.org.apache.kafka.common.Uuid.ZERO_UUID.toString()  # of brokers before Kafka 2.8
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(_properties(jvm, kafka, _TIMEOUTS))
    except Py4JJavaError:  # settings that Kafka refuses, which the query reports
        return ids
    try:
        described = admin.describeTopics(jvm.java.util.ArrayList(list(topics))).topicNameValues()
        for topic in topics:
            with suppress(Py4JJavaError):  # it is missing, no broker answers, or this user may not see it
                ids[topic] = str(described.get(topic).get().topicId().toString())
    finally:
        admin.close(jvm.java.time.Duration.ofMillis(POLL_MS))
    return {topic: each for topic, each in ids.items() if each != unset}


def _jvm(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext
    return context._jvm


def _properties(jvm: Any, kafka: Kafka, own: Mapping[str, str]) -> JavaObject:
    """The properties of a client of Java: those of Spark's source that are for Kafka, and some of its own."""
    properties, prefix = jvm.java.util.HashMap(), "kafka."
    given = {name: value for name, value in source_options(kafka).items() if name.startswith(prefix)}
    for name, value in ({name.removeprefix(prefix): value for name, value in given.items()} | dict(own)).items():
        properties.put(name, value)
    return properties


def _parsed(offsets: JavaObject) -> Mapping[Partition, int]:
    return {(topic, int(number)): int(offset) for topic, number, offset in _OFFSET.findall(offsets.toString())}


def refusal(servers: str) -> str | None:
    """Why none of the brokers can be reached, in a few words; None if one listens.

    Spark would try for a minute before it says so.

    Args:
        servers: Hosts and ports with commas in between, as in `kafka.servers`.
    """
    problem: OSError | None = None
    for server in servers.split(","):
        host, _, port = server.rpartition("://")[2].rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except socket.gaierror:  # Kafka's client says at once that it does not know the name
            return None
        except OSError as error:
            problem = error
        else:
            return None
    return f"{problem.strerror or problem}" if problem else None

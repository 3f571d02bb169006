"""Records that are sent: to a topic of Kafka, or, without Kafka, to a JSON Lines file of the topic's folder."""

import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_app.errors import ConfigError
from spark_app.settings import Kafka, Settings
from spark_app.spark.kafka import client_options, sink_options
from spark_app.warehouse import hadoop_files

MAX_FILES: Final = 1_800
"""Files of a demo that each outgoing topic keeps; no query reads them. An hour at one file in two seconds."""


MAX_RECORD_BYTES: Final = 2**20
"""Bytes of a request of a Kafka producer, unless `kafka.max.request.size` says otherwise."""
RECORD_BYTES: Final = 61 + 21
"""What Kafka adds at most to a record that it sends alone: the head of a batch, and lengths."""
HEADER_BYTES: Final = 10
"""What Kafka adds at most to a header: two lengths."""
KEPT_BYTES: Final = 500
MAX_HEADERS: Final = 20
"""How many bytes of a key and of a header, and how many headers, are left of a record that is too large."""
ASKED_SECONDS: Final = 60
"""How long the answer of a broker about a topic is good."""


def send(records: DataFrame, topic: str, settings: Settings, *, name: str, is_read: bool = False) -> None:
    """Sends the records of a batch frame, each at least once.

    A record that is too large for the topic is sent without its value: it would end the query.
    A file holds values only. It appears whole, and is not written again if there is one of its name.

    Columns in: key, value, headers, as in `RECORD`.

    Args:
        records: The records.
        topic: The topic.
        settings: Where topics are.
        name: The name of the file, without its suffix: the same for the same records.
        is_read: Whether a query reads the topic; the oldest files of others are deleted in a demo.
    """
    if settings.kafka.servers:
        records = fitting(records, largest_record(settings.kafka, topic))
        writer = records.write.format("kafka").options(**sink_options(settings.kafka))
        writer.option("topic", topic).save()
        return
    values = [bytes(row.value) for row in records.select("value").collect()]
    if values:
        path = f"{settings.landing_path}/{topic}/{name}.jsonl"
        hadoop_files.write_once(records.sparkSession, path, b"".join(value + b"\n" for value in values))
        if settings.is_stream_demo and not is_read:
            delete_oldest(Path(path).parent)


def fitting(records: DataFrame, largest: int) -> DataFrame:
    """The same records, but for those that are too large: of them, a stub is left.

    Its value is a JSON object with `too_large`, the bytes of the record; its key is cut, and long headers are left out.

    Columns in: key, value, headers, as in `RECORD`.
    Columns out: the same.

    Args:
        records: The records.
        largest: The most bytes of a record, as Kafka counts them.
    """
    size = _size()
    stub = F.to_json(F.struct(size.alias("too_large"))).cast("binary")
    short = F.filter(
        "headers", lambda header: F.octet_length(header["key"]) + F.octet_length(header["value"]) <= KEPT_BYTES
    )
    left = {"key": F.substring("key", 1, KEPT_BYTES), "value": stub, "headers": F.slice(short, 1, MAX_HEADERS)}
    return records.select(
        *[F.when(size > largest, column).otherwise(F.col(name)).alias(name) for name, column in left.items()]
    )


def _size() -> Column:
    """The bytes of a record, by Kafka's `AbstractRecords.estimateSizeInBytesUpperBound`."""
    headers = F.transform(
        F.coalesce("headers", F.array()),
        lambda header: (
            F.octet_length(header["key"]) + F.coalesce(F.octet_length(header["value"]), F.lit(0)) + HEADER_BYTES
        ),
    )
    own = [F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key", "value")]
    return own[0] + own[1] + F.aggregate(headers, F.lit(RECORD_BYTES), lambda total, header: total + header)


def largest_record(kafka: Kafka, topic: str) -> int:
    """The most bytes of a record that the producer sends, and that a topic takes where the broker says it."""
    option = kafka.options.get("kafka.max.request.size")
    own = int(option.get_secret_value()) if option else MAX_RECORD_BYTES
    return min(own, _largest_of(_Key(kafka), topic, int(time.monotonic() // ASKED_SECONDS)) or own)


class _Key:
    """Settings as the key of a cache."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka

    def __hash__(self) -> int:
        return hash(self.kafka.servers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.kafka == self.kafka


@lru_cache(maxsize=16)
def _largest_of(key: _Key, topic: str, _: int) -> int | None:
    try:
        client: Any = KafkaAdminClient(**client_options(key.kafka))
    except (ConfigError, KafkaError):  # a login that Python does not have: the broker takes what it takes by default
        return None
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = client.describe_configs([resource], config_filter="all")
        return int(found["topic"][topic]["max.message.bytes"]["value"])
    except (KafkaError, KeyError):  # not allowed to ask
        return None
    finally:
        client.close()


def delete_oldest(folder: Path) -> None:
    """Deletes the oldest files of a topic, and their checksums, beyond the most that are kept."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-MAX_FILES]:
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

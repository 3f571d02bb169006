"""Where a streaming query reads on: a record that it leaves out, an offset or a time that it starts at."""

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from kafka import KafkaConsumer
from pyspark.sql import functions as F

from spark_app.engine import bisection, dead_letters
from spark_app.engine.progress import ProgressListener
from spark_app.engine.stream import of_kafka, start_file
from spark_app.errors import InputError, UsageError
from spark_app.execution import pipelines
from spark_app.execution.application import open_warehouse
from spark_app.execution.stream_reset import stopped
from spark_app.settings import Settings
from spark_app.spark.kafka import client_options, source_options
from spark_app.warehouse import hadoop_files
from spark_app.warehouse.tables import Warehouse

SKIPPED: Final = "left out by hand"
POSITION: Final = re.compile(r"(?P<topic>[\w.-]+):(?P<partition>\d+):(?P<offset>\d+)", re.ASCII)


class RecordPosition(NamedTuple):
    """A record of Kafka."""

    topic: str
    partition: int
    offset: int


def record_position(text: str) -> RecordPosition:
    """The record that a text of the form TOPIC:PARTITION:OFFSET names.

    Raises:
        UsageError: It has another form.
    """
    match = POSITION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not of the form TOPIC:PARTITION:OFFSET, such as user_events:0:17")
    return RecordPosition(match["topic"], int(match["partition"]), int(match["offset"]))


def skip(settings: Settings, query: str, skipped: RecordPosition, *, listener: ProgressListener) -> str:
    """Makes a record a dead letter of a query, which leaves it out from its next start on; returns its name.

    Raises:
        UsageError: There is no such query, or it does not read the topic from Kafka.
        InputError: Kafka has no such record.
    """
    (name,) = pipelines.qualified("streaming", [query])
    _require_topic(settings, name, skipped.topic)
    with open_warehouse(settings, listener=listener) as warehouse:
        leave_out(warehouse, settings, name, skipped)
    return name


def leave_out(warehouse: Warehouse, settings: Settings, query: str, skipped: RecordPosition) -> None:
    """Makes a record a dead letter of a query.

    Raises:
        InputError: Kafka has no such record.
    """
    reader = warehouse.spark.read.format("kafka").options(**source_options(settings.kafka))
    span = {
        "assign": json.dumps({skipped.topic: [skipped.partition]}),
        "startingOffsets": _json(skipped),
        "endingOffsets": _json(skipped._replace(offset=skipped.offset + 1)),
        "failOnDataLoss": "false",
    }
    rows = of_kafka(reader.options(**span).load()).withColumn("reason", F.lit(SKIPPED))
    if rows.isEmpty():
        raise InputError(f"{skipped.topic} has no record of offset {skipped.offset} in partition {skipped.partition}")
    dead_letters.leave_out(warehouse, rows, query, settings)


def start_at(
    settings: Settings,
    chosen: Sequence[str],
    start: str,
    confirm: Callable[[Mapping[str, str]], bool],
    *,
    listener: ProgressListener,
) -> bool:
    """Lets queries begin at an offset or an instant at their next start; what they have written stays.

    Their checkpoints are deleted, with the state in them. Where an offset is given, the other partitions go on where
    the checkpoint is, or begin at their first record.

    Args:
        settings: The configuration.
        chosen: Names of queries, at least one.
        start: TOPIC:PARTITION:OFFSET, or an instant in ISO 8601 with its zone.
        confirm: Is shown the checkpoint of each query, and decides.
        listener: Hears notes.

    Returns:
        Whether it was confirmed.

    Raises:
        UsageError: No query is named, one does not exist, runs, or does not read the topic from Kafka.
    """
    names = pipelines.qualified("streaming", chosen)
    if not names:
        raise UsageError("seek needs the name of a query: `spark-app streaming seek events --to 2026-01-31T08:00:00Z`")
    given = record_position(start) if POSITION.fullmatch(start) else _instant(start)
    for name in names:
        _require_topic(settings, name, given.topic if isinstance(given, RecordPosition) else None)
    with open_warehouse(settings, listener=listener) as warehouse, stopped(warehouse, names):
        checkpoints = {name: f"{settings.checkpoints_path}/{name}" for name in names}
        if not confirm(checkpoints):
            return False
        for name in names:
            move(warehouse, settings, name, given)
    return True


def move(warehouse: Warehouse, settings: Settings, query: str, given: RecordPosition | datetime.datetime) -> None:
    """Notes where a query begins, then deletes its checkpoint: after a kill in between it goes on as it was."""
    checkpoint, file = f"{settings.checkpoints_path}/{query}", start_file(settings, query)
    options = _options(warehouse, settings, checkpoint, given)
    hadoop_files.delete(warehouse.spark, file)
    hadoop_files.write_once(warehouse.spark, file, json.dumps(options).encode())
    hadoop_files.delete(warehouse.spark, checkpoint)


def _options(
    warehouse: Warehouse, settings: Settings, checkpoint: str, given: RecordPosition | datetime.datetime
) -> dict[str, str]:
    """Options of Spark's Kafka source."""
    if isinstance(given, datetime.datetime):
        milliseconds = round(given.timestamp() * 1000)
        return {"startingTimestamp": str(milliseconds), "startingOffsetsByTimestampStrategy": "latest"}
    read = bisection.read_offsets(warehouse.spark, checkpoint)
    offsets: dict[str, Any] = read.get(given.topic) or _first_offsets(settings, given.topic)
    if str(given.partition) not in offsets:
        raise UsageError(f"{given.topic} has no partition {given.partition}")
    offsets[str(given.partition)] = given.offset
    return {
        f"startingOffsets.{topic}": json.dumps({topic: each}) for topic, each in (read | {given.topic: offsets}).items()
    }


def _first_offsets(settings: Settings, topic: str) -> dict[str, int]:
    consumer = KafkaConsumer(**client_options(settings.kafka), group_id=None)
    try:
        return {str(partition): bisection.EARLIEST for partition in consumer.partitions_for_topic(topic) or ()}
    finally:
        consumer.close()


def _require_topic(settings: Settings, query: str, topic: str | None) -> None:
    if not settings.kafka.servers:
        raise UsageError(f"{query} reads files, which have no offsets: only queries that read Kafka can do this")
    topics = pipelines.load("streaming")[query].topics
    if topic is not None and topic not in topics:
        raise UsageError(f"{query} does not read the topic {topic}, but {', '.join(topics)}")


def _instant(text: str) -> datetime.datetime:
    with suppress(ValueError):
        instant = datetime.datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant
    raise UsageError(
        f"--to {text!r} is neither TOPIC:PARTITION:OFFSET, such as user_events:0:17, nor an instant with its zone, "
        "such as 2026-01-31T08:00:00Z"
    )


def _json(record: RecordPosition) -> str:
    return json.dumps({record.topic: {str(record.partition): record.offset}})

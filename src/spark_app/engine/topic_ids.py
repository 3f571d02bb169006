"""Keeps the ids of topics beside the offsets of a query: a topic that was deleted and created again has another id."""

import json
from collections.abc import Sequence
from typing import Final

from spark_app.engine.stream import StreamContext
from spark_app.errors import InputError
from spark_app.spark.kafka import source_options
from spark_app.spark.kafka_offsets import topic_ids
from spark_app.warehouse import hadoop_files

FILE: Final = "topics.json"
"""The file of a checkpoint with the id of each topic whose offsets are in it; Spark does not look at it."""


def require_same_topics(context: StreamContext, topics: Sequence[str]) -> None:
    """Checks that Kafka has the topics that a query has read, and notes their ids where that was not done.

    Spark sees that a topic was created again only while it has fewer records than were read of the old one. With more,
    the query would go on at the old offset, without the records before it. A topic without a noted id, or the
    brokers do not tell, is taken for the same.

    Args:
        context: A run of the query, before it starts.
        topics: What it reads.

    Raises:
        InputError: One was created again, and records must not be lost (`failOnDataLoss`).
    """
    kafka, file = context.settings.kafka, f"{context.checkpoint}/{FILE}"
    ids, noted = topic_ids(context.spark, kafka, topics), _noted(context, file)
    other = [topic for topic in topics if topic in ids and noted.get(topic, ids[topic]) != ids[topic]]
    if other:
        why = (
            f"{context.name}: Kafka at {kafka.servers} has another topic {' and '.join(other)} than the one of the "
            f"checkpoint {context.checkpoint}: the topic was deleted and created again"
        )
        if source_options(kafka)["failOnDataLoss"].lower() != "false":
            short = context.name.removeprefix("streaming.")
            raise InputError(f"{why}; start the query over: spark-app streaming reset {short}")
        context.note(f"{why}; the query goes on at its old offsets, as failOnDataLoss allows")
    if not ids.items() <= noted.items():
        hadoop_files.delete(context.spark, file)
        hadoop_files.write_once(context.spark, file, json.dumps(noted | ids).encode())


def _noted(context: StreamContext, file: str) -> dict[str, str]:
    """The ids by topic that were noted; none before the first micro-batch, when there are no offsets of a topic."""
    is_first = not hadoop_files.names_in(context.spark, f"{context.checkpoint}/offsets")
    text = None if is_first else hadoop_files.read_text(context.spark, file)
    return dict(json.loads(text)) if text else {}

"""Creates the topics of the project that its Kafka does not have: `python -m spark_app.execution.kafka_topics`.

Kafka of the compose stack creates no topic by itself: a wrong name would be a topic without records.
"""

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TopicAlreadyExistsError

from spark_app.errors import MachineError, SparkAppError
from spark_app.settings import load_settings
from spark_app.spark.kafka import client_options

if TYPE_CHECKING:
    from spark_app.declarations.pipeline import Pipeline

PARTITIONS: Final = 4
"""Of a topic that queries read: the cores of the stack."""


def partitions(queries: Iterable["Pipeline"], declared: Iterable[str]) -> dict[str, int]:
    """The partitions of each topic: one of those that queries only send, and as many as cores of the others."""
    loaded = list(queries)
    sent = {topic for query in loaded for topic in query.sends}
    read = {topic for query in loaded for topic in query.topics}
    return dict.fromkeys(sent, 1) | dict.fromkeys({*read, *declared}, PARTITIONS)


def create_topics(options: Mapping[str, Any], topics: Mapping[str, int]) -> list[str]:
    """Creates the topics that are missing, each with its partitions; existing ones keep theirs.

    Args:
        options: Of kafka-python's clients: `bootstrap_servers`, security.
        topics: The partitions of each topic.

    Returns:
        The names of those that were created.

    Raises:
        KafkaError: The broker does not answer or refuses.
    """
    admin = KafkaAdminClient(**options)
    try:
        missing = sorted(set(topics) - set(admin.list_topics()))
        if missing:
            with suppress(TopicAlreadyExistsError):  # another program was faster
                admin.create_topics(
                    {name: {"num_partitions": topics[name]} for name in missing}, wait_for_metadata=True
                )
    finally:
        admin.close()
    return missing


def main() -> int:
    """Creates those of the current project; returns the exit code."""
    from spark_app.execution import pipelines  # it imports PySpark, which who only sends records need not

    try:
        kafka = load_settings().kafka
        topics = partitions(pipelines.load("streaming").values(), (topic.name for topic in pipelines.topics()))
        for name in create_topics(client_options(kafka), topics):
            sys.stderr.write(f"created the topic {name}\n")
    except KafkaError as error:
        sys.stderr.write(f"error: cannot create topics in Kafka at {kafka.servers}: {error}\n")
        return MachineError.exit_code
    except SparkAppError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

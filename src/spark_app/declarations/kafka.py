"""The rows of a source in the records that a topic got on a day: `kafka(...)` of a `Source`."""

from spark_app.engine.code_location import CodeLocation
from spark_app.engine.source_topic import TopicRecords
from spark_app.engine.topics import Topic


def kafka(topic: str | Topic) -> TopicRecords:
    """The records of a day of a topic, whose values are JSON objects: `kafka("orders")`.

    A record is one of the day of its timestamp, unless an earlier record of its partition is one of a later day: then
    it came late, and is one of that day. So a day that is over has the same records however often it is read, as long
    as the topic keeps them.

    Args:
        topic: The name of the topic, or one that is declared.

    Raises:
        DeclarationError: The name is empty.
    """
    location = CodeLocation.of_caller()
    name = topic if isinstance(topic, str) else topic.name
    if not name.strip():
        raise location.error("kafka names a topic")
    return TopicRecords(name, location.shown)

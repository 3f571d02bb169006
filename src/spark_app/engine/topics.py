"""Topics that streaming queries read: the columns of their values, and what every value must have."""

import copy
from collections.abc import Sequence
from typing import Final

from pyspark.sql.types import StructType, TimestampType

from spark_app.engine import json_types
from spark_app.engine.code_location import CodeLocation, parsed
from spark_app.errors import ConfigError
from spark_app.settings import Interval, Stream

EVENT_TIME_AFTER_MAX: Final = "10 minutes"
"""Shorter than the watermarks of the queries: an event that is let in never makes one late that comes in time."""


class Topic:
    """A topic whose records have a JSON object as value.

    Attributes:
        name: The name of the topic, and of the folder of its files.
        schema: The columns of a value.
        key: The column that identifies a value; records with equal keys are repetitions.
        event_time: The column with the instant at which it happened.
        optional: Columns that a value may leave out.
        malformed_if: When a value whose columns are of their types is malformed: an SQL condition about `row`, its
            columns, and `timestamp`, that of the record, and the reason.
        event_time_after_max: How much later than its record a value may say that it happened, as
            `message.timestamp.after.max.ms` bounds the timestamp of a record in Kafka; None for any time.
        location: Where it is declared.
    """

    def __init__(
        self,
        name: str,
        *,
        schema: str | StructType,
        key: str,
        event_time: str = "timestamp",
        optional: Sequence[str] = (),
        malformed_if: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Declares a topic.

        Args:
            name: Its name.
            schema: The columns of a value, as Spark writes them: `order_id string, amount decimal(12, 2), ...`.
            key: The column that identifies a value.
            event_time: The column with the instant at which it happened.
            optional: Columns that a value may leave out; the others it must have.
            malformed_if: When a value is malformed, too: an SQL condition and the reason.

        Raises:
            DeclarationError: The schema cannot be read, or has a type that no JSON value is read as, or lacks a column.
        """
        self.name, self.location = name, CodeLocation.of_caller()
        self.schema = parsed(schema, self.location)
        self.key, self.event_time, self.optional = key, event_time, tuple(optional)
        self.malformed_if = tuple(malformed_if)
        self.event_time_after_max: Interval | None = EVENT_TIME_AFTER_MAX
        self.location.require((key, event_time, *optional), self.schema.names, f"topic {name}")
        if not isinstance(self.schema[event_time].dataType, TimestampType):
            raise self.location.error(f"topic {name}: {event_time} must be a timestamp: it is the instant of the event")
        for field in self.schema:
            if not json_types.is_known(field.dataType):
                raise self.location.error(
                    f"topic {name}: {field.name} is {field.dataType.simpleString()}, which is not read from JSON: "
                    f"take one of {json_types.NAMES}"
                )

    @property
    def required(self) -> list[str]:
        """The columns without which a value is malformed."""
        return [name for name in self.schema.names if name not in self.optional]


def bounded(topic: Topic, stream: Stream) -> Topic:
    """A topic with the configured bound of its event time."""
    found = copy.copy(topic)
    found.event_time_after_max = stream.event_time_after_max_of.get(topic.name, stream.event_time_after_max)
    return found


def require_known(stream: Stream, topics: Sequence[Topic]) -> None:
    """Checks the names of topics in the configuration.

    Raises:
        ConfigError: A topic is configured that no producer writes.
    """
    known = [topic.name for topic in topics]
    for name in stream.event_time_after_max_of.keys() - set(known):
        raise ConfigError(f"stream.event_time_after_max_of: there is no topic {name}; allowed are {', '.join(known)}")

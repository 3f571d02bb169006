"""Topics that streaming queries read: the columns of their values, and what every value must have."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.types import StructType

from spark_app.errors import ConfigError
from spark_app.settings import Interval, Stream

EVENT_TIME_AFTER_MAX: Final = "10 minutes"
"""Shorter than the watermarks of the queries: an event that is let in never makes one late that comes in time."""


@dataclass(frozen=True)
class Topic:
    """A topic whose records have a JSON object as value.

    Attributes:
        name: The name of the topic, and of the folder of its files.
        schema: The columns of a value.
        key: The column that identifies a value; records with equal keys are repetitions.
        event_time: The column with the instant at which it happened.
        optional: Columns that a value may leave out.
        faults: What may be wrong with a value whose columns are of their types: an SQL condition about `row`, its
            columns, and `timestamp`, that of the record, and the reason.
        event_time_after_max: How much later than its record a value may say that it happened, as
            `message.timestamp.after.max.ms` bounds the timestamp of a record in Kafka; None for any time.
    """

    name: str
    schema: StructType
    key: str
    event_time: str = "timestamp"
    optional: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    event_time_after_max: Interval | None = EVENT_TIME_AFTER_MAX

    @property
    def required(self) -> list[str]:
        """The columns without which a value is malformed."""
        return [name for name in self.schema.names if name not in self.optional]


DEAD_LETTERS: Final = "dead_letters"
"""The topic of the records that no query can read, or that one leaves out."""


def bounded(topic: Topic, stream: Stream) -> Topic:
    """A topic with the configured bound of its event time."""
    return replace(
        topic, event_time_after_max=stream.event_time_after_max_of.get(topic.name, stream.event_time_after_max)
    )


def require_known(stream: Stream, topics: Sequence[Topic]) -> None:
    """Checks the names of topics in the configuration.

    Raises:
        ConfigError: A topic is configured that no producer writes.
    """
    known = [topic.name for topic in topics]
    for name in stream.event_time_after_max_of.keys() - set(known):
        raise ConfigError(f"stream.event_time_after_max_of: there is no topic {name}; allowed are {', '.join(known)}")

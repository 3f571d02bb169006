"""The rows of a source in the records that a topic of Kafka got on a day."""

import datetime
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, Final

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.errors import InputError
from spark_app.settings import Kafka, Settings
from spark_app.spark.kafka import source_options
from spark_app.spark.kafka_offsets import KafkaOffsets, refusal
from spark_app.warehouse import raw_files
from spark_app.warehouse.hadoop_files import FileReader
from spark_app.warehouse.origin import RawDay, declared_in
from spark_app.warehouse.periods import ROWS

_POSITIONS: Final = "startingOffsets"
"""The option of streams that stands for the bounds of a day."""


@dataclass(frozen=True)
class TopicRecords:
    """The records of a topic, as `kafka(...)` declares it.

    Attributes:
        topic: The name of the topic.
        declared: Where it is declared: file and line.
    """

    topic: str
    declared: str

    def problem(self, schema: StructType) -> str | None:
        """See `DeclaredOrigin`."""
        return None

    def lacks(self) -> None:
        """See `DeclaredOrigin`."""

    def of(self, settings: Settings) -> "SourceTopic":
        """See `DeclaredOrigin`."""
        return SourceTopic(self.topic, settings.kafka, self.declared)


@dataclass(frozen=True)
class SourceTopic:
    """The same, at the brokers of a run."""

    content_name: ClassVar[str] = ROWS
    path: ClassVar[None] = None

    topic: str
    kafka: Kafka
    declared: str = ""

    @property
    def facts(self) -> Mapping[str, str]:
        """See `Origin`."""
        return {"topic": self.topic}

    def where(self, day: datetime.date) -> str:
        """See `Origin`."""
        return f"topic {self.topic} on {day}"

    def is_delivered(self, spark: SparkSession, day: datetime.date) -> bool:
        """See `Origin`."""
        return not self._records(spark, day).isEmpty()

    def content(self, reader: FileReader, day: datetime.date, known: str = "") -> None:
        """See `Origin`: what a topic got on a day that is over does not change."""

    def read(self, spark: SparkSession, day: datetime.date, schema: StructType) -> RawDay:
        """See `Origin`.

        Of each partition these are the records from the first one with a timestamp of the day to that before the first
        one of a later day: a record that comes late is one of the day on which it came, and reading the day again gives
        the same.
        """
        with declared_in(self.declared):
            records = self._records(spark, day)
        place = F.concat_ws("-", "topic", "partition", "offset")
        lines = records.select(F.col("value").cast("string").alias("value"), place.alias("source_file"))
        return RawDay(raw_files.json_rows(lines, schema=schema), records.isEmpty)

    def _records(self, spark: SparkSession, day: datetime.date) -> DataFrame:
        servers = self.kafka.servers
        if not servers:
            raise InputError(f"topic {self.topic} cannot be read: set kafka.servers in config/app.yml to its brokers")
        if why := refusal(servers):
            raise InputError(f"topic {self.topic} cannot be read: {why} ({servers})")
        start = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
        self._require_whole(spark, start)
        reading = {name: value for name, value in source_options(self.kafka).items() if name != _POSITIONS}
        return spark.read.format("kafka").options(**reading | self._bounds(start)).load()

    def _bounds(self, start: datetime.datetime) -> dict[str, str]:
        end = start + datetime.timedelta(days=1)
        return {
            "subscribe": self.topic,
            "startingTimestamp": f"{start.timestamp() * 1000:.0f}",
            "endingTimestamp": f"{end.timestamp() * 1000:.0f}",
            "startingOffsetsByTimestampStrategy": "latest",  # a partition without a record since then has none
        }

    def _require_whole(self, spark: SparkSession, start: datetime.datetime) -> None:
        """Checks that the brokers have not deleted records of a day.

        Raises:
            InputError: They may have, or do not have the topic.
        """
        try:
            with closing(KafkaOffsets(spark, self.kafka)) as brokers:
                first = brokers.ask([self.topic]).first
                oldest = {part: brokers.timestamp(part, offset) for part, offset in first.items() if offset}
        except Py4JError as error:
            raise InputError(f"topic {self.topic} cannot be read: its brokers do not answer") from error
        if not first:
            raise InputError(f"there is no topic {self.topic} at {self.kafka.servers}")
        for (_, number), at in oldest.items():
            if at is not None and at > start.timestamp():
                instant = datetime.datetime.fromtimestamp(at, datetime.UTC)
                raise InputError(
                    f"topic {self.topic} does not have all records of {start:%Y-%m-%d} any more: the oldest of "
                    f"partition {number} is of {instant:%Y-%m-%dT%H:%M:%SZ} (retention.ms of the topic)"
                )

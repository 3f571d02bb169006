"""The query that keeps the records of topics that do not parse."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.declarations.pipeline import Pipeline
from spark_app.engine import dead_letters, records
from spark_app.engine.code_location import CodeLocation
from spark_app.engine.stream import StreamContext
from spark_app.engine.stream_config import StreamConfig
from spark_app.engine.topics import Topic
from spark_app.vocabulary import names
from spark_app.warehouse.schemas import DEAD_LETTER_REPLAYS, DEAD_LETTERS, RECORD
from spark_app.warehouse.tables import Table


class DeadLetters(Pipeline):
    """The query that keeps the records of topics that do not parse; it also declares the table of replays."""

    kind = "query"

    def __init__(self, topics: Sequence[Topic], location: CodeLocation) -> None:
        """Keeps what does not parse of some topics."""
        super().__init__(
            name=dead_letters.NAME,
            location=location,
            config=StreamConfig,
            topics=tuple(topic.name for topic in topics),
            writes=(Table(dead_letters.NAME, DEAD_LETTERS), Table(dead_letters.REPLAYS, DEAD_LETTER_REPLAYS)),
            sends=(dead_letters.NAME,),
        )
        self._topics = topics

    def query(self, context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        """Writes what does not parse of every topic, and counts it."""

        def rows(topic: Topic) -> DataFrame:
            read = context.read(topic.name, config)
            return records.parsed(read, context.bounded(topic)).select(*RECORD.names, "reason", records.EXTRA)

        counted = records.count_malformed(reduce(DataFrame.unionByName, [rows(topic) for topic in self._topics]))
        context.telemetry.measure(names.DEAD_LETTERS, 0)  # the first value of a series is no increase
        return context.for_each_batch(dead_letters.dead_letters(counted), dead_letters.write, config)

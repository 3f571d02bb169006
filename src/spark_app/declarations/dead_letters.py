"""Records that do not parse, with the reason and the original bytes.

`spark-app streaming replay` writes the table dead_letter_replays.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.engine import letters, records
from spark_app.engine import topics as topics_
from spark_app.engine.stream import BatchContext, StreamConfig, StreamContext
from spark_app.engine.topics import Topic
from spark_app.runs import run_record
from spark_app.spark.persisted import persisted
from spark_app.telemetry import names
from spark_app.warehouse.schemas import DEAD_LETTER_REPLAYS, DEAD_LETTERS, PARSED_RECORD
from spark_app.warehouse.tables import Table

WRITES: Final = (Table("dead_letters", DEAD_LETTERS), Table("dead_letter_replays", DEAD_LETTER_REPLAYS))


def dead_letters(rows: DataFrame) -> DataFrame:
    """One row per record that does not parse.

    Its id is that of the record, so that a record that is read again gives the same one. A line of a file has no
    offset: equal lines of a file have one id until they are `numbered`.

    Columns in: those of `PARSED_RECORD`.
    Columns out: those of `DEAD_LETTERS`.
    """
    malformed = rows.where("problem IS NOT NULL").withColumn("dead_letter_id", records.identity())
    malformed = malformed.withColumn("query", F.lit(None).cast("string"))
    return malformed.withColumnRenamed("problem", "reason").select(*DEAD_LETTERS.names)


def numbered(letters: DataFrame) -> DataFrame:
    """The dead letters of a micro-batch with different ids: of equal lines of a file, the second is `...-2`.

    A micro-batch reads whole files, and equal lines differ in nothing: read again, they get the same ids.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: those of `DEAD_LETTERS`.
    """
    number = F.row_number().over(Window.partitionBy("dead_letter_id").orderBy(F.lit(0)))
    letters = letters.withColumn("number", number)
    own = F.concat_ws("-", "dead_letter_id", F.when(F.col("number") > 1, F.col("number")))
    return letters.withColumn("dead_letter_id", own).drop("number")


def write(batch: BatchContext, found: DataFrame) -> None:
    """Writes the dead letters of one micro-batch to the table, once, and to the topic, at least once.

    They are counted when they are in the table, whatever becomes of the micro-batch.
    """
    with persisted(numbered(found)) as rows:
        written = batch.append(rows, "dead_letters")
        batch.stream.count({run_record.DEAD_LETTERS: written})
        batch.stream.telemetry.measure(names.DEAD_LETTERS, written or 0)
        sent = letters.messages(rows) if batch.stream.settings.kafka.servers else letters.lines(rows)
        batch.publish(sent, topics_.DEAD_LETTERS)


class DeadLetters:
    """The query that keeps the records of topics that do not parse.

    Attributes:
        TOPICS: The topics that it reads.
        READS: The tables that it reads.
        WRITES: The tables that it writes.
        SENDS: The topics that it writes.
        Config: What an operator tunes.
    """

    READS: Final[Sequence[str]] = ()
    WRITES: Final = WRITES
    SENDS: Final = (topics_.DEAD_LETTERS,)
    Config: Final = StreamConfig

    def __init__(self, topics: Sequence[Topic]) -> None:
        """Keeps what does not parse of some topics."""
        self.TOPICS = tuple(topic.name for topic in topics)
        self._topics = topics

    def query(self, context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        """Writes what does not parse of every topic, and counts it."""

        def rows(topic: Topic) -> DataFrame:
            read = context.read(topic.name, config)
            return records.parsed(read, context.bounded(topic)).select(*PARSED_RECORD.names, records.EXTRA)

        counted = records.count_problems(reduce(DataFrame.unionByName, [rows(topic) for topic in self._topics]))
        context.telemetry.measure(names.DEAD_LETTERS, 0)  # the first value of a series is no increase
        return context.for_each_batch(dead_letters(counted), write, config)

"""Records that do not parse, with the reason and the original bytes.

Reads: the topics that producers write.
Writes: dead_letters, and the topic dead_letters; `spark-app streaming replay` writes dead_letter_replays.
"""

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.pipeline import records, stream
from app.pipeline import topics as topics_
from app.pipeline.stream import BatchContext, StreamContext
from app.pipeline.topics import INCOMING, Topic
from app.runs import run_record
from app.telemetry import names
from app.warehouse.schemas import DEAD_LETTER_REPLAYS, DEAD_LETTERS, JUDGED_RECORD
from app.warehouse.tables import Table

HEADERS: Final = "dead_letter."
"""How the names of headers begin that are about the original record."""
ABOUT: Final = {
    "reason": "string",
    "topic": "string",
    "partition": "string",
    "offset": "string",
    "timestamp": "string",
    "key": "binary",
    "query": "string",
}
"""What the headers are about, and how it is written."""
TOPICS: Final = tuple(topic.name for topic in INCOMING)
READS: Final = ()
WRITES: Final = (Table("dead_letters", DEAD_LETTERS), Table("dead_letter_replays", DEAD_LETTER_REPLAYS))


class Config(stream.StreamConfig):
    """What an operator tunes: see `config/streaming/dead_letters.yml`."""


def dead_letters(rows: DataFrame) -> DataFrame:
    """One row per record that does not parse.

    Its id is that of the record, so that a record that is read again gives the same one. A line of a file has no
    offset: equal lines of a file have one id until they are `numbered`.

    Columns in: those of `JUDGED_RECORD`.
    Columns out: those of `DEAD_LETTERS`.
    """
    letters = rows.where("problem IS NOT NULL").withColumn("dead_letter_id", records.identity())
    letters = letters.withColumn("query", F.lit(None).cast("string"))
    return letters.withColumnRenamed("problem", "reason").select(*DEAD_LETTERS.names)


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


def messages(letters: DataFrame) -> DataFrame:
    """One record per dead letter for those who read the topic: its value is that of the original, byte for byte.

    Its key is the id. Headers say the rest: `dead_letter.reason`, `.topic`, `.partition`, `.offset`, `.timestamp`,
    `.key` and `.query`, those that are known, before those of the original.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: key, value, headers.
    """
    about = [
        F.struct(F.lit(f"{HEADERS}{name}").alias("key"), F.col(name).cast(kind).cast("binary").alias("value"))
        for name, kind in ABOUT.items()
    ]
    own = F.filter(F.array(*about), lambda header: header["value"].isNotNull())
    others = F.filter(F.coalesce("headers", F.array()), lambda header: ~header["key"].startswith(HEADERS))
    return letters.select(
        F.col("dead_letter_id").cast("binary").alias("key"), "value", F.concat(own, others).alias("headers")
    )


def lines(letters: DataFrame) -> DataFrame:
    """One JSON object per dead letter for those who read files, where a record is a line: key and value in base 64.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: key, value, headers.
    """
    value = F.to_json(F.struct(*[F.col(name) for name in DEAD_LETTERS.names if name != "headers"]))
    return letters.select(
        F.col("dead_letter_id").cast("binary").alias("key"), value.cast("binary").alias("value"), "headers"
    )


def write(batch: BatchContext, letters: DataFrame) -> None:
    """Writes the dead letters of one micro-batch to the table, once, and to the topic, at least once.

    They are counted when they are in the table, whatever becomes of the micro-batch.
    """
    letters = numbered(letters).persist()
    try:
        written = batch.append(letters, "dead_letters")
        batch.stream.count({run_record.DEAD_LETTERS: written})
        batch.stream.run.measure(names.DEAD_LETTERS, written or 0)
        sent = messages(letters) if batch.stream.settings.kafka.servers else lines(letters)
        batch.publish(sent, topics_.DEAD_LETTERS)
    finally:
        letters.unpersist()


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Writes what does not parse of every topic, and counts it."""

    def rows(topic: Topic) -> DataFrame:
        read = context.read(topic.name, config)
        return records.parsed(read, context.bounded(topic)).select(*JUDGED_RECORD.names, records.EXTRA)

    judged = records.judged(reduce(DataFrame.unionByName, [rows(topic) for topic in INCOMING]))
    context.run.measure(names.DEAD_LETTERS, 0)  # the first value of a series is no increase
    return context.for_each_batch(dead_letters(judged), write, config)

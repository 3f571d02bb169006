"""Dead letters: records that do not parse, or that a query leaves out, with the reason and the original bytes."""

import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_app.engine import records, topic_writer
from spark_app.engine.topics import Topic, bounded
from spark_app.runs import run_record
from spark_app.settings import Settings
from spark_app.spark.persisted import persisted
from spark_app.vocabulary import names
from spark_app.warehouse import delta_log
from spark_app.warehouse.schemas import DEAD_LETTERS
from spark_app.warehouse.tables import Warehouse

if TYPE_CHECKING:
    from spark_app.engine.stream import BatchContext

NAME: Final = run_record.DEAD_LETTERS
"""The table, the topic and the count of dead letters."""
REPLAYS: Final = "dead_letter_replays"
"""The table of those that were sent to their topics again."""
ID: Final = "dead_letter_id"
"""The key of a dead letter, and the header that tells who reads a replayed record which one it was."""
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
IS_SAME: Final = f"old.{ID} = new.{ID} AND old.query = new.query"


def dead_letters(rows: DataFrame) -> DataFrame:
    """One row per record that does not parse.

    Its id is that of the record, so that a record that is read again gives the same one. A line of a file has no
    offset: equal lines of a file have one id until they are `numbered`.

    Columns in: those of `RECORD`; reason, what is wrong with the value, null for a well-formed one.
    Columns out: those of `DEAD_LETTERS`.
    """
    malformed = rows.where("reason IS NOT NULL").withColumn(ID, records.identity())
    return malformed.withColumn("query", F.lit(None).cast("string")).select(*DEAD_LETTERS.names)


def numbered(letters: DataFrame) -> DataFrame:
    """The dead letters of a micro-batch with different ids: of equal lines of a file, the second is `...-2`.

    A micro-batch reads whole files, and equal lines differ in nothing: read again, they get the same ids.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: those of `DEAD_LETTERS`.
    """
    number = F.row_number().over(Window.partitionBy(ID).orderBy(F.lit(0)))
    letters = letters.withColumn("number", number)
    own = F.concat_ws("-", ID, F.when(F.col("number") > 1, F.col("number")))
    return letters.withColumn(ID, own).drop("number")


def write(batch: "BatchContext", found: DataFrame) -> None:
    """Writes the dead letters of one micro-batch to the table, once, and to the topic, at least once.

    They are counted when they are in the table, whatever becomes of the micro-batch.
    """
    with persisted(numbered(found)) as rows:
        written = batch.append(rows, NAME)
        batch.stream.count({NAME: written})
        batch.stream.telemetry.measure(names.DEAD_LETTERS, written or 0)
        batch.publish(_sent(rows, batch.stream.settings), NAME)


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
    key = F.col(ID).cast("binary").alias("key")
    return letters.select(key, "value", F.concat(own, others).alias("headers"))


def lines(letters: DataFrame) -> DataFrame:
    """One JSON object per dead letter for those who read files, where a record is a line: key and value in base 64.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: key, value, headers.
    """
    value = F.to_json(F.struct(*[F.col(name) for name in DEAD_LETTERS.names if name != "headers"]))
    key = F.col(ID).cast("binary").alias("key")
    return letters.select(key, value.cast("binary").alias("value"), "headers")


def _sent(letters: DataFrame, settings: Settings) -> DataFrame:
    return messages(letters) if settings.kafka.servers else lines(letters)


def left_out(warehouse: Warehouse, query: str, topic: str) -> list[str]:
    """The ids of the records of a topic that a query leaves out."""
    if NAME not in warehouse.tables or not warehouse.exists(NAME):
        return []
    letters = warehouse.table(NAME)
    if "query" not in letters.columns:  # a table of an older program
        return []
    found = letters.where((F.col("query") == query) & (F.col("topic") == topic)).select(ID).distinct()
    return [row[ID] for row in found.collect()]


def leave_out(warehouse: Warehouse, found: DataFrame, query: str, settings: Settings) -> None:
    """Makes records dead letters of a query, which leaves them out from its next start on; each once.

    Columns in: those of `RECORD`, and reason.

    Args:
        warehouse: The tables.
        found: The records.
        query: The query: `streaming.events`.
        settings: Where topics are.
    """
    warehouse.create_if_missing(NAME)
    letters = found.withColumns({ID: records.identity(), "query": F.lit(query)})
    letters = letters.select(*DEAD_LETTERS.names).dropDuplicates([ID])
    merge = partial(warehouse.merge, letters, NAME, IS_SAME, is_upsert=False)
    delta_log.write_beside_compactions(warehouse.spark, warehouse.path(NAME), merge)
    topic_writer.send(_sent(letters, settings), NAME, settings, name=f"left-out-{secrets.token_hex(6)}")


@dataclass(frozen=True)
class Replay:
    """What became of the dead letters.

    Attributes:
        sent: Those that were sent again.
        malformed: Those that still do not parse, by topic; they stay where they are.
    """

    sent: dict[str, int]
    malformed: dict[str, int]


def waiting(letters: DataFrame, replays: DataFrame, topics: Sequence[Topic]) -> DataFrame:
    """One row per dead letter that was not sent again yet, with what is wrong with it now as its reason.

    Columns in: letters: those of `DEAD_LETTERS`; replays: those of `DEAD_LETTER_REPLAYS`.
    Columns out: those of `DEAD_LETTERS`; the reason is null if it is well-formed by now.
    """
    left = letters.to(DEAD_LETTERS).dropDuplicates([ID]).join(replays, ID, "left_anti")
    return reduce(DataFrame.unionByName, [_judged(left, topic) for topic in topics])


def _judged(letters: DataFrame, topic: Topic) -> DataFrame:
    of_topic = letters.where(F.col("topic") == topic.name)
    return records.parsed(of_topic, topic).select(*DEAD_LETTERS.names)


def replay(warehouse: Warehouse, settings: Settings, topics: Sequence[Topic]) -> Replay:
    """Sends the dead letters that parse by now to their topics, each with the bytes, key and headers that it had.

    A dead letter is sent once, unless the process dies before it has taken note of that: then the next call sends it
    again, a repetition that consumers recognize by its key. A query that drops what comes later than its watermark also
    drops a late replay, and counts it.

    Args:
        warehouse: The tables.
        settings: Where topics are.
        topics: The topics that the project reads.
    """
    topics = [bounded(topic, settings.stream) for topic in topics]
    with persisted(waiting(warehouse.table(NAME), warehouse.table(REPLAYS), topics)) as letters:
        counts = letters.groupBy("topic").agg(
            F.count_if(F.col("reason").isNull()).alias("sent"), F.count("reason").alias("malformed")
        )
        rows = counts.collect()
        name = f"replay-{secrets.token_hex(6)}"
        for topic in [row.topic for row in rows if row.sent]:
            fixed = letters.where((F.col("topic") == topic) & F.col("reason").isNull())
            topic_writer.send(_with_id_header(fixed), topic, settings, name=name, is_read=True)
            _record_replay(warehouse, fixed)
    return Replay(
        {row.topic: row.sent for row in rows if row.sent}, {row.topic: row.malformed for row in rows if row.malformed}
    )


def _with_id_header(letters: DataFrame) -> DataFrame:
    """The records as they were, with a header that names the dead letter."""
    mark = F.struct(F.lit(ID).alias("key"), F.col(ID).cast("binary").alias("value"))
    others = F.filter(F.coalesce("headers", F.array()), lambda header: header["key"] != ID)
    return letters.select("key", "value", F.concat(others, F.array(mark)).alias("headers"))


def _record_replay(warehouse: Warehouse, letters: DataFrame) -> None:
    warehouse.create_if_missing(REPLAYS)
    now = datetime.datetime.now(datetime.UTC)
    warehouse.append(letters.select(ID, F.lit(now).alias("replayed_at")), REPLAYS)

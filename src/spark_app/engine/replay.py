"""Dead letters that are sent again, once the program parses them."""

import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.engine import records, topic_writer
from spark_app.engine.topics import Topic, bounded
from spark_app.settings import Settings
from spark_app.spark.persisted import persisted
from spark_app.warehouse.schemas import DEAD_LETTERS
from spark_app.warehouse.tables import Warehouse

LETTERS: Final = "dead_letters"
REPLAYS: Final = "dead_letter_replays"
HEADER: Final = "dead_letter_id"
"""The header that tells who reads a replayed record which dead letter it was."""


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
    """One row per dead letter that was not sent again yet, and what is wrong with it now.

    Columns in: letters: those of `DEAD_LETTERS`; replays: those of `DEAD_LETTER_REPLAYS`.
    Columns out: those of `DEAD_LETTERS`; problem, null if it is well-formed by now.
    """
    left = letters.to(DEAD_LETTERS).dropDuplicates(["dead_letter_id"]).join(replays, "dead_letter_id", "left_anti")
    return reduce(DataFrame.unionByName, [_with_problem(left, topic) for topic in topics])


def _with_problem(letters: DataFrame, topic: Topic) -> DataFrame:
    of_topic = letters.where(F.col("topic") == topic.name)
    return records.parsed(of_topic, topic).select(*DEAD_LETTERS.names, "problem")


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
    with persisted(waiting(warehouse.table(LETTERS), warehouse.table(REPLAYS), topics)) as letters:
        counts = letters.groupBy("topic").agg(
            F.count_if(F.col("problem").isNull()).alias("sent"), F.count("problem").alias("malformed")
        )
        rows = counts.collect()
        name = f"replay-{secrets.token_hex(6)}"
        for topic in [row.topic for row in rows if row.sent]:
            fixed = letters.where((F.col("topic") == topic) & F.col("problem").isNull())
            topic_writer.send(_with_dead_letter_header(fixed), topic, settings, name=name, is_read=True)
            _record_replay(warehouse, fixed)
    return Replay(
        {row.topic: row.sent for row in rows if row.sent}, {row.topic: row.malformed for row in rows if row.malformed}
    )


def _with_dead_letter_header(letters: DataFrame) -> DataFrame:
    """The records as they were, with a header that names the dead letter."""
    mark = F.struct(F.lit(HEADER).alias("key"), F.col("dead_letter_id").cast("binary").alias("value"))
    others = F.filter(F.coalesce("headers", F.array()), lambda header: header["key"] != HEADER)
    return letters.select("key", "value", F.concat(others, F.array(mark)).alias("headers"))


def _record_replay(warehouse: Warehouse, letters: DataFrame) -> None:
    with warehouse.creation_lock(REPLAYS):
        warehouse.create_if_missing(REPLAYS)
    now = datetime.datetime.now(datetime.UTC)
    warehouse.append(letters.select("dead_letter_id", F.lit(now).alias("replayed_at")), REPLAYS)

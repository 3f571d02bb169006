"""Dead letters as their topic has them, and the records that a single query leaves out."""

import secrets
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.engine import records, topic_writer
from spark_app.engine.topics import DEAD_LETTERS as DEAD_LETTERS_TOPIC
from spark_app.settings import Settings
from spark_app.warehouse import delta_log
from spark_app.warehouse.schemas import DEAD_LETTERS
from spark_app.warehouse.tables import Warehouse

TABLE: Final = "dead_letters"
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
IS_SAME: Final = "old.dead_letter_id = new.dead_letter_id AND old.query = new.query"


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
    key = F.col("dead_letter_id").cast("binary").alias("key")
    return letters.select(key, "value", F.concat(own, others).alias("headers"))


def lines(letters: DataFrame) -> DataFrame:
    """One JSON object per dead letter for those who read files, where a record is a line: key and value in base 64.

    Columns in: those of `DEAD_LETTERS`.
    Columns out: key, value, headers.
    """
    value = F.to_json(F.struct(*[F.col(name) for name in DEAD_LETTERS.names if name != "headers"]))
    key = F.col("dead_letter_id").cast("binary").alias("key")
    return letters.select(key, value.cast("binary").alias("value"), "headers")


def left_out(warehouse: Warehouse, query: str, topic: str) -> list[str]:
    """The ids of the records of a topic that a query leaves out."""
    if TABLE not in warehouse.tables or not warehouse.exists(TABLE):
        return []
    letters = warehouse.table(TABLE)
    if "query" not in letters.columns:  # a table of an older program
        return []
    found = letters.where((F.col("query") == query) & (F.col("topic") == topic)).select("dead_letter_id").distinct()
    return [row.dead_letter_id for row in found.collect()]


def leave_out(warehouse: Warehouse, found: DataFrame, query: str, settings: Settings) -> None:
    """Makes records dead letters of a query, which leaves them out from its next start on; each once.

    Columns in: those of `RECORD`, and reason.

    Args:
        warehouse: The tables.
        found: The records.
        query: The query: `streaming.events`.
        settings: Where topics are.
    """
    with warehouse.creation_lock(TABLE):
        warehouse.create_if_missing(TABLE)
    letters = found.withColumns({"dead_letter_id": records.identity(), "query": F.lit(query)})
    letters = letters.select(*DEAD_LETTERS.names).dropDuplicates(["dead_letter_id"])
    merge = partial(warehouse.merge, letters, TABLE, IS_SAME, is_upsert=False)
    delta_log.write_beside_compactions(warehouse.spark, warehouse.path(TABLE), merge)
    sent = messages(letters) if settings.kafka.servers else lines(letters)
    topic_writer.send(sent, DEAD_LETTERS_TOPIC, settings, name=f"left-out-{secrets.token_hex(6)}")

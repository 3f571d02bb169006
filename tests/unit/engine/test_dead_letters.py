import base64
import json
from pathlib import Path
from typing import Final

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from app.streaming import dead_letters as module
from app.topics import INCOMING
from spark_app.engine import dead_letters
from spark_app.engine.dead_letters import Replay, replay, waiting
from spark_app.engine.stream import BatchContext
from spark_app.warehouse.schemas import DEAD_LETTER_REPLAYS, DEAD_LETTERS, RECORD
from tests.unit.streaming.drained import NOON, Drained, event, observed, written

JUDGED: Final = StructType([*RECORD.fields, StructField("reason", StringType())])
BROKEN: Final = b'{"event_id": "caf\xe9"}'


def test_the_id_is_that_of_the_record(spark: SparkSession) -> None:
    """A line of a file has that of its bytes."""
    kafka = (b"k", BROKEN, [("a", b"b")], "clicks", 3, 17, NOON)
    line = (None, BROKEN, None, "clicks", None, None, NOON)
    rows = spark.createDataFrame([(*kafka, "no x"), (*line, "no x"), (*kafka, None)], JUDGED)
    found = dead_letters.dead_letters(rows).collect()
    assert found[0].dead_letter_id == "clicks-3-17"
    assert len(found[1].dead_letter_id) == len("clicks-") + 64
    assert [(row.reason, bytes(row.value)) for row in found] == [("no x", BROKEN)] * 2


def test_equal_lines_of_files_are_different_dead_letters(tmp_path: Path, spark: SparkSession) -> None:
    """In one file and in one that comes later, each has an id, and a repetition of a micro-batch gives the same ids."""
    query = Drained(tmp_path, spark, module)
    query.deliver("clicks", b"[]", b"[]", b"{")
    progress = query.drain()
    query.deliver("clicks", b"[]")
    query.drain()
    ids = query.rows("dead_letters", "dead_letter_id")
    assert len(set(ids)) == len(ids) == 4
    assert sum(each.endswith("-2") for (each,) in ids) == 1
    again = BatchContext(spark, query.context.warehouse, query.context, f"{progress[0]['id']}-again", 0)
    unnumbered = F.regexp_replace("dead_letter_id", "-2$", "")
    dead_letters.write(again, query.context.table("dead_letters").withColumn("dead_letter_id", unnumbered))
    assert sorted(query.rows("dead_letters", "dead_letter_id")) == sorted([*ids, *ids])
    (file, *_) = {bytes(row.headers[0]["value"]) for row in query.context.table("dead_letters").collect()}
    assert file.endswith(b".jsonl")


def test_a_message_has_the_original_bytes(spark: SparkSession) -> None:
    """Its key is the id; headers say why and where from, before those of the record."""
    rows = spark.createDataFrame([(b"\xff", BROKEN, [("a", b"b")], "clicks", 3, 17, NOON, "not UTF-8")], JUDGED)
    (message,) = dead_letters.messages(dead_letters.dead_letters(rows)).collect()
    assert (bytes(message.key), bytes(message.value)) == (b"clicks-3-17", BROKEN)
    headers = [(header.key, bytes(header.value)) for header in message.headers]
    about = {"reason": b"not UTF-8", "topic": b"clicks", "partition": b"3", "offset": b"17", "key": b"\xff"}
    assert about.items() <= {name.removeprefix("dead_letter."): value for name, value in headers}.items()
    assert headers[-1] == ("a", b"b")


def test_a_line_of_a_file_has_the_original_bytes_in_base_64(spark: SparkSession) -> None:
    """A line of JSON has no room for bytes that are no text."""
    rows = spark.createDataFrame([(b"\xff", BROKEN, None, "clicks", 3, 17, NOON, "not UTF-8")], JUDGED)
    (line,) = dead_letters.lines(dead_letters.dead_letters(rows)).collect()
    value = json.loads(bytes(line.value))
    assert (value["reason"], base64.b64decode(value["value"]), value["offset"]) == ("not UTF-8", BROKEN, 17)


def test_what_does_not_parse_is_kept_once_in_the_table_and_sent(tmp_path: Path, spark: SparkSession) -> None:
    """Of every topic; a micro-batch is computed once for both, and one that is repeated changes nothing."""
    query = Drained(tmp_path, spark, module)
    query.deliver("user_events", BROKEN, event(1))
    query.deliver("clicks", b"[]")
    progress = query.drain()
    assert max(batch["malformed"] for batch in observed(progress, "rows")) == 2
    assert query.context.counts["dead_letters"] == 2
    assert query.rows("dead_letters", "topic", "reason") == [
        ("clicks", "not one JSON object"),
        ("user_events", "not UTF-8"),
    ]
    sent = query.lines("dead_letters")
    assert sorted(json.loads(line)["topic"] for line in sent) == ["clicks", "user_events"]
    batch = BatchContext(spark, query.context.warehouse, query.context, progress[0]["id"], 0)
    dead_letters.write(batch, query.context.table("dead_letters"))
    assert len(query.rows("dead_letters", "topic")) == 2
    assert query.context.counts["dead_letters"] == 2
    assert query.lines("dead_letters") == sent


def test_dead_letters_of_a_failed_batch_are_counted_once_they_are_in_the_table(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its topic refuses them, after the table has taken them: a repetition sends them, and counts none twice."""
    query = Drained(tmp_path, spark, module)
    query.deliver("clicks", b"[]", b"{")
    landing = Path(query.home.settings.landing_path)
    (landing / "dead_letters").write_text("a file where the folder belongs")
    with pytest.raises(StreamingQueryException):
        query.drain()
    assert (len(query.rows("dead_letters", "topic")), query.context.counts["dead_letters"]) == (2, 2)
    (landing / "dead_letters").unlink()
    query.drain()
    assert (len(query.rows("dead_letters", "topic")), query.context.counts["dead_letters"]) == (2, 2)
    assert len(query.lines("dead_letters")) == 2


def test_what_parses_by_now_is_sent_once(tmp_path: Path, spark: SparkSession) -> None:
    """With its bytes; what still does not parse stays, and nothing is sent twice."""
    query = Drained(tmp_path, spark, module)
    fixed = written(event(1))
    letters = [
        ("user_events-0-1", "a bug", b"k", fixed, [("a", b"b")], "user_events", 0, 1, NOON, None),
        ("user_events-0-2", "not one JSON object", None, b"broken", None, "user_events", 0, 2, NOON, None),
        ("clicks-0-1", "no click_id", None, b"{}", None, "clicks", 0, 1, NOON, None),
    ]
    query.context.table("dead_letters")
    query.context.warehouse.append(spark.createDataFrame(letters, DEAD_LETTERS), "dead_letters")
    malformed = {"user_events": 1, "clicks": 1}
    assert replay(query.context.warehouse, query.home.settings, INCOMING) == Replay({"user_events": 1}, malformed)
    assert replay(query.context.warehouse, query.home.settings, INCOMING) == Replay({}, malformed)
    assert query.lines("user_events") == [fixed]
    assert query.rows("dead_letter_replays", "dead_letter_id") == [("user_events-0-1",)]


def test_a_dead_letter_that_was_read_twice_is_sent_once(spark: SparkSession) -> None:
    """As after a start from the first offset; one that was sent does not wait."""
    letter = ("user_events-0-1", "a bug", b"k", written(event(1)), None, "user_events", 0, 1, NOON, None)
    letters = spark.createDataFrame([letter, letter], DEAD_LETTERS)
    sent = [(letter[0], NOON)]
    assert waiting(letters, spark.createDataFrame([], DEAD_LETTER_REPLAYS), INCOMING).count() == 1
    assert waiting(letters, spark.createDataFrame(sent, DEAD_LETTER_REPLAYS), INCOMING).count() == 0

from pathlib import Path

from pyspark.sql import SparkSession

from app.streaming import dead_letters
from app.topics import INCOMING
from spark_app.engine.replay import Replay, replay, waiting
from spark_app.warehouse.schemas import DEAD_LETTER_REPLAYS, DEAD_LETTERS
from tests.unit.streaming.drained import NOON, Drained, event, written


def test_what_parses_by_now_is_sent_once(tmp_path: Path, spark: SparkSession) -> None:
    """With its bytes; what still does not parse stays, and nothing is sent twice."""
    query = Drained(tmp_path, spark, dead_letters)
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

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.spark.query_listener import QueryEvent, QueryListener
from spark_app.vocabulary.spark_progress import parse
from tests.polling import patience, poll_until

NAME: Final = "streaming.listened"
END_WHILE_LISTENING: Final = """
import sys, threading, time
from pathlib import Path
from spark_app.settings import load_settings
from spark_app.spark import session
from spark_app.spark.query_listener import QueryListener

home = Path(sys.argv[1])
spark = session.start(load_settings().model_copy(update={"home": home}), name="listened", log_file=home / "spark.log")
has_progress = threading.Event()
listener = QueryListener(spark, lambda event: has_progress.set() if event.kind == "progress" else None)
query = spark.readStream.format("rate").load().writeStream.format("noop")
query.option("checkpointLocation", str(home / "checkpoint")).start()
assert has_progress.wait(60)
began = time.monotonic()
session.stop(spark)
listener.close()
print(time.monotonic() - began)
"""


@contextmanager
def listening(spark: SparkSession, handle: Any, **arguments: Any) -> Iterator[QueryListener]:
    """A listener that is closed in any case: the session is that of all tests."""
    listener = QueryListener(spark, handle, **arguments)
    try:
        yield listener
    finally:
        listener.close()


def rate(spark: SparkSession) -> DataFrame:
    """Rows without end."""
    return spark.readStream.format("rate").option("rowsPerSecond", 100).load()


def started(rows: DataFrame, folder: Path) -> StreamingQuery:
    """A query over rows, with a trigger of a tenth of a second."""
    writer = rows.writeStream.format("noop").queryName(NAME).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(processingTime="100 milliseconds").start()


@pytest.fixture
def soon_idle(spark: SparkSession) -> Iterator[None]:
    """Spark reports after a tenth of a second that a query is idle, and not after ten."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100")
    yield
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")


@pytest.mark.usefixtures("soon_idle")
def test_events_of_a_query_come_in_order_with_its_name(spark: SparkSession, tmp_path: Path) -> None:
    """Start, micro-batches, idle times, end; only the start has the name, and the progress is what Spark says."""
    events: list[QueryEvent] = []
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "a.jsonl").write_text("1\n2\n", encoding="utf-8")
    with listening(spark, events.append):
        rows = spark.readStream.format("text").load(str(landing)).observe("rows", F.count("*").alias("read"))
        query = started(rows, tmp_path)
        poll_until(lambda: any(event.kind == "idle" for event in events), lambda: f"no idle event in {events}")
        query.stop()
        poll_until(lambda: events[-1].kind == "terminated", lambda: f"no end in {events}")
    kinds = [event.kind for event in events]
    assert [kind for kind in kinds if kind != "idle"] == ["started", "progress", "terminated"]
    assert {event.query for event in events} == {NAME}
    assert {event.run_id for event in events} == {str(query.runId)}
    progress = parse(events[1].json)
    assert (progress.rows_read, progress.observed) == (2, {"rows": {"read": 2}})
    assert json.loads(events[-1].json)["exception"] is None


def test_the_end_of_a_query_that_failed_says_why(spark: SparkSession, tmp_path: Path) -> None:
    """The event has the exception of Spark."""
    events: list[QueryEvent] = []
    with listening(spark, events.append):
        started(rate(spark).selectExpr("raise_error('boom')"), tmp_path)
        poll_until(lambda: any(event.kind == "terminated" for event in events), lambda: f"no end in {events}")
    assert "boom" in json.loads(events[-1].json)["exception"]


def test_a_handler_that_raises_harms_neither_the_query_nor_later_events(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its error is logged once."""
    handled = 0

    def handle(_: QueryEvent) -> None:
        nonlocal handled
        handled += 1
        raise ZeroDivisionError("of the handler")

    with caplog.at_level(logging.WARNING, "spark_app.spark.query_listener"), listening(spark, handle):
        query = started(rate(spark), tmp_path)
        poll_until(lambda: handled > 3, lambda: f"{handled} events were handled")
        assert query.isActive
        query.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "an event of a streaming query was not handled: ZeroDivisionError: of the handler"
    ]


def test_a_handler_that_hangs_does_not_block_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Events are dropped and counted while the queue is full; micro-batches go on."""
    going_on = threading.Event()
    with listening(spark, lambda _: going_on.wait(), queued=1) as listener:
        query = started(rate(spark), tmp_path)
        poll_until(lambda: listener.dropped > 2, lambda: f"{listener.dropped} events were dropped")
        last = query.lastProgress
        assert last is not None
        batch = last["batchId"]
        poll_until(lambda: (query.lastProgress or last)["batchId"] > batch + 2, "the query does not go on")
        query.stop()
        going_on.set()


def test_a_closed_listener_has_handled_what_was_queued_and_hears_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Closing waits for the handler, so that the last micro-batch is counted before telemetry ends."""
    events: list[QueryEvent] = []
    going_on = threading.Event()

    def handle(event: QueryEvent) -> None:
        going_on.wait()
        events.append(event)

    with listening(spark, handle) as listener:
        query = started(rate(spark), tmp_path)
        poll_until(lambda: listener._queue.qsize() > 2, "no events were queued")
        closing = threading.Thread(target=listener.close)
        closing.start()
        closing.join(0.5)
        assert closing.is_alive()
        going_on.set()
        closing.join()
    count, batch = len(events), query.lastProgress
    assert batch is not None
    assert count > 2
    poll_until(lambda: (query.lastProgress or batch)["batchId"] > batch["batchId"] + 1, "the query does not go on")
    query.stop()
    assert len(events) == count
    assert listener._queue.empty()


def test_a_session_ends_while_its_queries_are_listened_to(tmp_path: Path) -> None:
    """Java calls Python from its threads; neither of them waits for the other at the end."""
    program = [sys.executable, "-c", END_WHILE_LISTENING, str(tmp_path)]
    done = subprocess.run(program, check=False, capture_output=True, text=True, timeout=patience(120))
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 10

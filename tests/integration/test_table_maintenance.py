"""Tables of streaming queries stay in few files: small commits write one each, and compaction joins them."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app.streaming import balances, dead_letters, events
from spark_app.engine.dead_letters import leave_out
from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.execution import maintenance
from spark_app.execution.run import Job
from spark_app.execution.supervisor import StopCondition
from spark_app.settings import load_settings
from spark_app.spark import job_properties
from spark_app.warehouse import delta_log
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.schemas import RECORD
from spark_app.warehouse.tables import Warehouse
from tests.declared import pipeline
from tests.integration.home import Home
from tests.integration.test_streams import CONFIG, LINES, Process, Streams, job
from tests.polling import poll_until
from tests.unit.streaming.drained import Drained, event, observed
from tests.unit.watching import Watching

DELTA: Final = "spark.databricks.delta."
COMMITS: Final = 5
"""After how many commits the tests compact."""
DAY_MINUTES: Final = 24 * 60


@contextmanager
def as_streaming(spark: SparkSession) -> Iterator[None]:
    """The session writes Delta tables as one of `spark-app streaming` does."""
    with ExitStack() as stack:
        for key, value in load_settings().stream_properties.items():
            if key.startswith(DELTA):
                stack.enter_context(job_properties.setting(spark, key, value))
        yield


@pytest.fixture
def streams(tmp_path: Path, spark: SparkSession) -> Iterator[Streams]:
    """A home folder without a file."""
    with as_streaming(spark):
        yield Streams(Home(tmp_path / "home", spark))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are looked at all the time, and compacted after a few commits."""
    monkeypatch.setattr(maintenance, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(maintenance, "COMPACT_COMMITS", COMMITS)


def commits(warehouse: Warehouse, table: str) -> list[Commit]:
    """The commits that added files, oldest first."""
    return [each for each in delta_log.history(warehouse.spark, warehouse.path(table)) if each.files][::-1]


def assert_nothing_is_kept(spark: SparkSession) -> None:
    """Rows that a merge has kept are gone: a stream may run for months."""
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def compactions(warehouse: Warehouse, table: str) -> int:
    """How often a table was compacted."""
    return sum(each.operation == delta_log.COMPACTION for each in commits(warehouse, table))


def files_of(warehouse: Warehouse, table: str) -> int:
    """How many files a table has now."""
    return len(warehouse.table(table).inputFiles())


@pytest.mark.parametrize("module", [events, balances, dead_letters])
def test_a_small_micro_batch_writes_one_file(tmp_path: Path, spark: SparkSession, module: Any) -> None:
    """By Delta's sink, by a merge and by a function, however many tasks compute its rows; a partition has its own."""
    with as_streaming(spark):
        query = Drained(tmp_path, spark, module, files_per_trigger=1)
        for batch in range(3):
            bought = {"amount": "1.00", "currency": "EUR"}
            rows = [event(10 * batch + each, batch, "purchase", user=each, **bought) for each in range(10)]
            query.deliver("user_events", *rows, b"broken", b"[]")
            query.deliver("clicks", b"{}", b"1")
        progress = query.drain()
        if module is events:
            query.deliver("user_events", event(90, 0), event(91, DAY_MINUTES))
            progress += query.drain()
            written = observed(progress, "written")
            assert sum(each["rows"] for each in written) == len(query.rows("events", "event_id")) == 32
    assert_nothing_is_kept(spark)
    table = query.pipeline.writes[0].name
    files = [each.files for each in commits(query.context.warehouse, table)]
    assert files == ([1, 1, 1, 2] if module is events else [1] * len(files))
    assert len(files) >= 3


def running(streams: Streams, query: Job, stop_condition: StopCondition, watching: Watching) -> threading.Thread:
    """A thread in which a query runs until it is asked to stop."""
    thread = threading.Thread(
        target=partial(streams.run, query, stop_condition=stop_condition, watching=watching), daemon=True
    )
    thread.start()
    return thread


def spans_of_runs(home: Home) -> Iterator[dict[str, Any]]:
    """All spans of the runs of a home, with their attributes by name."""
    for file in home.settings.runs_path.glob("*/traces*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    yield from scope["spans"]


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span, with their values as text or number."""
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("is_on", [True, False])
def test_a_running_query_has_its_tables_maintained(streams: Streams, *, is_on: bool) -> None:
    """Compacted and vacuumed. The content and the counts of the run stay the same; its step has files and no rows.

    Off means off.
    """
    stream = streams.home.settings.stream.model_copy(update={"maintain_tables": is_on})
    streams.home.settings = streams.home.settings.model_copy(update={"stream": stream})
    stop_condition, watching = StopCondition(), Watching()
    thread = running(streams, job("copies"), stop_condition, watching)
    for number in range(3 * COMMITS):
        streams.deliver("words", f"{number}", f"line {number:02}")
    warehouse = streams.warehouse
    poll_until(lambda: warehouse.exists("lines") and len(streams.lines()) == 3 * COMMITS, "all rows", seconds=120)
    if is_on:
        poll_until(lambda: files_of(warehouse, "lines") <= COMMITS, "a compaction", seconds=120)
    stop_condition.stop.set()
    thread.join(60)
    assert streams.lines() == [f"line {number:02}" for number in range(3 * COMMITS)]
    (status,) = watching.statuses
    assert (status.state, status.counts["published"]) == ("stopped", 3 * COMMITS)
    spans = list(spans_of_runs(streams.home))
    (run,) = (span["traceId"] for span in spans if span["name"] == "run streaming.copies")
    compacted = [span for span in spans if span["name"] == "step compact lines"]
    assert all(span["traceId"] != run and [each["traceId"] for each in span["links"]] == [run] for span in compacted)
    steps = list(map(attributes_of, compacted))
    assert (compactions(warehouse, "lines") > 0, bool(steps)) == (is_on, is_on)
    assert any(span["name"] == "step vacuum lines" for span in spans) == is_on
    for step in steps:
        assert (step["pipeline.step.kind"], "pipeline.rows.written" in step) == ("maintain", False)
    assert all(each.files == 1 for each in commits(warehouse, "lines"))


@pytest.mark.usefixtures("eager")
def test_a_query_that_drains_compacts_what_it_has_written(streams: Streams) -> None:
    """At its end, when enough commits have come, of several starts; the first one created it.

    What a kill in the middle of a compaction leaves stays unread.
    """
    for number in range(COMMITS - 1):
        streams.deliver("words", f"{number}", f"line {number}")
        if number == 3:
            table = Path(streams.warehouse.path("lines"))
            torn = next(table.glob("*.parquet"))
            (table / f"part-of-a-killed-compaction.{torn.name}").write_bytes(torn.read_bytes())
        if number % 2:
            streams.run(job("copies"))
    assert files_of(streams.warehouse, "lines") == 1
    assert streams.lines() == [f"line {number}" for number in range(COMMITS - 1)]


class Gate:
    """Stops the task that computes rows until it is opened; counts how often rows are computed."""

    def __init__(self, folder: Path) -> None:
        """It is closed."""
        self.computed, self.opened = folder / "computed", folder / "opened"

    def __call__(self, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The same rows."""
        for frame in frames:
            with self.computed.open("a", encoding="utf-8") as file:
                file.write("once\n")
            poll_until(self.opened.exists, "the compaction", seconds=60)
            yield frame


def merging(gate: Gate) -> Process:
    """Merges the rows of a micro-batch, which are computed while the merge goes on."""

    def process(batch: BatchContext, rows: DataFrame) -> None:
        passed = rows.coalesce(1).mapInPandas(gate, "line string")
        batch.merge(passed, "lines", condition="old.line = new.line")

    return process


def test_a_merge_stands_a_compaction_of_its_table(streams: Streams, tmp_path: Path) -> None:
    """One that is committed after the merge has begun takes the files away that it changes: it merges again."""
    gate, warehouse = Gate(tmp_path), streams.warehouse
    for word in ("a", "b"):
        streams.deliver("words", word, word)
        streams.run(job("copies"))
    streams.deliver("new", "1", "a", "b", "c")
    stop_condition, watching = StopCondition(is_draining=True), Watching()

    def query(context: StreamContext, config: Any) -> DataStreamWriter:
        rows = context.read("new", config).select(F.col("value").cast("string").alias("line"))
        return context.for_each_batch(rows, merging(gate), config)

    merges = Job("streaming.merges", pipeline(query=query, topics=("new",), writes=(LINES,)), CONFIG)
    thread = running(streams, merges, stop_condition, watching)
    poll_until(gate.computed.exists, "the merge", seconds=120)
    warehouse.optimize("lines")
    gate.opened.touch()
    thread.join(120)
    (status,) = watching.statuses
    assert (status.state, status.restarts, status.error) == ("stopped", 0, None)
    assert streams.lines() == ["a", "b", "c"]
    assert gate.computed.read_text(encoding="utf-8") == "once\n"
    assert_nothing_is_kept(streams.home.spark)


def test_a_record_is_left_out_beside_a_compaction(streams: Streams, tmp_path: Path) -> None:
    """One that is committed while the record is added takes the files away that were searched for it: it is added."""
    warehouse, settings = streams.warehouse, streams.home.settings
    searched, opened = tmp_path / "searched", tmp_path / "opened"

    def slowly(reason: str) -> str:
        searched.touch()
        poll_until(opened.exists, "the compaction", seconds=60)
        return reason

    def found(offset: int) -> DataFrame:
        record = {"topic": "words", "partition": 0, "offset": offset, "value": b"x"}
        return streams.home.spark.createDataFrame([record], RECORD).withColumn("reason", F.lit("refused"))

    for offset in range(2):
        leave_out(warehouse, found(offset), "streaming.copies", settings)
    slow = found(2).withColumn("reason", F.udf(slowly, "string", useArrow=False)("reason"))
    thread = threading.Thread(target=leave_out, args=(warehouse, slow, "streaming.copies", settings))
    thread.start()
    poll_until(searched.exists, "the merge", seconds=120)
    warehouse.optimize("dead_letters")
    opened.touch()
    thread.join(120)
    assert sorted(row.offset for row in warehouse.table("dead_letters").collect()) == [0, 1, 2]

"""Streaming queries on files, as `spark-app streaming` runs them, in the session of all tests."""

import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StringType, StructField, StructType

from spark_app.engine import bisection, tracing
from spark_app.engine.bisection import MIN_RECORDS
from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.engine.stream_config import StreamConfig
from spark_app.errors import InputError, MachineError, NotReadyError, QualityGateError
from spark_app.eventlog.bridge.batch_traces import MAX_SPANS
from spark_app.execution import stream_reset, supervisor
from spark_app.execution.application import Application, spark_identity
from spark_app.execution.run import Job, load_jobs
from spark_app.execution.streams import run_queries
from spark_app.execution.supervisor import StopCondition
from spark_app.runs import run_record, stream_status
from spark_app.telemetry import setup
from spark_app.vocabulary.spark_names import MDC_STEP_TRACE_ID, MDC_TRACE_ID, STREAM_TRIGGER
from spark_app.warehouse.fingerprint import Fingerprint, written
from spark_app.warehouse.tables import Table, Warehouse
from tests.declared import pipeline
from tests.integration.home import Home
from tests.integration.processes import PATIENCE_SECONDS, children_of, make_quick, started
from tests.polling import poll_until
from tests.receivers import Receiver, receiver
from tests.unit.watching import Watching

LINES: Final = Table("lines", StructType([StructField("line", StringType())]))
CONFIG: Final = StreamConfig(trigger="100 milliseconds", records_per_trigger=100, files_per_trigger=1)
EVENT: Final = {"user_id": "c-1", "event_type": "view", "timestamp": "2024-01-01T12:00:00Z"}
Process = Callable[[BatchContext, DataFrame], None]


class Streams:
    """A home folder whose queries run in the session of all tests."""

    def __init__(self, home: Home) -> None:
        """Nothing is delivered yet."""
        self.home = home
        stream = home.settings.stream.model_copy(update={"landing": "landing"})
        home.settings = home.settings.model_copy(update={"stream": stream})

    @property
    def warehouse(self) -> Warehouse:
        """The tables, with the one of the queries that are made here."""
        return Warehouse(
            self.home.spark, self.home.settings.warehouse_path, [*self.home.warehouse.tables.values(), LINES]
        )

    def deliver(self, topic: str, name: str, *lines: str) -> None:
        """Puts a file in place, whole."""
        folder = Path(self.home.settings.landing_path) / topic
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f".{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (folder / f".{name}").rename(folder / f"{name}.jsonl")

    @contextmanager
    def application(self, watching: Watching) -> Iterator[Application]:
        """An application in the session."""
        telemetry = setup.start(service_version="0", environment="test", application="streams")
        log = self.home.folder / "logs" / "spark.jsonl"
        spark, identity = self.home.spark, spark_identity(self.home.spark)
        try:
            yield Application(
                "i", "streams", self.home.settings, spark, self.warehouse, telemetry, watching, log, *identity
            )
        finally:
            telemetry.close()

    def run(
        self, *jobs: Job, stop_condition: StopCondition | None = None, watching: Watching | None = None
    ) -> tuple[Any, ...]:
        """Runs queries until all is read, or another end; returns the records of the runs, and why queries failed."""
        watching = watching or Watching()
        with self.application(watching) as application:
            failures = run_queries(application, jobs, stop_condition or StopCondition(is_draining=True), watching)
        return application.results, failures

    def forget_commit(self, name: str, batch: int) -> None:
        """Leaves the checkpoint as a kill does that comes after the write of a batch and before its commit."""
        commits = Path(self.home.settings.checkpoints_path) / f"streaming.{name}" / "commits"
        for file in (commits / f"{batch}", commits / f".{batch}.crc"):
            file.unlink()

    def batches(self, name: str, log: str) -> set[int]:
        """The micro-batches in a log of the checkpoint of a query: planned in `offsets`, done in `commits`."""
        folder = Path(self.home.settings.checkpoints_path) / f"streaming.{name}" / log
        return {int(file.name) for file in folder.glob("[0-9]*")}

    def lines(self) -> list[str]:
        """The rows of the table of the queries that are made here."""
        return sorted(row.line for row in self.warehouse.table("lines").collect())


@pytest.fixture
def streams(tmp_path: Path, spark: SparkSession) -> Streams:
    """A home folder without a file."""
    return Streams(Home(tmp_path / "home", spark))


def job(name: str, process: Process | None = None, *, is_single: bool = False) -> Job:
    """A query that copies lines, or each line once, to the table: by Delta's sink, or by a function for each batch."""

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        rows = context.read("words", config).selectExpr("cast(value as string) line")
        rows = rows.dropDuplicates(["line"]) if is_single else rows
        if process is None:
            return context.append(rows, "lines", config)
        return context.for_each_batch(rows, process, config)

    return Job(f"streaming.{name}", pipeline(query=query, topics=("words",), writes=(LINES,)), CONFIG)


def events(home: Home) -> Job:
    """The query of user events, as configured."""
    (found,) = load_jobs(home.settings, "streaming", ["events"])
    return found


def test_a_query_goes_on_where_it_ended(streams: Streams) -> None:
    """Events that come twice are kept once, also if the second comes after a restart; the record has the counts."""
    first, second = [json.dumps(EVENT | {"event_id": f"e-{number}"}) for number in (1, 2)]
    streams.deliver("user_events", "a", first, first, "not json")
    watching = Watching()
    ((record,), _) = streams.run(events(streams.home), watching=watching)
    assert sum("the table customers is empty" in note for note in watching.notes) == 1
    assert record.outcome == "succeeded"
    assert record.counts == {"read": 3, "published": 1, "duplicates": 1, "late": 0, "unknown_fields": 0}
    assert (record.facts["batches"] >= 1, record.facts["restarts"]) == (True, 0)
    assert list(record.tables) == ["events"]
    streams.deliver("user_events", "b", second, first)
    streams.run(events(streams.home))
    assert streams.home.rows("events", "event_id") == [("e-1",), ("e-2",)]


@pytest.mark.parametrize("is_function", [True, False])
def test_commits_of_a_query_say_how_its_rows_are_made(streams: Streams, *, is_function: bool) -> None:
    """Whether Spark appends them, or a function that gets each micro-batch."""

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.append(rows, "lines")

    streams.deliver("words", "a", "one")
    made = replace(job("copy", write if is_function else None), fingerprints={"lines": '{"code":"1"}'})
    ((record,), _) = streams.run(made)
    found = written(streams.home.tables / "lines")
    assert record.counts["published"] == 1
    assert found is not None
    assert found.fingerprint == Fingerprint(code="1")


def test_a_query_that_fails_leaves_the_others_running(streams: Streams) -> None:
    """It fails for good if it never worked; its record says why."""

    def fail(_: BatchContext, __: DataFrame) -> None:
        raise ValueError("no such thing")

    streams.deliver("words", "a", "one")
    records, (failure,) = streams.run(job("bad", fail), job("good"))
    outcomes = {record.pipeline: record.outcome for record in records}
    assert outcomes == {"streaming.bad": "failed", "streaming.good": "succeeded"}
    line = r"streaming\.bad: its micro-batch from the beginning to .*logOffset.* failed: .*no such thing; look at"
    assert re.match(line, str(failure)), failure
    assert streams.lines() == ["one"]


def whole(rows: DataFrame) -> DataFrame:
    """Lines as numbers, which makes a micro-batch fail that has another line."""
    return rows.selectExpr("cast(cast(line as int) as string) line")


@pytest.mark.parametrize("is_function", [True, False])
def test_a_record_that_fails_a_query_is_left_out_and_costs_no_other(streams: Streams, *, is_function: bool) -> None:
    """It is found in the micro-batch, and is a dead letter of the query, which goes on, and leaves it out for good."""

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.append(whole(rows), "lines")

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        return context.append(
            whole(context.read("words", config).selectExpr("cast(value as string) line")), "lines", config
        )

    declared = pipeline(query=query, topics=("words",), writes=(LINES,))
    copy = job("copy", write) if is_function else Job("streaming.copy", declared, CONFIG)
    streams.deliver("words", "a", *map(str, range(10)), "x", *map(str, range(10, 20)), "y", "y")
    watching = Watching()
    (record,), failures = streams.run(copy, watching=watching)
    assert (failures, record.outcome, record.counts["dead_letters"]) == ([], "succeeded", 2)
    assert streams.lines() == sorted(map(str, range(20)))
    where = "query = 'streaming.copy' AND reason LIKE '%CAST_INVALID_INPUT%'"
    assert streams.home.rows("dead_letters", "string(value)", "topic", where=where) == [("x", "words"), ("y", "words")]
    assert any("streaming.copy leaves out 2 records that it cannot process" in note for note in watching.notes)
    shutil.rmtree(streams.home.settings.checkpoints_path)
    streams.deliver("words", "b", "20")
    assert streams.run(copy)[1] == []
    assert streams.lines() == sorted([*map(str, range(20)), *map(str, range(21))])


@pytest.mark.parametrize("is_function", [True, False])
def test_a_row_that_the_table_refuses_is_left_out(streams: Streams, *, is_function: bool) -> None:
    """By a constraint, or since a column must not be null: it fails when it is written, and not before."""
    path = streams.warehouse.path("lines")
    streams.home.spark.sql(f"CREATE TABLE delta.`{path}` (line STRING NOT NULL) USING delta")
    streams.home.spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (line IS NULL OR length(line) < 3)")

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        rows = context.read("words", config).selectExpr("nullif(cast(value as string), '-') line")
        write = lambda batch, rows: batch.append(rows, "lines")  # noqa: E731
        return context.for_each_batch(rows, write, config) if is_function else context.append(rows, "lines", config)

    declared = Job("streaming.copy", pipeline(query=query, topics=("words",), writes=(LINES,)), CONFIG)
    streams.deliver("words", "a", *map(str, range(20)), "long", "-")
    (record,), failures = streams.run(declared)
    assert (failures, record.outcome, record.counts["dead_letters"]) == ([], "succeeded", 2)
    assert streams.lines() == sorted(map(str, range(20)))
    letters = dict(streams.home.rows("dead_letters", "string(value)", "reason"))
    assert "the table lines refuses a row: CHECK (line IS NULL OR length ( line ) < 3)" in letters["long"]
    assert "CHECK (line IS NOT NULL)" in letters["-"]


def test_a_record_that_fails_a_stateful_operator_is_left_out(streams: Streams) -> None:
    """In Python, in the second micro-batch; the state that the first has left goes on."""

    class Numbered(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._seen = handle.getValueState("seen", "number int")

        def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
            seen = (self._seen.get() or (0,))[0]
            for row in rows:
                seen += int(row.line[1:])
            self._seen.update((seen,))
            yield Row(line=f"{key[0]} {seen}")

        def close(self) -> None:
            """Nothing is open."""

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        rows = (
            context.read("words", config).selectExpr("cast(value as string) line").selectExpr("left(line, 1) k", "line")
        )
        rows = rows.groupBy("k").transformWithState(Numbered(), "line string", "Append", "None")
        return context.append(rows, "lines", config)

    declared = Job("streaming.sums", pipeline(query=query, topics=("words",), writes=(LINES,)), CONFIG)
    streams.deliver("words", "a", "a1", "b1")
    assert streams.run(declared)[1] == []
    streams.deliver("words", "b", "a2", "aX", "a3", "b2")
    (record,), failures = streams.run(declared)
    assert (failures, record.counts["dead_letters"]) == ([], 1)
    assert streams.lines() == ["a 1", "a 6", "b 1", "b 3"]
    (reason,) = streams.home.rows("dead_letters", "reason", where="string(value) = 'aX'")
    assert "ValueError: invalid literal for int() with base 10: 'X'" in reason[0]


def test_a_failure_that_is_not_of_records_leaves_none_out(streams: Streams) -> None:
    """Too much at once, or a table that cannot be written: the query fails as it did, with all records to come."""

    def greedy(batch: BatchContext, rows: DataFrame) -> None:
        if rows.count() > MIN_RECORDS:
            raise MemoryError("too much at once")
        batch.append(rows, "lines")

    def broken(batch: BatchContext, rows: DataFrame) -> None:
        log = Path(batch.warehouse.path("lines"), "_delta_log")
        log.mkdir(parents=True, exist_ok=True)
        (log / "00000000000000000000.json").write_text("torn", encoding="utf-8")
        batch.append(rows, "lines")

    streams.deliver("words", "a", *map(str, range(2 * MIN_RECORDS)))
    for name, process in (("greedy", greedy), ("broken", broken)):
        _, (failure,) = streams.run(job(name, process))
        assert f"streaming.{name}: its micro-batch" in str(failure)
    assert "dead_letters" not in streams.home.warehouse.existing()


def test_a_query_that_fails_on_most_records_leaves_none_out(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program is at fault, and not the records; micro-batches of few records do not hide it."""
    few = 3
    monkeypatch.setattr(bisection, "MIN_RECORDS", few)

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.append(whole(rows), "lines")

    streams.deliver("words", "a", "1", *(f"x{number}" for number in range(few)))
    _, (failure,) = streams.run(job("copy", write))
    assert "CAST_INVALID_INPUT" in str(failure)
    assert "dead_letters" not in streams.home.warehouse.existing()
    streams.deliver("few", "a", *(f"x{number}" for number in range(few)))
    os.utime(Path(streams.home.settings.landing_path, "few", "a.jsonl"), (0, 0))  # the first
    streams.deliver("few", "b", "x")

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        rows = context.read("few", config).selectExpr("cast(value as string) line")
        return context.append(whole(rows), "lines", config)

    query_of_few = Job("streaming.few", pipeline(query=query, topics=("few",), writes=(LINES,)), CONFIG)
    _, (failure,) = streams.run(query_of_few)
    assert "CAST_INVALID_INPUT" in str(failure)
    assert len(streams.home.rows("dead_letters", "reason", where="query = 'streaming.few'")) == few


def test_a_query_that_worked_starts_again(streams: Streams) -> None:
    """What the failed batch should have written is written once."""
    stop_condition, watching, failed = StopCondition(), Watching(), threading.Event()

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.append(rows, "lines")
        if batch.batch_id == 1 and not failed.is_set():
            failed.set()
            raise ValueError("for once")

    streams.deliver("words", "a", "one")
    running = threading.Thread(
        target=streams.run, args=[job("copy", write)], kwargs={"stop_condition": stop_condition, "watching": watching}
    )
    running.start()
    poll_until(lambda: any(each.batches == 1 for each in watching.statuses), "the first batch")
    streams.deliver("words", "b", "two")
    poll_until(lambda: any(each.batches == 2 for each in watching.statuses), "the second batch", seconds=60)
    stop_condition.stop.set()
    running.join()
    assert [each.restarts for each in watching.statuses] == [1]
    assert streams.lines() == ["one", "two"]
    assert "for once" in watching.notes[0]
    assert "starting again in 1 s" in watching.notes[0]


def test_a_query_waits_for_what_it_needs(streams: Streams) -> None:
    """In a state of its own, while others run; one that drains has nothing to wait for, and ends well."""
    stop_condition, watching, is_there = StopCondition(), Watching(), threading.Event()

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        if not is_there.is_set():
            raise NotReadyError("there is no model: train one")
        writer: DataStreamWriter = job("late").pipeline.query(context, config)
        return writer

    late = Job("streaming.late", pipeline(query=query, topics=("words",), writes=(LINES,)), CONFIG)
    streams.deliver("words", "a", "one")
    (record,), failures = streams.run(late, watching=watching)
    assert (record.outcome, failures, streams.warehouse.exists("lines")) == ("succeeded", [], False)
    assert watching.notes == ["streaming.late has read nothing: there is no model: train one"]
    running = threading.Thread(
        target=streams.run, args=[late], kwargs={"stop_condition": stop_condition, "watching": watching}
    )
    running.start()
    poll_until(lambda: [each.state for each in watching.statuses] == ["waiting"], "a query that waits")
    assert watching.notes[1:] == ["streaming.late waits: there is no model: train one"]
    is_there.set()
    poll_until(lambda: any(each.batches for each in watching.statuses), "its first batch", seconds=60)
    stop_condition.stop.set()
    running.join()
    assert streams.lines() == ["one"]


def test_jobs_of_a_query_tell_the_interval_of_its_trigger(streams: Streams) -> None:
    """Event logs have it from nowhere else; where a query reads all there is and ends, there is none.

    Lines of their logs belong to the trace of the micro-batch, and name that of the run.
    """
    told, traces = list[str | None](), list[tuple[str | None, ...]]()
    stop_condition = StopCondition()

    def write(batch: BatchContext, rows: DataFrame) -> None:
        properties = rows.sparkSession.sparkContext.getLocalProperty
        told.append(properties(STREAM_TRIGGER))
        of_batch = tracing.traceparent_of_batch(rows.sparkSession, batch.batch_id).split("-")[1]
        traces.append((of_batch, properties(MDC_TRACE_ID), properties(MDC_STEP_TRACE_ID)))
        stop_condition.stop.set()

    streams.deliver("words", "a", "one")
    (record,), _ = streams.run(job("copy", write), stop_condition=stop_condition)
    assert traces[0] == (traces[0][0], traces[0][0], record.trace_id)
    streams.deliver("words", "b", "two")
    streams.run(job("copy", write))
    assert told == ["100 milliseconds", None]


def test_a_stop_finishes_the_batch_in_hand(streams: Streams) -> None:
    """It begins no other, also where batches follow each other; meanwhile another process sees the query."""
    stop_condition, started, go_on = StopCondition(), threading.Event(), threading.Event()
    watching = Watching()

    def write(batch: BatchContext, rows: DataFrame) -> None:
        started.set()
        go_on.wait(60)
        batch.append(rows, "lines")

    for number in range(2):
        streams.deliver("words", f"{number}", f"{number}")
    running = threading.Thread(
        target=streams.run, args=[job("copy", write)], kwargs={"stop_condition": stop_condition, "watching": watching}
    )
    running.start()
    assert started.wait(60)
    runs = streams.home.settings.runs_path
    seen = [("streaming.copy", "running")]
    poll_until(lambda: [(each.pipeline, each.state) for each in stream_status.running(runs)] == seen, "the query")
    stop_condition.stop.set()
    poll_until(lambda: not any(each.isActive for each in streams.home.spark.streams.active), "a stop of the query")
    go_on.set()
    running.join()
    assert (streams.batches("copy", "offsets"), streams.batches("copy", "commits")) == ({0}, {0})
    assert len(streams.lines()) == 1
    assert watching.notes == []
    assert stream_status.running(runs) == []
    (folder,) = runs.iterdir()
    assert run_record.read(folder).outcome == "succeeded"


def test_a_batch_that_does_not_end_is_interrupted_by_a_stop_which_says_so(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start repeats it."""
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.1)
    stop_condition, watching = StopCondition(), Watching()

    def write(batch: BatchContext, rows: DataFrame) -> None:
        if not stop_condition.stop.is_set():
            stop_condition.stop.set()
            batch.spark.range(10**15).selectExpr("sum(rand())").collect()
        batch.append(rows, "lines")

    streams.deliver("words", "a", "one")
    streams.run(job("copy", write), stop_condition=stop_condition, watching=watching)
    assert (streams.batches("copy", "offsets"), streams.batches("copy", "commits")) == ({0}, set())
    (note,) = watching.notes
    assert note.startswith("streaming.copy was stopped in the middle of a micro-batch, which had not ended after")
    assert streams.run(job("copy", write))[1] == []
    assert streams.lines() == ["one"]


def test_a_batch_that_runs_again_writes_once(streams: Streams) -> None:
    """As after a kill between the write and the commit of the checkpoint."""

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.append(rows, "lines")

    streams.deliver("words", "a", "one")
    streams.run(job("copy", write))
    streams.forget_commit("copy", 0)
    assert streams.run(job("copy", write))[1] == []
    assert streams.lines() == ["one"]
    shutil.rmtree(streams.home.settings.checkpoints_path)
    streams.run(job("copy", write))
    assert streams.lines() == ["one", "one"]


def test_a_stateful_batch_that_was_written_does_not_fail_when_it_runs_again(streams: Streams) -> None:
    """Spark fails a batch whose state nobody has computed, as where Delta skips what it has already."""

    def write(batch: BatchContext, rows: DataFrame) -> None:
        batch.merge(rows, "lines", condition="old.line = new.line")

    for number, line in enumerate(("one", "two", "one")):
        streams.deliver("words", str(number), line)
        assert streams.run(job("copy", write, is_single=True))[1] == []
        streams.forget_commit("copy", number)
        assert streams.run(job("copy", write, is_single=True))[1] == []
    assert streams.lines() == ["one", "two"]


def test_a_first_batch_whose_plan_was_torn_is_planned_again(streams: Streams) -> None:
    """A kill while Spark writes the plan leaves a part of it under another name, beside which Spark would not begin."""
    offsets = Path(streams.home.settings.checkpoints_path) / "streaming.copy" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.2b3dcb7a-1405-406b-95f7-4a4a09978063.tmp").write_text("v1\n", encoding="utf-8")
    streams.deliver("words", "a", "one")
    _, failures = streams.run(job("copy"))
    assert failures == []
    assert streams.lines() == ["one"]


def test_a_query_starts_over(streams: Streams) -> None:
    """Its table and its checkpoint are deleted; it reads everything again, and writes everything once."""
    streams.deliver("user_events", "a", json.dumps(EVENT | {"event_id": "e-1"}))
    streams.run(events(streams.home))
    notes: list[str] = []
    deletion = stream_reset.deletion(streams.warehouse, streams.home.settings, "streaming.events")
    assert list(deletion.tables.values()) == [1]
    stream_reset.delete(streams.warehouse, deletion, note=notes.append)
    assert len(notes) == 2
    streams.run(events(streams.home))
    assert streams.home.rows("events", "event_id") == [("e-1",)]


def test_a_query_without_its_table_refuses_to_start(streams: Streams) -> None:
    """It would go on after the rows that are gone."""
    streams.deliver("words", "a", "one")
    streams.run(job("copy"))
    shutil.rmtree(streams.warehouse.path("lines"))
    _, (failure,) = streams.run(job("copy"))
    assert isinstance(failure, InputError)
    assert "its table lines is gone: restore it, or start over with `spark-app streaming reset copy`" in str(failure)


def batch_spans(receiving: Receiver) -> list[Span]:
    """The spans of micro-batches that have arrived."""
    return [span for span in receiving.spans if span.name == "batch streaming.events"]


def assert_traces_are_whole(receiving: Receiver) -> None:
    """Each micro-batch is a trace in which no parent is missing, and links to its run and the one before it."""
    first, second, *_ = batches = sorted(batch_spans(receiving), key=lambda span: span.start_time_unix_nano)
    (run,) = (span for span in receiving.spans if span.name == "run streaming.events")
    assert len({span.trace_id for span in batches} | {run.trace_id}) == len(batches) + 1
    assert {link.span_id for link in second.links} == {first.span_id, run.span_id}
    ids = {(span.trace_id, span.span_id) for span in receiving.spans}
    assert len(ids) == len(receiving.spans)
    orphans = [
        span.name for span in receiving.spans if span.parent_span_id and (span.trace_id, span.parent_span_id) not in ids
    ]
    assert orphans == []
    for batch in batches:
        kinds = [span.name.partition(" ")[0] for span in receiving.spans if span.trace_id == batch.trace_id]
        assert {"batch", "sql", "job", "stage", "task"} == set(kinds)
        assert len(kinds) <= MAX_SPANS


def test_sigterm_ends_the_command_well(streams: Streams, tmp_path: Path) -> None:
    """Others see its queries and their micro-batches until then; exit code 0, and there is a report."""
    home = streams.home
    streams.deliver("user_events", "a", json.dumps(EVENT | {"event_id": "e-1"}))
    command, landing = ("streaming", "events"), {"SPARK_APP_STREAM__LANDING": home.settings.landing_path}
    runs, stderr = home.settings.runs_path, tmp_path / "stderr"
    with receiver() as receiving:
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiving.http_endpoint}
        with started(home, stderr=stderr, command=command, **landing, **endpoint) as process:

            def arrived(batches: int) -> bool:
                return process.poll() is not None or len(batch_spans(receiving)) >= batches

            poll_until(lambda: arrived(1), stderr.read_text, seconds=PATIENCE_SECONDS)
            streams.deliver("user_events", "b", json.dumps(EVENT | {"event_id": "e-2"}))
            poll_until(lambda: arrived(2), stderr.read_text, seconds=PATIENCE_SECONDS)
            poll_until(
                lambda: any(each.counts.get("read") == 2 for each in stream_status.running(runs)), stderr.read_text
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0, stderr.read_text(encoding="utf-8")
    assert_traces_are_whole(receiving)
    (folder,) = runs.iterdir()
    record = run_record.read(folder)
    assert (record.outcome, record.counts) == (
        "succeeded",
        {"read": 2, "published": 2, "duplicates": 0, "late": 0, "unknown_fields": 0},
    )
    assert Path(record.report or "").is_file()
    assert home.rows("events", "event_id") == [("e-1",), ("e-2",)]


def test_a_killed_jvm_is_said_once_for_all_queries(streams: Streams, tmp_path: Path) -> None:
    """By the first that fails, and at the end; while they start, others see that."""
    home, stderr = streams.home, tmp_path / "stderr"
    make_quick(home)
    landing = {"SPARK_APP_STREAM__LANDING": home.settings.landing_path}

    def states() -> list[str]:
        return [status.state for status in stream_status.running(home.settings.runs_path)]

    with started(home, stderr=stderr, command=("streaming", "balances", "dead_letters"), **landing) as process:
        poll_until(lambda: states() == ["starting", "starting"], stderr.read_text, seconds=PATIENCE_SECONDS)
        poll_until(lambda: "starting" not in states(), stderr.read_text, seconds=PATIENCE_SECONDS)
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        assert process.wait(PATIENCE_SECONDS) == MachineError.exit_code
    said = stderr.read_text(encoding="utf-8")
    assert said.count("Java ended in the middle of the work") == 2
    assert said.splitlines()[-1].startswith("error: 2 queries failed: Java ended in the middle of the work")


def test_expectations_are_judged_for_each_batch(streams: Streams) -> None:
    """In the same pass: what violates them is kept and counted, and a breach stops the query if it is configured so."""
    bad = EVENT | {"event_id": "e-2", "event_type": "blink"}
    good = EVENT | {"event_id": "e-1", "user_id": "c-0000001"}
    streams.deliver("user_events", "a", json.dumps(good), json.dumps(bad))
    watching = Watching()
    ((record,), failures) = streams.run(events(streams.home), watching=watching)
    assert failures == []
    found = {result.expectation: (result.violations, result.total) for result in record.expectations}
    assert found == {"user_id.pattern": (1, 2), "event_type.allowed": (1, 2)}
    assert any("event_type.allowed: 1 of 2 (50.0000%), allowed 1.0000%" in note for note in watching.notes)
    streams.home.configure("streaming.events", on_breach="stop")
    streams.deliver("user_events", "b", json.dumps(bad | {"event_id": "e-3"}))
    ((record,), (failure,)) = streams.run(events(streams.home))
    assert (record.outcome, isinstance(failure, QualityGateError)) == ("rejected", True)
    assert streams.home.rows("events", "event_id") == [("e-1",), ("e-2",), ("e-3",)]

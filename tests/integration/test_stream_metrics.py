"""The metrics of a streaming query over a real Kafka, from Spark's events to the endpoint."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.spark.kafka import source_options
from spark_app.spark.query_listener import QueryEvent, QueryListener
from spark_app.telemetry.run_telemetry import RunTelemetry
from spark_app.telemetry.stream_telemetry import StreamTelemetry
from spark_app.vocabulary.spark_progress import parse
from tests.kafka import Broker, running_broker
from tests.polling import poll_until
from tests.unit.telemetry.memory import InMemory

NAME: Final = "streaming.measured"
TOPIC: Final = "measured"
RECORDS: Final = 50
IN_A_BATCH: Final = 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with a topic of some records."""
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        running.create(TOPIC, partitions=2)
        running.send(TOPIC, [b"%d" % number for number in range(RECORDS - 1)] + [b"0"])
        yield running


def started(spark: SparkSession, broker: Broker, folder: Path) -> StreamingQuery:
    """A query in small batches that drops duplicates."""
    limit = {"maxOffsetsPerTrigger": str(IN_A_BATCH), "subscribe": TOPIC}
    records = spark.readStream.format("kafka").options(**source_options(broker.kafka), **limit).load()
    observed = records.observe(f"input {TOPIC}", F.max("timestamp").alias("newest"))
    single = observed.withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"])
    writer = single.writeStream.format("noop").queryName(NAME).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(processingTime="100 milliseconds").start()


def measuring(run: RunTelemetry, events: list[QueryEvent]) -> Callable[[QueryEvent], None]:
    """Measures what Spark reports, and exports it at once."""
    telemetry = StreamTelemetry(run, trigger_seconds=0.1)

    def handle(event: QueryEvent) -> None:
        if event.kind == "progress":
            telemetry.progressed(parse(event.json))
        elif event.kind == "idle":
            telemetry.enter("idle")
        run.export_metrics()
        events.append(event)

    return handle


@pytest.fixture
def measured(spark: SparkSession, broker: Broker, tmp_path: Path) -> InMemory:
    """What a query that has read all sends, with an export after each event."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100")
    memory, events = InMemory(tmp_path), list[QueryEvent]()
    with memory.run(pipeline=NAME) as run:
        listener = QueryListener(spark, measuring(run, events))
        query = started(spark, broker, tmp_path)
        poll_until(lambda: any(event.kind == "idle" for event in events), lambda: f"no idle event: {events}")
        query.stop()
        listener.close()
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")
    return memory


def exported(memory: InMemory, name: str) -> list[float]:
    """The values of a metric, in the order of their exports."""
    points = [point for each in memory.metrics if each.name == name for point in each.data.data_points]
    return [getattr(point, "value", 0) for point in points]


def test_metrics_of_a_query_are_those_of_the_topic(measured: InMemory) -> None:
    """Rows, duplicates and batches are exact; lag goes from what was left to nothing, in records and in time."""
    assert measured.values("pipeline.rows.read") == {(NAME,): RECORDS}
    assert measured.values("pipeline.rows.duplicate") == {(NAME,): 1}
    assert measured.values("stream.state.rows") == {(NAME,): RECORDS - 1}
    first_batch = next(filter(None, exported(measured, "pipeline.rows.read")))
    assert exported(measured, "stream.lag.records")[0] == RECORDS - first_batch
    assert measured.values("stream.lag.records") == {(NAME, TOPIC): 0}
    assert exported(measured, "stream.lag.time")[0] > 0
    assert measured.values("stream.lag.time") == {(NAME, TOPIC): 0}
    assert measured.values("stream.query.state")[NAME, "idle"] == 1
    assert measured.values("stream.batches")[NAME,] >= RECORDS / IN_A_BATCH
    phases = {phase for _, phase in measured.values("stream.batch.phase.duration")}
    assert {"addBatch", "queryPlanning", "latestOffset", "walCommit", "commitOffsets"} <= phases

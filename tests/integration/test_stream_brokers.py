"""What a streaming query says of brokers that it cannot read: none there, a topic or records that are missing."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pydantic import SecretStr
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.commands.stream_terminal import live_table, summary
from spark_app.engine import topic_ids
from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.engine.stream_config import StreamConfig
from spark_app.errors import InputError, NoBrokerError
from spark_app.execution import supervisor
from spark_app.execution.run import Job
from spark_app.execution.streams import run_queries
from spark_app.execution.supervisor import StopCondition
from tests.declared import pipeline
from tests.integration.home import Home
from tests.integration.test_stream_lag import drained, running
from tests.kafka import Broker, settings
from tests.polling import poll_until
from tests.unit.watching import Watching

CONFIG: Final = StreamConfig(trigger="1 second", records_per_trigger=100_000, files_per_trigger=1)


def job(*topics: str) -> Job:
    """A query that reads topics and writes nothing."""

    def write(_: BatchContext, rows: DataFrame) -> None:
        rows.write.format("noop").mode("overwrite").save()

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        first, *others = [context.read(topic, config) for topic in topics]
        for other in others:
            first = first.unionByName(other)
        return context.for_each_batch(first, write, config)

    return Job("streaming.measured", pipeline(query=query, topics=topics, writes=()), CONFIG)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine at which nobody listens, and which nobody takes meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_only_the_topics_that_are_missing_are_named(home: Home, broker: Broker) -> None:
    """The brokers are asked which of those that a query reads they have."""
    broker.create_anew("there")
    with running(home, broker.kafka, job("there", "gone")):
        poll_until(lambda: bool(home.notes), "the line about the topic", seconds=90)
    assert f"Kafka at {broker.servers} has no topic gone; create it; starting again" in home.notes[0]


@pytest.mark.parametrize("stop_condition", [StopCondition(is_draining=True), StopCondition(seconds=1)])
def test_a_port_that_refuses_ends_the_query_with_what_to_do(
    home: Home, closed_port: int, stop_condition: StopCondition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said at the first attempt; a query that has read nothing by its end has failed, and what is unknown is no 0."""
    monkeypatch.setattr(supervisor, "FIRST_BACKOFF_SECONDS", 0.1)
    servers, watching = f"127.0.0.1:{closed_port}", Watching()
    home.settings = home.settings.model_copy(update={"kafka": settings(servers=servers)})
    with home.application("streams") as application:
        (failure,) = run_queries(application, [job("any")], stop_condition, watching)
    line = (
        f"streaming.measured: no broker of Kafka at {servers} answers: Connection refused; start Kafka, or check "
        "kafka.servers and kafka.security_protocol"
    )
    assert (type(failure), str(failure), failure.exit_code) == (NoBrokerError, line, 3)  # type: ignore[attr-defined]
    assert home.notes == [f"{line}; starting again in 0 s"]
    (record,) = application.results
    assert (record.outcome, "lag_records" in record.facts) == ("missing_input", False)
    (status,) = watching.statuses
    assert (status.state, status.lag_records, status.lag_seconds) == ("failed", None, None)


@pytest.mark.parametrize("left", [(2, 100), (0, 0)])
def test_all_records_that_kafka_deleted_unread_are_counted(home: Home, broker: Broker, left: tuple[int, int]) -> None:
    """Of each partition, also where nothing is left to read; in the record, the metric, the status and the tables."""
    topic = f"deleted-{sum(left)}"
    broker.create(topic, partitions=2)
    careless = broker.kafka.model_copy(update={"options": {"failOnDataLoss": SecretStr("false")}})
    for partition in range(2):
        broker.send(topic, [b"x"] * 5, partition=partition)
    assert drained(home, careless, job(topic)).counts == {"read": 10}
    for partition, kept in enumerate(left):
        broker.send(topic, [b"x"] * 400, partition=partition)
        broker.forget(topic, before=405 - kept, partition=partition)
    deleted, stop_condition = 800 - sum(left), StopCondition()
    with running(home, careless, job(topic), stop_condition) as query:
        poll_until(lambda: query.status.counts.get("deleted") == deleted, lambda: f"{query.status}", seconds=90)
        assert f"{deleted}" in live_table([query.status], seconds=1, width=200)[2].plain.split()
        stop_condition.stop.set()
    (record,) = query.results
    assert record.counts == {"read": sum(left), "deleted": deleted}
    assert sum(value for _, value in query.exported("stream.records.deleted")) == deleted
    headers, (cells,) = summary([record])
    assert cells[headers.index("deleted")] == f"{deleted}"


def test_a_topic_that_was_created_again_is_not_read_at_the_old_offset(home: Home, broker: Broker) -> None:
    """Though it has more records than were read of the old one; who lets records be lost goes on there, and is told.

    A checkpoint of an earlier release has no ids of topics: the next start notes them.
    """
    broker.create("again")
    broker.send("again", [b"x"] * 50)
    assert drained(home, broker.kafka, job("again")).counts == {"read": 50}
    noted = Path(home.settings.checkpoints_path, "streaming.measured", topic_ids.FILE)
    noted.unlink()
    assert drained(home, broker.kafka, job("again")).outcome == "succeeded"
    broker.create_anew("again")
    broker.send("again", [b"x"] * 150)
    with home.application("streams") as application:
        (failure,) = run_queries(application, [job("again")], StopCondition(is_draining=True), Watching())
    line = (
        f"streaming.measured: Kafka at {broker.servers} has another topic again than the one of the checkpoint "
        f"{noted.parent}: the topic was deleted and created again"
    )
    remedy = "start the query over: spark-app streaming reset measured"
    assert (type(failure), str(failure)) == (InputError, f"{line}; {remedy}")
    careless = broker.kafka.model_copy(update={"options": {"failOnDataLoss": SecretStr("false")}})
    for told in ([f"{line}; the query goes on at its old offsets, as failOnDataLoss allows"], []):
        home.notes.clear()
        assert drained(home, careless, job("again")).outcome == "succeeded"
        assert home.notes == told

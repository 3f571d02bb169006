"""How far a query is behind its topic, on a real broker, as the terminal, `status` and metrics tell it."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pydantic import SecretStr
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.engine.stream_config import StreamConfig
from spark_app.execution.run import Job
from spark_app.execution.streams import run_queries
from spark_app.execution.supervisor import StopCondition
from spark_app.runs.run_record import RunRecord
from spark_app.runs.stream_status import StreamStatus
from spark_app.settings import Kafka
from spark_app.spark.kafka import client_options
from spark_app.telemetry.flushing import FLUSH_SECONDS
from tests.declared import pipeline
from tests.integration.home import Home
from tests.kafka import Broker
from tests.polling import poll_until
from tests.unit.watching import Watching

TOPIC: Final = "lagging"
RATE: Final = 34
TRIGGER_SECONDS: Final = 3
TOLERANCE_SECONDS: Final = 1.5
"""The brokers are asked each second, and the status is written four times a second."""


def job() -> Job:
    """A query that reads the topic and writes nothing."""

    def write(_: BatchContext, rows: DataFrame) -> None:
        rows.write.format("noop").mode("overwrite").save()

    def query(context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        return context.for_each_batch(context.read(TOPIC, config), write, config)

    config = StreamConfig(trigger=f"{TRIGGER_SECONDS} seconds", records_per_trigger=100_000, files_per_trigger=1)
    return Job("streaming.measured", pipeline(query=query, topics=(TOPIC,), writes=()), config)


@dataclass
class Running:
    """A query that runs on a thread."""

    home: Home
    watching: Watching
    stop_condition: StopCondition
    results: list[RunRecord] = field(default_factory=list)

    @property
    def status(self) -> StreamStatus:
        """How it gets on, as the terminal shows it."""
        return next(iter(self.watching.statuses), StreamStatus("streaming.measured", "starting"))

    @property
    def committed(self) -> dict[str, int]:
        """Offsets by partition up to which micro-batches have committed, by the checkpoint."""
        folder = Path(self.home.settings.checkpoints_path) / "streaming.measured"
        batches = [int(file.name) for file in folder.glob("commits/*") if file.name.isdigit()]
        if not batches:
            return {}
        lines = (folder / "offsets" / str(max(batches))).read_text(encoding="utf-8").splitlines()
        return dict(json.loads(lines[2])[TOPIC])

    def exported(self, metric: str) -> list[tuple[float, float]]:
        """Moments in Unix time and values of a metric, as the run has written them."""
        lines = [
            json.loads(line)
            for file in self.home.settings.runs_path.glob("*/metrics*.jsonl")
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        metrics = [
            each
            for line in lines
            for group in line["resourceMetrics"]
            for scope in group["scopeMetrics"]
            for each in scope["metrics"]
            if each["name"] == metric
        ]
        points = [
            point for each in metrics for kind in ("gauge", "sum") for point in each.get(kind, {}).get("dataPoints", [])
        ]
        return [(int(p["timeUnixNano"]) / 1e9, float(p.get("asInt", p.get("asDouble", 0)))) for p in points]


@contextmanager
def running(home: Home, kafka: Kafka, query: Job, stop_condition: StopCondition | None = None) -> Iterator[Running]:
    """A query, until the block ends, or another end."""
    home.settings = home.settings.model_copy(update={"kafka": kafka})
    found = Running(home, Watching(), stop_condition or StopCondition())
    with home.application("streams") as application:
        thread = threading.Thread(target=run_queries, args=(application, [query], found.stop_condition, found.watching))
        thread.start()
        try:
            yield found
        finally:
            if stop_condition is None:
                found.stop_condition.stop.set()
            thread.join()
            found.results = application.results


def drained(home: Home, kafka: Kafka, query: Job) -> RunRecord:
    """The record of a query that has read all there is."""
    with running(home, kafka, query, StopCondition(is_draining=True)) as found:
        pass
    home.notes += found.watching.notes
    (record,) = found.results
    return record


@contextmanager
def produced(broker: Broker) -> Iterator[None]:
    """Records at a steady rate, until the block ends."""
    ended, producer = threading.Event(), KafkaProducer(**client_options(broker.kafka), linger_ms=0)

    def send() -> None:
        while not ended.wait(1 / RATE):
            producer.send(TOPIC, b"x")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        producer.close()


class Truth:
    """What the broker has and the query has committed, over the last moments."""

    def __init__(self, broker: Broker, query: Running) -> None:
        """Nothing is known yet."""
        self._consumer = KafkaConsumer(**client_options(broker.kafka), group_id=None)
        self._partitions = [TopicPartition(TOPIC, number) for number in self._consumer.partitions_for_topic(TOPIC)]
        self._query = query
        self._seen: deque[tuple[float, int, int]] = deque()
        self._bounds = list[tuple[float, int, int]]()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connection."""
        self._consumer.close()

    def look(self) -> tuple[int, int]:
        """The lowest and highest number of unread records within the tolerance."""
        end, committed = sum(self._consumer.end_offsets(self._partitions).values()), sum(self._query.committed.values())
        self._seen.append((time.monotonic(), end, committed))
        while len(self._seen) > 2 and self._seen[1][0] < time.monotonic() - TOLERANCE_SECONDS:
            self._seen.popleft()
        _, first_end, first_committed = self._seen[0]
        lowest, highest = max(0, first_end - committed), end - first_committed
        self._bounds.append((time.time(), lowest, highest))
        return lowest, highest

    @property
    def last_look(self) -> float:
        """The moment of the last look, in Unix time."""
        return self._bounds[-1][0]

    def at(self, moment: float) -> tuple[int, int]:
        """The lowest and highest number of unread records that the first look after a moment found."""
        return next((lowest, highest) for seen, lowest, highest in self._bounds if seen >= moment)


def test_lag_is_what_the_broker_has_and_no_batch_has_read(home: Home, broker: Broker) -> None:
    """At every moment between two micro-batches, in the status and in the metrics; unknown while no broker answers."""
    broker.create(TOPIC, partitions=2)
    broker.send(TOPIC, [b"x"])
    with running(home, broker.kafka, job()) as query:
        poll_until(lambda: query.status.batches > 0, lambda: f"{query.watching.notes}", seconds=60)
        seen = list[StreamStatus]()
        with Truth(broker, query) as truth, produced(broker):
            began = time.time()

            def agrees_to_the_end() -> bool:
                lowest, highest = truth.look()
                status = query.status
                if time.time() > began + TOLERANCE_SECONDS and status.lag_records is not None:
                    assert lowest <= status.lag_records <= highest, (lowest, status, highest)
                    seen.append(status)
                return time.time() > began + 2.5 * TRIGGER_SECONDS and max(exported(), default=0) > RATE / 2

            def exported() -> list[float]:
                """The values of the metric while the truth is looked at."""
                points = query.exported("stream.lag.records")
                compared = [point for point in points if began + TOLERANCE_SECONDS < point[0] <= truth.last_look]
                for at, value in compared:
                    lowest, highest = truth.at(at)
                    assert lowest <= value <= highest, (at, lowest, value, highest)
                return [value for _, value in compared]

            poll_until(agrees_to_the_end, "an export between two micro-batches", seconds=60, pause=0.1)
        assert max(status.lag_records or 0 for status in seen) > RATE * TRIGGER_SECONDS / 2
        assert TRIGGER_SECONDS / 2 < max(status.lag_seconds or 0 for status in seen) < 3 * TRIGGER_SECONDS
        assert max(value for at, value in query.exported("stream.lag.time") if at > began) > 0
        broker.kill()
        try:
            poll_until(lambda: query.status.lag_records is None, "an unknown lag", seconds=15)
            unknown_since = time.time()
            poll_until(lambda: time.time() > unknown_since + FLUSH_SECONDS + 1, "another export")
            assert (query.status.lag_records, query.status.lag_seconds) == (None, None)
            assert [at for at, _ in query.exported("stream.lag.records") if at > unknown_since + 1] == []
        finally:
            broker.start()
        poll_until(lambda: query.status.lag_records is not None, "a lag that is known again", seconds=60)


def test_records_that_the_broker_deleted_before_they_were_read_are_counted(home: Home, broker: Broker) -> None:
    """Where the query is told to go on without them."""
    broker.create_anew(TOPIC)
    careless = broker.kafka.model_copy(update={"options": {"failOnDataLoss": SecretStr("false")}})
    counts = list[dict[str, int]]()
    for first in (0, 5):
        broker.send(TOPIC, [b"x"] * 5)
        if first:
            broker.forget(TOPIC, before=8)
        counts.append(drained(home, careless, job()).counts)
    assert counts[0] == {"read": 5}
    assert counts[1] == {"read": 2, "deleted": 3}
    told = "streaming.measured went on without 3 records of lagging: Kafka had deleted them, by its retention"
    assert any(note.startswith(told) for note in home.notes)

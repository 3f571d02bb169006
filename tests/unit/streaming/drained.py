"""One query of `app/streaming/` on files of a test, drained as often as the test wants."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from app.schemas import USER_EVENT
from spark_app.engine.stream import StreamContext
from spark_app.execution import pipelines
from spark_app.runs import column_lineage
from spark_app.runs.column_lineage import Origin
from spark_app.settings import Kafka, load_pipeline_config
from tests.integration.home import Home
from tests.unit.telemetry.memory import InMemory

NOON: Final = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


def at(minute: float) -> datetime.datetime:
    """An instant some minutes after noon of a day."""
    return NOON + datetime.timedelta(minutes=minute)


def event(number: int, minute: float = 0, event_type: str = "view", user: int = 1, **properties: str) -> dict[str, Any]:
    """The value of an event."""
    return {
        "event_id": f"e-{number}",
        "user_id": f"c-{user:07}",
        "event_type": event_type,
        "timestamp": f"{at(minute):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
        "properties": properties,
    }


def written(value: Mapping[str, Any]) -> bytes:
    """A value as producers write it."""
    return json.dumps(value).encode()


def events(spark: SparkSession, *values: Mapping[str, Any]) -> DataFrame:
    """Events as rows, as they are when they were parsed."""
    rows = [dict(value) | {"timestamp": datetime.datetime.fromisoformat(value["timestamp"])} for value in values]
    return spark.createDataFrame([tuple(row[name] for name in USER_EVENT.names) for row in rows], USER_EVENT)


def config(module: ModuleType, home: Home, **changes: Any) -> Any:
    """The configuration of a query, with changes."""
    model = pipeline_of(module).config
    given = load_pipeline_config(module.__name__.removeprefix("app."), model, home.settings.config)
    return model(**(given.model_dump() | changes))


def pipeline_of(module: ModuleType) -> Any:
    """The query that a module declares."""
    return pipelines.of_module(module.__name__.removeprefix("app."), module, pipelines.topics())


class Drained:
    """A query that reads all that was delivered, and ends; the next time it goes on from there."""

    def __init__(
        self,
        folder: Path,
        spark: SparkSession,
        module: ModuleType,
        kafka: Kafka | None = None,
        home: Home | None = None,
        **changes: Any,
    ) -> None:
        """Nothing is delivered yet.

        Args:
            folder: A folder of the test.
            spark: The session.
            module: The query.
            kafka: The brokers to read and write; None for files.
            home: The home folder with the tables; an empty one if it is None.
            changes: What differs from its configuration.
        """
        self.home = home or Home(folder / "home", spark)
        stream = self.home.settings.stream.model_copy(update={"landing": "landing"})
        kafka = kafka or self.home.settings.kafka
        self.home.settings = self.home.settings.model_copy(update={"stream": stream, "kafka": kafka})
        folder.mkdir(parents=True, exist_ok=True)
        self.pipeline, self.config = pipeline_of(module), config(module, self.home, **changes)
        self._files = 0
        self.memory = InMemory(folder)
        run = self.memory.run(pipeline=module.__name__.removeprefix("app."))
        self.context = StreamContext(
            spark, self.home.warehouse, self.home.settings, None, run, self.home, is_draining=True
        )

    def deliver(self, topic: str, *values: Mapping[str, Any] | bytes) -> None:
        """Adds a file to a topic."""
        folder = Path(self.home.settings.landing_path) / topic
        folder.mkdir(parents=True, exist_ok=True)
        lines = [value if isinstance(value, bytes) else written(value) for value in values]
        self._files += 1
        (folder / f".{self._files}").write_bytes(b"".join(line + b"\n" for line in lines))
        (folder / f".{self._files}").rename(folder / f"{self._files}.jsonl")

    def start(self) -> StreamingQuery:
        """Starts the query."""
        started: StreamingQuery = self.pipeline.query(self.context, self.config).start()
        return started

    def drain(self) -> list[dict[str, Any]]:
        """Reads all that was delivered; returns the progress of each micro-batch."""
        query = self.start()
        try:
            query.awaitTermination()
        finally:
            self.context.at_end.close()
        return [json.loads(progress.json) for progress in query.recentProgress]

    def lines(self, topic: str) -> list[bytes]:
        """The values that were sent to a topic, or delivered."""
        files = (Path(self.home.settings.landing_path) / topic).glob("*.jsonl")
        return sorted(line for file in files for line in file.read_bytes().splitlines())

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of the rows of a table, sorted."""
        return self.home.rows(table, *columns)

    def columns(self) -> dict[str, Mapping[str, Sequence[Origin]]]:
        """Of which columns those of its tables are made, as the run has recorded it."""
        folder = self.context.telemetry.identity.folder
        return {each.table: each.columns for each in column_lineage.read(folder)}


def observed(progress: list[dict[str, Any]], name: str) -> Iterator[dict[str, int]]:
    """What an observation saw, micro-batch by micro-batch."""
    return (batch["observedMetrics"][name] for batch in progress if name in batch.get("observedMetrics", {}))


def dropped(progress: list[dict[str, Any]]) -> int:
    """Rows that came later than the watermark."""
    return sum(operator["numRowsDroppedByWatermark"] for batch in progress for operator in batch["stateOperators"])

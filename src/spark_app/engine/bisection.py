"""Finds the records that make a micro-batch fail: the batch is planned, and was not committed.

The query runs on them as on any rows, half by half, and writes nothing.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.engine import records
from spark_app.engine.stream import BatchContext, StreamContext, of_kafka, of_lines
from spark_app.engine.stream_config import StreamConfig
from spark_app.engine.topics import Topic
from spark_app.quality.expectations import Expectation
from spark_app.spark.kafka import source_options
from spark_app.spark.persisted import persisted
from spark_app.warehouse import hadoop_files

EARLIEST: Final = -2
"""What Spark calls the first offset that Kafka has."""
MAX_LEFT_OUT: Final = 100
"""Records of a micro-batch that a query leaves out at most."""
MAX_SHARE: Final = 0.5
MIN_RECORDS: Final = 10
"""Where more than this share of more than so many records fails, the program is at fault, and not the records."""
QueryFunction = Callable[[StreamContext, Any], DataStreamWriter]


class NotOfRecordsError(Exception):
    """The failure is not one of single records."""


@dataclass(frozen=True)
class Culprits:
    """Records that a query cannot process.

    Attributes:
        rows: The records, with the reason of each. Columns: those of `RECORD`, and reason.
        reasons: The reasons by the id of the record.
        records: How many records the micro-batch has.
    """

    rows: DataFrame
    reasons: Mapping[str, str]
    records: int


class Rehearsal(StreamContext):
    """A query on some records of a topic, as rows of a batch: it computes what it would write, and writes nothing."""

    given: Mapping[str, DataFrame]

    @classmethod
    def of(cls, context: StreamContext, given: Mapping[str, DataFrame]) -> "Rehearsal":
        """The rehearsal of a query.

        Args:
            context: The query.
            given: The records by topic.
        """
        same = {each.name: getattr(context, each.name) for each in fields(StreamContext)}
        rehearsal = cls(
            **same | {"telemetry": _Silent(context.telemetry), "counts": {}, "written": {}, "facts": {}, "results": []}
        )
        rehearsal.given = given
        return rehearsal

    def note(self, text: str) -> None:
        """Says nothing: the query has said it."""

    def read(self, topic: str, config: StreamConfig) -> DataFrame:
        """The records of a topic that are rehearsed."""
        return self.given[topic]

    def read_once(
        self,
        topic: Topic,
        config: StreamConfig,
        *,
        watermark: str,
        keep: Sequence[str] = (),
        counted_as: str = "rows",
    ) -> DataFrame:
        """The well-formed values, each once; what earlier micro-batches had is not known."""
        valid = records.valid(self.read(topic.name, config), self.bounded(topic), keep=keep, counted_as=counted_as)
        return valid.dropDuplicates([topic.key])

    def expect(self, rows: DataFrame, table: str, expectations: Sequence[Expectation], config: Any) -> DataFrame:
        """The same rows: the query judges them."""
        return rows

    def append(self, rows: DataFrame, table: str, config: StreamConfig) -> DataStreamWriter:
        """Computes the rows, and looks at what the table refuses."""
        return _compute(self.warehouse.checked(rows.to(self.warehouse.tables[table].schema), table))

    def publish(self, records: DataFrame, topic: str, config: StreamConfig) -> DataStreamWriter:
        """Computes the records."""
        return _compute(records)

    def for_each_batch(
        self,
        rows: DataFrame,
        write: Callable[[BatchContext, DataFrame], None],
        config: StreamConfig,
        *,
        output_mode: str = "append",
    ) -> DataStreamWriter:
        """Hands the rows to the function."""
        write(_BatchRehearsal(self.spark, self.warehouse, self, "rehearsal", 0), rows)
        return cast("DataStreamWriter", None)


class _BatchRehearsal(BatchContext):
    def publish(self, records: DataFrame, topic: str, *, keeps_context: bool = False) -> None:
        _compute(records)

    def _write(self, rows: DataFrame, table: str, write: Callable[[], Any]) -> int | None:
        _compute(self.warehouse.checked(rows, table))
        return 0


class _Silent:
    """The telemetry of a run, to which a rehearsal adds nothing."""

    def __init__(self, telemetry: Any) -> None:
        self._telemetry = telemetry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._telemetry, name)

    def measure(self, *_: object) -> None:
        """Measures nothing."""

    def record(self, **_: object) -> None:
        """Records nothing."""


def _compute(rows: DataFrame) -> DataStreamWriter:
    rows.write.format("noop").mode("overwrite").save()
    return cast("DataStreamWriter", None)


def culprits(
    context: StreamContext,
    query: QueryFunction,
    config: StreamConfig,
    topics: Sequence[str],
    reason_of: Callable[[Any], str],
) -> Culprits | None:
    """The records of the micro-batch in hand that the query cannot process; None if single records are not the cause.

    Args:
        context: The query, which has failed.
        query: The function that declares it.
        config: Its configuration.
        topics: The topics that it reads.
        reason_of: Says in a line why a rehearsal failed; raises where that is not because of the records.

    Raises:
        PySparkException: The records cannot be read by now.
    """
    batch = planned_batch(context)
    if batch is None:
        return None
    read = _records(context, topics, *batch).withColumn("_id", records.identity())
    with persisted(read) as rows, contextlib.suppress(NotOfRecordsError):
        ids = sorted(row["_id"] for row in rows.select("_id").distinct().collect())
        reasons = _search(_Rehearsals(context, query, config, topics, rows), ids, reason_of)
        if not reasons:
            return None
        named = F.create_map(*[F.lit(text) for item in reasons.items() for text in item])
        found = rows.where(F.col("_id").isin(*reasons)).withColumn("reason", named[F.col("_id")]).drop("_id")
        kept = context.spark.createDataFrame(found.collect(), found.schema)  # what was persisted goes
        return Culprits(kept, reasons, len(ids))
    return None


@dataclass(frozen=True)
class _Rehearsals:
    context: StreamContext
    query: QueryFunction
    config: StreamConfig
    topics: Sequence[str]
    rows: DataFrame

    def failure(self, ids: Sequence[str]) -> Exception | None:
        """Why the query fails on some records; None if it does not."""
        chosen = self.rows.where(F.col("_id").between(ids[0], ids[-1]) if ids else F.lit(False)).drop("_id")
        given = {topic: chosen.where(F.col("topic") == topic) for topic in self.topics}
        try:
            self.query(Rehearsal.of(self.context, given), self.config)
        except Exception as error:  # noqa: BLE001 - whatever the query raises, which may be its user's
            return error
        return None


def _search(rehearsals: _Rehearsals, ids: Sequence[str], reason_of: Callable[[Any], str]) -> dict[str, str]:
    if not ids or rehearsals.failure([]) is not None:
        return {}
    found: dict[str, str] = {}
    waiting = [list(ids)]
    while waiting:
        part = waiting.pop()
        error = rehearsals.failure(part)
        if error is None:
            continue
        reason = reason_of(error)
        if len(part) > 1:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
            continue
        found[part[0]] = reason
        if len(found) > MAX_LEFT_OUT or is_most(len(found), len(ids)):
            raise NotOfRecordsError
    return found


def is_most(failed: int, records: int) -> bool:
    """Whether so many records fail that the program is at fault."""
    return records > MIN_RECORDS and failed > MAX_SHARE * records


def planned_batch(context: StreamContext) -> tuple[list[Any], list[Any]] | None:
    """The offsets of each source where the micro-batch in hand begins and ends; None if none was planned.

    A begin that is missing is that of the source.
    """
    spark, folder = context.spark, context.checkpoint
    planned, done = (_numbers(hadoop_files.names_in(spark, f"{folder}/{name}")) for name in ("offsets", "commits"))
    if not planned or (done and max(done) >= max(planned)):
        return None
    last = max(planned)
    ends = _offsets(hadoop_files.read_text(spark, f"{folder}/offsets/{last}"))
    before = _offsets(hadoop_files.read_text(spark, f"{folder}/offsets/{last - 1}")) if last - 1 in planned else []
    return before, ends


def read_offsets(spark: SparkSession, checkpoint: str) -> dict[str, dict[str, int]]:
    """The offsets of Kafka, by topic and partition, before which a query has read all; none of one that never ran."""
    done = _numbers(hadoop_files.names_in(spark, f"{checkpoint}/commits"))
    sources = _offsets(hadoop_files.read_text(spark, f"{checkpoint}/offsets/{max(done)}")) if done else []
    return {topic: offsets for source in sources if source for topic, offsets in source.items()}


def _records(context: StreamContext, topics: Sequence[str], before: Sequence[Any], ends: Sequence[Any]) -> DataFrame:
    """The records of a planned micro-batch."""
    if context.settings.kafka.servers:
        return reduce(DataFrame.unionByName, _kafka(context, before, ends))
    lines = [_lines(context, topics, source, before, end) for source, end in enumerate(ends)]
    return reduce(DataFrame.unionByName, [each for each in lines if each is not None])


def _kafka(context: StreamContext, before: Sequence[Any], ends: Sequence[Any]) -> Iterator[DataFrame]:
    begins = {topic: offsets for source in before if source for topic, offsets in source.items()}
    options = source_options(context.settings.kafka)
    for topic, offsets in ((topic, offsets) for source in ends if source for topic, offsets in source.items()):
        starts = {topic: {partition: begins.get(topic, {}).get(partition, EARLIEST) for partition in offsets}}
        span = {"startingOffsets": json.dumps(starts), "endingOffsets": json.dumps({topic: offsets})}
        read = context.spark.read.format("kafka").options(**options | span)
        yield of_kafka(read.option("subscribe", topic).load())


def _lines(
    context: StreamContext, topics: Sequence[str], source: int, before: Sequence[Any], end: Any
) -> DataFrame | None:
    """The lines of the files that a source reads in a micro-batch."""
    if end is None:
        return None
    begin = before[source] if source < len(before) else None
    first = begin["logOffset"] if begin else -1
    log = f"{context.checkpoint}/sources/{source}"
    texts = [
        hadoop_files.read_text(context.spark, f"{log}/{name}")
        for name in hadoop_files.names_in(context.spark, log) or ()
    ]
    entries = [json.loads(line) for text in texts for line in (text or "").splitlines() if line.startswith("{")]
    paths = {entry["path"] for entry in entries if first < entry["batchId"] <= end["logOffset"]}
    if not paths:
        return None
    topic = next(topic for topic in topics if f"/{topic}/" in min(paths))
    return of_lines(context.spark.read.text(sorted(paths)), topic)


def _numbers(names: Sequence[str] | None) -> set[int]:
    return {int(name) for name in names or () if name.isdigit()}


def _offsets(text: str | None) -> list[Any]:
    """The offsets of a plan, one a source, after its version and metadata."""
    return [None if line == "-" else json.loads(line) for line in (text or "").splitlines()[2:]]

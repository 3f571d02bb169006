"""What a streaming query is handed: its sources, its sinks, and its micro-batches."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.engine import dead_letters, records, topic_writer, tracing
from spark_app.engine.context import Context
from spark_app.engine.expectation_monitor import ExpectationMonitor
from spark_app.engine.stream_config import CheckedConfig, RealTimeConfig, StreamConfig, milliseconds
from spark_app.engine.topics import Topic, bounded
from spark_app.errors import InputError
from spark_app.local_files import ensure_dir, local_path
from spark_app.quality.expectations import Expectation
from spark_app.runs.run_record import PUBLISHED
from spark_app.settings import Interval, Settings
from spark_app.spark import job_properties
from spark_app.spark.kafka import sink_options, source_options
from spark_app.spark.persisted import persisted
from spark_app.vocabulary.spark_names import STREAM_QUERY_ID
from spark_app.vocabulary.spark_progress import CHECKED, INPUT
from spark_app.warehouse import delta_log, hadoop_files
from spark_app.warehouse.schemas import RECORD
from spark_app.warehouse.tables import Warehouse

TRANSACTION: Final = "spark.databricks.delta.write"
"""Settings below this name make a write one that Delta commits once, however often it is repeated."""
_HEADER_LINES: Final = 2
"""Lines of a file of offsets before those of its sources: its version, and the settings of the micro-batch."""
OutputMode = Literal["append", "update", "complete"]


@dataclass
class StreamContext(Context):
    """One run of one streaming query.

    Attributes:
        is_draining: Whether the query ends when it has read all that is there now.
        sink: The table or topic whose rows an observation counts; None if micro-batches count what they write.
        monitor: Compares what is observed of each micro-batch with limits; None without expectations.
        at_end: What is called when the query has ended, however it did.
    """

    is_draining: bool = False
    sink: str | None = None
    monitor: ExpectationMonitor | None = None
    at_end: ExitStack = field(default_factory=ExitStack, repr=False)

    @property
    def name(self) -> str:
        """The name of the query: `streaming.events`."""
        return self.telemetry.identity.pipeline

    @property
    def checkpoint(self) -> str:
        """The folder of offsets and state of the query."""
        return f"{self.settings.checkpoints_path}/{self.name}"

    def trigger_seconds(self, config: StreamConfig) -> float | None:
        """Seconds from one trigger to the next, or to the next commit in real time; None if the query drains."""
        return None if self.is_draining else milliseconds(self.real_time(config) or config.trigger) / 1000

    def count(self, rows: Mapping[str, int | None]) -> None:
        """Adds rows of a micro-batch to the counts of the run, by their names; what is unknown is left out."""
        for name, number in rows.items():
            if number is not None:
                self.counts[name] = self.counts.get(name, 0) + number

    def read(self, topic: str, config: StreamConfig) -> DataFrame:
        """The records of a topic, from Kafka or, without it, from JSON Lines files.

        Their number and the timestamp of the newest are observed; as a number, since Spark reports timestamps without
        fractions of a second. Records that the query leaves out are not read: dead letters that name it.

        Columns out: those of `RECORD`.
        """
        observation, newest = f"{INPUT}{topic}", F.max("timestamp").cast("double").alias("newest")
        left_out = dead_letters.left_out(self.warehouse, self.name, topic)
        is_read = ~records.identity().isin(left_out) if left_out else F.lit(True)
        if self.settings.kafka.servers:
            read = self._kafka(topic, config).where(is_read)
            return tracing.producers(read, observation, F.count("*").alias("records"), newest)
        return self._files(topic, config).where(is_read).observe(observation, F.count("*").alias("records"), newest)

    def bounded(self, topic: Topic) -> Topic:
        """A topic with the configured bound of its event time; later ones are malformed."""
        return bounded(topic, self.settings.stream)

    def read_once(
        self,
        topic: Topic,
        config: StreamConfig,
        *,
        watermark: str,
        keep: Sequence[str] = (),
        counted_as: str = "rows",
    ) -> DataFrame:
        """The well-formed values of a topic, each once, if it comes no later than the watermark.

        Columns out: those of the schema of the topic; those to keep.

        Args:
            topic: The topic.
            config: The configuration of the query.
            watermark: How late a value may come; repetitions are found for as long.
            keep: Further columns of parsed records, such as `extra`.
            counted_as: The name of the observation that counts what was read, and what is malformed.
        """
        valid = records.valid(self.read(topic.name, config), self.bounded(topic), keep=keep, counted_as=counted_as)
        return records.single(valid, topic, watermark)

    def expect(
        self, rows: DataFrame, table: str, expectations: Sequence[Expectation], config: CheckedConfig
    ) -> DataFrame:
        """The same rows, of which each micro-batch counts those that violate an expectation, in the same pass.

        A micro-batch is judged when it has been written: a breach is reported or, if so configured, stops the query.
        """
        if self.monitor is None:
            self.declare(table, config.expectation_names)
            self.monitor = ExpectationMonitor(table, config.all_limits, is_strict=config.on_breach == "stop")
        counts = [each.violations() for each in expectations]
        return rows.observe(self.monitor.observation, F.count("*").alias(CHECKED), *counts)

    def table(self, name: str, *, version: int | None = None) -> DataFrame:
        """A table of the warehouse, created if it is missing; each micro-batch sees the rows of its time."""
        self.warehouse.create_if_missing(name)
        return self.warehouse.table(name, version=version)

    def append(self, rows: DataFrame, table: str, config: StreamConfig) -> DataStreamWriter:
        """A query that appends rows to a table, each exactly once."""
        if hadoop_files.names_in(self.spark, f"{self.checkpoint}/commits"):
            self.require_table(table)
        self.table(table)
        self.written[table], self.sink = self.warehouse.path(table), table
        rows = rows.to(self.warehouse.tables[table].schema).observe("written", F.count("*").alias("rows"))
        partitions = self.warehouse.tables[table].partitions
        writer = self._writer(rows, config, "append").format("delta").option("path", self.warehouse.path(table))
        writer = writer.option("mergeSchema", "true")  # a column that a newer program declares
        writer = writer.option("userMetadata", self.metadata(table, self.telemetry.identity.run_id))
        return writer.partitionBy(*partitions) if partitions else writer

    def metadata(self, table: str, writer: str) -> str:
        """The `userMetadata` of commits of a table."""
        return delta_log.metadata_of(writer, self.fingerprints.get(table, ""))

    def require_table(self, table: str) -> None:
        """Checks that a table is there which the query has written before: it would go on without the rows it has read.

        Raises:
            InputError: It is gone.
        """
        if not self.warehouse.exists(table):
            short = self.name.removeprefix("streaming.")
            raise InputError(
                f"{self.name} has read records before (checkpoint {self.checkpoint}), but its table {table} is gone: "
                f"restore it, or start over with `spark-app streaming reset {short}`"
            )

    def publish(self, records: DataFrame, topic: str, config: StreamConfig) -> DataStreamWriter:
        """A query that sends records to a topic, each at least once; without Kafka, to files.

        A record names the micro-batch as its context; in real time, where no function sees a batch, what it came with.

        Columns in: key, value, headers, as in `RECORD`.
        """
        self.sink = topic
        records = records.observe("written", F.count("*").alias("rows"))
        real_time = self.real_time(config)
        if real_time is None:
            return self.for_each_batch(records, lambda batch, rows: batch.publish(rows, topic), config)
        records = topic_writer.fitting(records, topic_writer.largest_record(self.settings.kafka, topic))
        writer = self._writer(records, config, "update").format("kafka").option("topic", topic)
        writer = writer.options(**sink_options(self.settings.kafka))
        job_properties.set_trigger(self.spark, None)
        return cast("DataStreamWriter", writer.trigger(realTime=real_time))  # type: ignore[call-overload]

    def real_time(self, config: StreamConfig) -> Interval | None:
        """How often the query commits in real time; None where it works in micro-batches."""
        is_possible = self.settings.kafka.servers is not None and not self.is_draining
        return config.real_time if is_possible and isinstance(config, RealTimeConfig) else None

    def for_each_batch(
        self,
        rows: DataFrame,
        write: Callable[["BatchContext", DataFrame], None],
        config: StreamConfig,
        *,
        output_mode: OutputMode = "append",
    ) -> DataStreamWriter:
        """A query that hands each micro-batch to a function, at least once: what it writes must stand a repetition."""

        def process(batch: DataFrame, batch_id: int) -> None:
            session = batch.sparkSession
            query = session.sparkContext.getLocalProperty(STREAM_QUERY_ID)
            warehouse = Warehouse(session, self.warehouse.root, self.warehouse.tables.values())
            trace_id = tracing.traceparent_of_batch(session, batch_id).split("-")[1]
            with self.telemetry.attach(), job_properties.batch_properties(session, trace_id):
                write(BatchContext(session, warehouse, self, f"{query}", batch_id), batch)

        return self._writer(rows, config, output_mode).foreachBatch(process)

    def _writer(self, rows: DataFrame, config: StreamConfig, output_mode: OutputMode) -> DataStreamWriter:
        self._remove_torn_plan()
        writer = rows.writeStream.queryName(self.name).outputMode(output_mode)
        writer = writer.option("checkpointLocation", self.checkpoint)
        job_properties.set_trigger(self.spark, None if self.is_draining else config.trigger)
        if self.is_draining:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=config.trigger)

    def committed_offsets(self) -> list[str] | None:
        """The offsets at which the last committed micro-batch ended, as text of each source; None before the first."""
        batches = hadoop_files.names_in(self.spark, f"{self.checkpoint}/commits") or []
        last = max((int(name) for name in batches if name.isdecimal()), default=None)
        text = None if last is None else hadoop_files.read_text(self.spark, f"{self.checkpoint}/offsets/{last}")
        return None if text is None else text.splitlines()[_HEADER_LINES:]

    def _remove_torn_plan(self) -> None:
        """Removes a part of the first plan that a kill has left: Spark begins in an empty folder only.

        A plan counts when it has its final name. Before the first one, nothing is read or written.
        """
        folder = f"{self.checkpoint}/offsets"
        names = hadoop_files.names_in(self.spark, folder)
        if names and all(name.startswith(".") for name in names):
            hadoop_files.delete(self.spark, folder)

    def _kafka(self, topic: str, config: StreamConfig) -> DataFrame:
        is_bounded = self.real_time(config) is None
        bounds = {"maxOffsetsPerTrigger": str(config.records_per_trigger)} if is_bounded else {}
        chosen = json.loads(hadoop_files.read_text(self.spark, start_file(self.settings, self.name)) or "{}")
        reading = bounds | source_options(self.settings.kafka) | _start(chosen, topic)
        reader = self.spark.readStream.format("kafka").options(**reading).option("subscribe", topic)
        return of_kafka(reader.load())

    def _files(self, topic: str, config: StreamConfig) -> DataFrame:
        folder = f"{self.settings.landing_path}/{topic}"
        here = local_path(folder)
        if here is not None:
            ensure_dir(here)
        reader = self.spark.readStream.format("text").option("pathGlobFilter", "*.jsonl")
        return of_lines(reader.option("maxFilesPerTrigger", config.files_per_trigger).load(folder), topic)


def of_kafka(read: DataFrame) -> DataFrame:
    """The records that Spark's source of Kafka gives, with the columns of `RECORD`."""
    return read.select(*_columns({}))


def of_lines(lines: DataFrame, topic: str) -> DataFrame:
    """The records of a topic that Spark's source of text gives, with the columns of `RECORD`."""
    file = F.struct(F.lit(records.FILE).alias("key"), F.col("_metadata.file_path").cast("binary").alias("value"))
    given = {
        "value": F.col("value"),
        "headers": F.array(file),
        "topic": F.lit(topic),
        "timestamp": F.col("_metadata.file_modification_time"),
    }
    return lines.select(*_columns({name: F.lit(None) for name in RECORD.names} | given))


def start_file(settings: Settings, query: str) -> str:
    """The file with the options of Spark's Kafka source that a query begins with where it has no checkpoint."""
    return f"{settings.checkpoints_path}/{query}.from.json"


def _start(options: Mapping[str, str], topic: str) -> dict[str, str]:
    """The options for one topic: those of `startingOffsets.TOPIC` are its own."""
    own = {name.partition(".")[0]: value for name, value in options.items() if name == f"startingOffsets.{topic}"}
    return own | {name: value for name, value in options.items() if "." not in name}


def _columns(given: dict[str, Column]) -> list[Column]:
    """The columns of `RECORD`, from expressions or else from columns of their names."""
    return [given.get(each.name, F.col(each.name)).cast(each.dataType).alias(each.name) for each in RECORD]


@dataclass(frozen=True)
class BatchContext:
    """One micro-batch of a query; its jobs and writes are below the span of the batch, which Spark's event log gives.

    Attributes:
        spark: The session of the batch.
        warehouse: The tables, in that session.
        stream: The query.
        query_id: Spark's id of the query; a query that starts over has another.
        batch_id: The number of the batch, from 0.
    """

    spark: SparkSession
    warehouse: Warehouse
    stream: StreamContext
    query_id: str
    batch_id: int

    def append(self, rows: DataFrame, table: str) -> int | None:
        """Appends rows to a table; a repeated batch is not appended twice.

        Returns:
            How many rows are in the table now that were not before; None if it is not known.
        """
        return self._write(rows, table, lambda: self.warehouse.append(rows, table))

    def merge(self, rows: DataFrame, table: str, *, condition: str) -> None:
        """Upserts rows (alias `new`) into a table (alias `old`); a repeated batch changes nothing.

        Columns that a newer program declares are added to the table; rows of before have none of their values.
        The rows are kept: where a compaction of the table was committed first, they are merged once more, but a
        micro-batch, with its state, is computed once.

        Args:
            rows: The rows to upsert.
            table: Name of the table.
            condition: When a new row replaces an old one.
        """
        path = self.warehouse.path(table)
        with persisted(rows) as kept:
            write = partial(self.warehouse.merge, kept, table, condition)
            self._write(kept, table, lambda: delta_log.write_beside_compactions(self.spark, path, write))

    def publish(self, records: DataFrame, topic: str, *, keeps_context: bool = False) -> None:
        """Sends records to a topic, each at least once: a repeated batch sends them again, but writes no second file.

        Columns in: key, value, headers, as in `RECORD`.

        Args:
            records: The records.
            topic: The topic.
            keeps_context: Whether a record belongs to the trace of its headers, as a reply does to that of its request;
                otherwise it names the micro-batch as its context.
        """
        if self.stream.settings.kafka.servers and not keeps_context:
            traceparent = tracing.traceparent_of_batch(self.spark, self.batch_id)
            records = tracing.with_traceparent(records, traceparent)
        name = f"{self.query_id}-{self.batch_id:08}"
        topic_writer.send(records, topic, self.stream.settings, name=name)

    def _write(self, rows: DataFrame, table: str, write: Callable[[], Any]) -> int | None:
        """Writes in a transaction that Delta commits once for each batch of the query.

        Delta does not compute the rows of a batch that it has, as after a kill before the commit of the checkpoint;
        Spark fails a batch whose state was not computed (`spark.sql.streaming.stateStore.commitValidation.enabled`).
        """
        if self.batch_id > 0:
            self.stream.require_table(table)
        self.warehouse.create_if_missing(table)
        path, tag = self.warehouse.path(table), f"{self.query_id}#{self.batch_id}"
        self.stream.written[table] = path
        before = delta_log.last_version(self.spark, path)
        with (
            job_properties.setting(self.spark, f"{TRANSACTION}.txnAppId", f"{self.query_id}/{table}"),
            job_properties.setting(self.spark, f"{TRANSACTION}.txnVersion", str(self.batch_id)),
            job_properties.setting(self.spark, delta_log.TAG, self.stream.metadata(table, tag)),
        ):
            write()
        commits = [commit for commit in delta_log.history(self.spark, path, after=before) if commit.tag == tag]
        for commit in commits:
            self.stream.count({PUBLISHED: commit.rows})
            self.stream.telemetry.record(rows_written={table: commit.rows}, bytes_written=commit.bytes)
        if not commits:
            rows.write.format("noop").mode("overwrite").save()
        written = [commit.rows for commit in commits]
        return None if None in written else sum(filter(None, written))

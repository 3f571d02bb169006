"""The streaming query that a module's declaration makes: what it reads, where it writes, and what operators tune."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError, create_model
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import DecimalType, MapType, StringType, StructField, StructType

from spark_app.declarations import column_lineage
from spark_app.declarations.column_lineage import FunctionInput
from spark_app.declarations.declaration import OF_SCHEMA, Transform, require_names
from spark_app.declarations.pipeline import Pipeline
from spark_app.declarations.trials import EmptyInputs, Trial
from spark_app.engine import records
from spark_app.engine.code_location import CodeLocation, nearest
from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.engine.stream_config import CheckedConfig, RealTimeConfig, StreamConfig
from spark_app.engine.topics import Topic
from spark_app.quality.expectations import Expectation
from spark_app.settings import Interval, load_pipeline_config
from spark_app.spark import call_sites
from spark_app.spark.persisted import persisted
from spark_app.warehouse.schemas import RECORD
from spark_app.warehouse.tables import Table, same_key

Kind = Literal["table", "topic", "state"]
HEADERS: Final = "headers"
KEPT: Final = {
    records.EXTRA: StructField(records.EXTRA, MapType(StringType(), StringType())),
    HEADERS: RECORD[HEADERS],
}
"""The columns of records that a function may get."""
INSTANT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSX"
"""How an instant is written into a topic: in UTC, to the millisecond."""


@dataclass(eq=False)
class DeclaredQuery:
    """A function that makes the rows of a query; it stays callable with DataFrames.

    Attributes:
        function: The function; its name is that of the table or topic that its rows go to.
        kind: What becomes of its rows.
        schema: The columns that it returns.
        location: Where it is declared.
        partitions: The columns that the files of a table are partitioned by.
        expectations: What every row should meet.
        key: The columns that identify a row, or the one that is the key of a record.
        watermark: How late a value may come, where the configuration says nothing; None for a query without state.
        once: Whether repetitions of a value are left out.
        starts_first: Whether it starts before the other queries.
    """

    function: Transform
    kind: Kind
    schema: StructType
    location: CodeLocation
    partitions: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    key: tuple[str, ...] = ()
    watermark: Interval | None = None
    once: bool = False
    starts_first: bool = False

    def __post_init__(self) -> None:
        """Checks what its function asks for.

        Raises:
            DeclarationError: A parameter is none that the engine can give, or an option has no type, or a wrong value.
        """
        update_wrapper(self, self.function)
        require_names(self.function, self.location, "is no topic and no table: name each one that it reads")
        if self.kind == "state" and self.name not in self.reads:
            raise self.location.error(
                f"{self.name} needs a parameter {self.name}, which gets the rows that the table has by now"
            )
        before = self.function.__globals__.get(self.name)
        if isinstance(before, DeclaredQuery):
            raise self.location.error(f"{self.name} is declared twice, here and in line {before.location.line}")
        self.config = self._config()

    def __call__(self, *arguments: Any, **named: Any) -> DataFrame:
        """Calls the function."""
        return self.function(*arguments, **named)

    @property
    def name(self) -> str:
        """The name of the table or topic."""
        return self.function.__name__

    @property
    def reads(self) -> list[str]:
        """The names of the topics and tables that it reads, its own state among them."""
        return [each.name for each in self._parameters if each.kind is not each.KEYWORD_ONLY]

    @property
    def options(self) -> list[str]:
        """The names of what an operator tunes."""
        return [each.name for each in self._parameters if each.kind is each.KEYWORD_ONLY]

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())

    def _config(self) -> type[StreamConfig]:
        """What an operator tunes: what every query has, and the options of the function."""
        names = [each.name for each in self.expectations]
        base: type[StreamConfig] = StreamConfig
        if self.kind == "topic" and self.watermark is None:
            base = RealTimeConfig
        elif names:
            base = CheckedConfig
        fields: dict[str, Any] = {} if self.watermark is None else {"watermark": (Interval, self.watermark)}
        for option in inspect.signature(self.function, eval_str=True).parameters.values():
            if option.kind is option.KEYWORD_ONLY:
                if option.name in {*base.model_fields, *fields}:
                    raise self.location.error(
                        f"{self.name}: every query has an option {option.name}: choose another name"
                    )
                fields[option.name] = self._field(option)
        config = create_model("Config", __base__=base, **fields)
        if issubclass(config, CheckedConfig):
            config.expectation_names = names
        return config

    def _field(self, option: inspect.Parameter) -> tuple[Any, Any]:
        if option.annotation is option.empty:
            raise self.location.error(
                f"{self.name}: the option {option.name} has no type: write one, such as {option.name}: stream.Interval"
            )
        if option.default is option.empty:
            return option.annotation, ...
        try:
            TypeAdapter(option.annotation).validate_python(option.default)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise self.location.error(f"{self.name}: {option.name} cannot be {option.default!r}: {problem}") from error
        return option.annotation, option.default


class DeclaredStream(Pipeline):
    """A streaming query of a project."""

    kind = "query"
    unknown = "is no topic, and no table that a pipeline writes"

    def __init__(self, name: str, declared: DeclaredQuery, topics: Sequence[Topic]) -> None:
        """The query of a module.

        Args:
            name: Its name.
            declared: What the module declares.
            topics: The topics of the project.

        Raises:
            DeclarationError: It reads no topic; or a state reads several.
        """
        known = {topic.name: topic for topic in topics}
        self.declared, self._is_recorded = declared, False
        self.known_topics = {each: known[each] for each in declared.reads if each in known}
        reads = tuple(each for each in declared.reads if each not in known and each != declared.name)
        is_topic = declared.kind == "topic"
        super().__init__(
            name=name,
            location=declared.location,
            config=declared.config,
            topics=tuple(self.known_topics),
            reads=reads,
            functions=[(declared.name, declared.location, reads)],
            writes=() if is_topic else (Table(declared.name, declared.schema, declared.partitions),),
            sends=(declared.name,) if is_topic else (),
            starts_first=declared.starts_first,
        )
        if not declared.reads:
            raise declared.location.error(
                f"{declared.name} reads nothing: name the topics that it reads as its parameters"
            )
        if not self.topics:
            raise declared.location.error(f"{declared.name} reads no topic: {nearest(declared.reads[0], list(known))}")
        if declared.kind == "state" and len(self.topics) > 1:
            raise declared.location.error(
                f"{declared.name} reads several topics, {', '.join(self.topics)}: join them in a query of their own"
            )

    def trials(self, empty: EmptyInputs) -> Iterator[Trial]:
        """Its function, to be called with frames without rows."""
        yield Trial(self.declared.name, self.location, partial(self._plan, empty))

    def _plan(self, empty: EmptyInputs) -> None:
        """Plans what becomes of no values of its topics, with the options that are configured."""
        declared = self.declared
        config = load_pipeline_config(self.name, self.config, empty.settings.config)
        options = {name: getattr(config, name) for name in declared.options}
        if declared.kind == "state":
            [topic] = self.known_topics.values()
            inputs = {name: empty.table(name) for name in (declared.name, *self.reads)}
            rows = self._returned(inputs | {topic.name: empty.frame(topic.schema)}, options)
        else:
            inputs = {name: self._no_values(empty, config, topic) for name, topic in self.known_topics.items()}
            rows = self._returned(inputs | {name: empty.table(name) for name in self.reads}, options)
        if declared.kind == "topic":
            messages(rows, declared)
        else:
            rows = self.location.require_types(declared.name, rows.select(*declared.schema.names), declared.schema)
        rows.agg(F.count(F.lit(1)), *[each.violations() for each in declared.expectations])

    def _no_values(self, empty: EmptyInputs, config: Any, topic: Topic) -> DataFrame:
        declared = self.declared
        values = empty.stream(topic, *[KEPT[name] for name in self._kept(topic)])
        return values if declared.watermark is None else values.withWatermark(topic.event_time, config.watermark)

    def query(self, context: StreamContext, config: Any) -> DataStreamWriter:
        """The query, built and not started."""
        streams = {name: self._stream(context, config, topic) for name, topic in self.known_topics.items()}
        for name in self.reads:
            if context.table(name).isEmpty():
                context.note(
                    f"{context.name}: the table {name} is empty, so that rows have nothing of it until `spark-app etl` "
                    "publishes some"
                )
        options = {name: getattr(config, name) for name in self.declared.options}
        if self.declared.kind == "state":
            [stream] = streams.values()
            return context.for_each_batch(stream, lambda batch, rows: self.update(batch, rows, options), config)
        tables = {name: context.table(name) for name in self.reads}
        rows = self._returned(streams | tables, options)
        self._record(context, rows, streams, tables)
        if self.declared.kind == "topic":
            return context.publish(messages(rows, self.declared), self.declared.name, config)
        if self.declared.expectations:
            rows = context.expect(rows, self.declared.name, self.declared.expectations, config)
        return context.append(rows, self.declared.name, config)

    def _stream(self, context: StreamContext, config: Any, topic: Topic) -> DataFrame:
        """The values of a topic, well-formed, and each once if so declared."""
        declared, is_first = self.declared, topic.name == self.topics[0]
        counted_as = "rows" if is_first else f"rows of {topic.name}"
        keep = self._kept(topic)
        if declared.once:
            return context.read_once(topic, config, watermark=config.watermark, keep=keep, counted_as=counted_as)
        read = context.read(topic.name, config)
        values = records.valid(read, context.bounded(topic), keep=keep, counted_as=counted_as)
        return values if declared.watermark is None else values.withWatermark(topic.event_time, config.watermark)

    def _kept(self, topic: Topic) -> list[str]:
        """The columns of records that its function gets beside those of the values."""
        declared = self.declared
        if topic.name != self.topics[0]:
            return []
        keep = [records.EXTRA] if records.EXTRA in declared.schema.names else []
        if declared.kind == "topic" and HEADERS not in topic.schema.names:
            keep.append(HEADERS)
        return keep

    def update(self, batch: BatchContext, new: DataFrame, options: Mapping[str, Any]) -> None:
        """Merges what the values of a micro-batch change; they are kept: with their state they are computed once."""
        [topic] = self.topics
        name = self.declared.name
        tables = {each: batch.warehouse.table(each) for each in (name, *self.reads)}
        with call_sites.work_of(name, self.location.file, self.location.line), persisted(new) as kept:
            rows = self._returned(tables | {topic: kept}, options)
            if not self._is_recorded:  # the plan of each micro-batch is the same
                self._record(batch.stream, rows, {topic: kept}, tables)
            batch.merge(rows.select(*self.declared.schema.names), name, condition=same_key(self.declared.key))

    def _record(
        self, context: StreamContext, rows: DataFrame, topics: Mapping[str, DataFrame], tables: Mapping[str, DataFrame]
    ) -> None:
        """Records of which columns those of the table are made."""
        self._is_recorded = True
        inputs = column_lineage.of_tables(context, tables)
        inputs |= {f"{name}{column_lineage.TOPIC}": FunctionInput(each, None) for name, each in topics.items()}
        for table in self.writes:
            column_lineage.record(context, table.name, table.schema.names, rows, inputs)

    def _returned(self, inputs: Mapping[str, DataFrame], options: Mapping[str, Any]) -> DataFrame:
        """What the function makes.

        Raises:
            DeclarationError: It lacks a column.
        """
        declared = self.declared
        returned = declared(**{name: inputs[name] for name in declared.reads}, **options)
        rows = self.location.require_frame(declared.name, returned)
        self.location.require_returned(declared.name, rows.columns, declared.schema.names, OF_SCHEMA)
        return rows


def messages(rows: DataFrame, declared: DeclaredQuery) -> DataFrame:
    """One record per row.

    Columns out: key, value, headers.
    """
    value = F.to_json(F.struct(*[_written(field) for field in declared.schema]), {"timestampFormat": INSTANT})
    headers = F.col(HEADERS) if HEADERS in rows.columns else F.lit(None).cast(RECORD[HEADERS].dataType)
    key = F.col(declared.key[0]).cast("string").cast("binary")
    return rows.select(key.alias("key"), value.cast("binary").alias("value"), headers.alias(HEADERS))


def _written(field: StructField) -> Column:
    is_decimal = isinstance(field.dataType, DecimalType)
    return F.col(field.name).cast("string").alias(field.name) if is_decimal else F.col(field.name)

"""How the tables of a project are made, as data that is kept in their commits and compared by `spark-app plan`."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from types import FunctionType
from typing import Any, Final, NamedTuple

import msgspec
import pyspark
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.declarations import code_graph, column_code
from spark_app.declarations.code_graph import CodeGraph
from spark_app.declarations.code_nodes import Reach, digest_of
from spark_app.declarations.daily_pipeline import DailyPipeline
from spark_app.declarations.declaration import Declared, Source
from spark_app.declarations.own_code import file_of, is_own
from spark_app.declarations.pipeline import Pipeline
from spark_app.declarations.query import DeclaredStream
from spark_app.engine.topics import Topic, bounded
from spark_app.project import Project
from spark_app.quality.expectations import Expectation, Rule
from spark_app.redaction import is_secret
from spark_app.settings import Settings
from spark_app.warehouse.fingerprint import Fingerprint
from spark_app.warehouse.source_files import origin

SAME_ROWS: Final = (
    "spark.sql.adaptive.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout", "spark.sql.catalog.",
    "spark.sql.catalogImplementation", "spark.sql.codegen.", "spark.sql.debug.", "spark.sql.event.",
    "spark.sql.execution.", "spark.sql.extensions", "spark.sql.files.", "spark.sql.hive.", "spark.sql.inMemory",
    "spark.sql.maxConcurrentOutputFileWriters", "spark.sql.maxMetadataStringLength", "spark.sql.maxPlanStringLength",
    "spark.sql.parquet.compression.", "spark.sql.queryExecutionListeners", "spark.sql.redaction.",
    "spark.sql.shuffle.", "spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.streaming.", "spark.sql.ui.",
    "spark.sql.warehouse.dir",
)  # fmt: skip
"""How the names of the properties of Spark SQL begin on which no row depends."""
OPERATED: Final = frozenset(
    {
        "checks", "default_limit", "files_per_trigger", "limits", "on_breach", "real_time", "records_per_trigger",
        "schedule", "trigger",
    }
)  # fmt: skip
"""Keys of a configuration on which no row depends."""
AGGREGATES: Final = frozenset(
    {
        "any_value", "avg", "collect_list", "collect_set", "count", "count_distinct", "count_if", "first", "last",
        "max", "max_by", "mean", "median", "min", "min_by", "mode", "sum",
    }
)  # fmt: skip
"""Functions by which a `select` becomes one row, if no window follows."""
BY_COLUMN: Final = frozenset(
    {"agg", "alias", "crossJoin", "filter", "groupBy", "groupby", "hint", "join", "names", "orderBy", "select", "sort",
     "where", "withColumn", "withColumnRenamed", "withColumns", "withColumnsRenamed"}
)  # fmt: skip
"""Methods of DataFrames that use the columns that are named, and no others."""
OF_SOURCE: Final = "source"
OF_TOPIC: Final = "topic"


class Use(NamedTuple):
    """What a function reads of the tables that it gets, by words: a column that no word names is not read.

    Attributes:
        is_whole: Whether it also uses rows whole, so that each column counts.
        rest: The words in what decides on all rows and columns.
        columns: The words in what computes single columns.
    """

    is_whole: bool
    rest: set[str]
    columns: Mapping[str, set[str]]


@dataclass(frozen=True)
class Making:
    """A function that makes a table or a topic.

    Attributes:
        name: The name of the table or topic.
        pipeline: Its pipeline.
        function: The function.
        schema: Its columns; None where no declaration says them.
        partitions: The columns that its files are partitioned by.
        key: The columns that identify a row.
        reads: The tables and topics that it reads.
        source: Its source.
        topics: Its topics.
        is_table: Whether it is a table.
    """

    name: str
    pipeline: Pipeline
    function: Callable[..., Any]
    schema: StructType
    partitions: Sequence[str] = ()
    key: Sequence[str] = ()
    reads: Sequence[str] = ()
    source: Source | None = None
    topics: Sequence[Topic] = ()
    is_table: bool = True


class Fingerprints:
    """How the tables of a project are made; each is looked at when it is asked for."""

    def __init__(self, found: Project, settings: Settings, loaded: Mapping[str, Pipeline], config: "ConfigOf") -> None:
        """Looks at nothing yet.

        Args:
            found: The project.
            settings: The configuration.
            loaded: All pipelines by name.
            config: The configuration of a pipeline.
        """
        self._settings, self._config = settings, cache(config)
        self._graph = CodeGraph(found.folder, found.source_folder)
        self.makings = {each.name: each for pipeline in loaded.values() for each in makings(pipeline)}
        self._known: dict[str, Fingerprint] = {}

    @property
    def tables(self) -> list[str]:
        """The tables that can be compared."""
        return [name for name, each in self.makings.items() if each.is_table]

    def of(self, name: str) -> Fingerprint:
        """How a table, or a topic, is made."""
        if name not in self._known:
            self._known[name] = Fingerprint(code="-")  # for who reads it in a circle of topics
            self._known[name] = self._of(self.makings[name])
        return self._known[name]

    def made_by(self, name: str) -> str:
        """Names how a table is made for its readers; how a topic is, with what its query reads: it has no commit."""
        made = self.of(name)
        return made_by(made) if self.makings[name].is_table else digest_of(made_by(made), *sorted(made.reads.items()))

    def reach(self, name: str) -> Reach:
        """What the function of a table reaches."""
        return self._graph.of_function(self.makings[name].function)

    def use(self, name: str) -> Use:
        """What the function of a table reads of its tables."""
        making = self.makings[name]
        reach = self._graph.of_function(making.function, is_alone=True)
        is_whole = not reach.attributes <= _by_column() or "*" in reach.words or not _packages(reach) <= {"pyspark"}
        parts = self._split(making)
        if parts is None:
            return Use(is_whole, reach.words, {})
        rest, columns = parts
        words = {column: set[str]().union(*(each.words for each in codes)) for column, codes in columns.items()}
        return Use(is_whole, rest.words, words)

    def _of(self, making: Making) -> Fingerprint:
        reach, config = self.reach(making.name), self._config(making.pipeline)
        rules = self._rules(making)
        rest, columns = self._columns(making)
        return Fingerprint(
            code=reach.digest,
            parts=reach.parts,
            rest=rest,
            columns=columns,
            schema=[(each.name, type_of(each.dataType, is_nullable=each.nullable)) for each in making.schema],
            comments=digest_of(making.schema.json()),
            key=making.key,
            partitions=making.partitions,
            inputs=dict(self._inputs(making)),
            reads={name: self.made_by(name) for name in making.reads if name in self.makings},
            rules={rule.name: self._rule(making, rule) for rule in rules},
            limits=self._limits(making, config, [rule.name for rule in rules]),
            options=dict(self._options(making, config, reach)),
            versions=self._versions(reach),
            properties=self._properties(making),
        )

    def _rules(self, making: Making) -> Sequence[Rule]:
        declared = self._declared(making)
        if isinstance(declared, Declared):
            return declared.rules(self._settings)
        return getattr(declared, "expectations", ())

    def _declared(self, making: Making) -> Any:
        pipeline = making.pipeline
        if isinstance(pipeline, DailyPipeline):
            return next(each for each in pipeline.declared if each.name == making.name)
        return pipeline.declared if isinstance(pipeline, DeclaredStream) else None

    def _rule(self, making: Making, rule: Rule) -> str:
        """What a rule expects, in words, and the digest of all that it says; those of single rows are marked."""
        label = (making.function.__module__, rule.name)
        reach = self._graph.of_value(label, rule)
        kind = "row" if isinstance(rule, Expectation) else "all"
        return f"{kind} {reach.digest} {_arguments(rule)}".rstrip()

    def _split(self, making: Making) -> tuple[Reach, dict[str, list[Reach]]] | None:
        """What decides on rows and on all columns, and by column the codes that it depends on."""
        function, words = making.function, self.reach(making.name).words
        alone = self._graph.of_function(function, is_alone=True)
        is_certain = column_code.GENERATORS.isdisjoint(words) and _packages(alone) <= {"pyspark"}
        if not isinstance(function, FunctionType) or not is_certain or not making.schema.names:
            return None
        found = column_code.split(function, making.schema)
        if found is None:
            return None
        columns, before = dict[str, list[Reach]](), list[Reach]()
        for layer in found.layers:
            codes = {name: self._graph.of_code(code, function) for name, code in layer.items()}
            if found.last == "select" and any(map(_is_aggregate, codes.values())):
                return None
            for name in codes:
                columns[name] = [*columns.get(name, []), *_with_named(name, codes), *before]
            before += codes.values()
        return self._graph.of_code(found.rest, function, is_whole=True), columns

    def _columns(self, making: Making) -> tuple[str, dict[str, str]]:
        parts = self._split(making)
        if parts is None:
            return self.reach(making.name).digest, {}
        rest, columns = parts
        known = {name: digest_of(*(each.digest for each in codes))[:8] for name, codes in columns.items()}
        return rest.digest, {name: known[name] for name in known if name in making.schema.names}

    def _inputs(self, making: Making) -> Iterator[tuple[str, str]]:
        if (source := making.source) is not None:
            of_source = {
                **origin(self._settings, source.name, source.origin).facts,
                "columns": ", ".join(f"{name} as {given}" for name, given in _renamed(source)),
                "key": ", ".join(source.key),
                "newest": ", ".join(source.newest),
                "oldest": ", ".join(source.oldest),
                "may_be_empty": str(source.may_be_empty),
            }
            yield from ((f"{key} of {OF_SOURCE} {source.name}", text) for key, text in of_source.items() if text)
        declared = self._declared(making)
        if isinstance(declared, Declared) and declared.is_state:
            kind = "scd2" if declared.is_history else ""
            of_state = {"newest": ", ".join(declared.newest), "deleted": declared.deleted, "kind": kind}
            yield from ((f"{key} of state {making.name}", text) for key, text in of_state.items() if text)
        for topic in making.topics:
            yield from _of_topic(bounded(topic, self._settings.stream))

    def _limits(self, making: Making, config: Any, names: Sequence[str]) -> dict[str, str]:
        """The limits of its rules; the table of a source has further ones."""
        known = getattr(config, "all_limits", {})
        others = {each.name for name in self.makings for each in self._rules_beside(making, name)}
        found = {name: str(limit) for name, limit in known.items() if name in names}
        if making.source is not None:
            found |= {name: str(limit) for name, limit in known.items() if name not in others}
        found |= {"checks": "off"} if found and getattr(config, "checks", True) is False else {}
        return found | ({"on_breach": config.on_breach} if getattr(config, "on_breach", "report") != "report" else {})

    def _rules_beside(self, making: Making, name: str) -> Sequence[Rule]:
        other = self.makings[name]
        return self._rules(other) if other.pipeline is making.pipeline and other is not making else ()

    def _options(self, making: Making, config: Any, reach: Reach) -> Iterator[tuple[str, str]]:
        values = config.model_dump(exclude=OPERATED)
        for name, value in values.items():
            yield name, "secret" if is_secret(name) else str(value)
        if isinstance(making.pipeline, DeclaredStream):
            declared = making.pipeline.declared
            yield "once", str(declared.once)
            yield "kind", declared.kind
        if "settings" in reach.attributes:
            for name in sorted(Settings.model_fields.keys() & reach.attributes - {"config", "home", "kafka"}):
                yield f"settings.{name}", digest_of(str(getattr(self._settings, name)))

    def _versions(self, reach: Reach) -> dict[str, str]:
        known = {"Python": f"{sys.version_info.major}.{sys.version_info.minor}", "Spark": pyspark.__version__}
        known |= {"spark-app": version("spark-app"), "delta-spark": version("delta-spark")}
        packages = {each: _version(each) for each in sorted(_packages(reach) - {"pyspark", "spark_app", "delta"})}
        return known | {name: text for name, text in packages.items() if text}

    def _properties(self, making: Making) -> dict[str, str]:
        is_stream = isinstance(making.pipeline, DeclaredStream)
        properties = self._settings.spark_properties | (self._settings.stream_properties if is_stream else {})
        known = {name: text for name, text in properties.items() if name.startswith("spark.sql.")}
        return {name: text for name, text in sorted(known.items()) if not name.startswith(SAME_ROWS)}


ConfigOf = Callable[[Pipeline], Any]


def makings(pipeline: Pipeline) -> Iterator[Making]:
    """The functions of a pipeline that make its tables and topics; those of the library, and models, are left out."""
    if isinstance(pipeline, DailyPipeline):
        for each in pipeline.declared:
            source = {"source": each.source} if each.source else {}
            given: dict[str, Any] = {"partitions": each.partition_by, "reads": each.reads, **source}
            if each.is_history:  # the state adds columns, one of them to the key
                yield Making(each.name, pipeline, each.function, each.table.schema, key=each.table.key, **given)
            else:
                yield Making(each.name, pipeline, each.function, each.schema, key=each.key, **given)
    elif isinstance(pipeline, DeclaredStream):
        query = pipeline.declared
        yield Making(
            query.name,
            pipeline,
            query.function,
            query.schema,
            partitions=query.partitions,
            key=query.key,
            reads=[*pipeline.reads, *pipeline.topics],
            topics=list(pipeline.known_topics.values()),
            is_table=query.kind != "topic",
        )
    elif pipeline.kind == "own":
        work = vars(pipeline).get("run") or vars(pipeline).get("query")
        if work is not None:
            for table in pipeline.writes:
                yield Making(table.name, pipeline, work, table.schema, table.partitions, table.key, pipeline.reads)


def made_by(fingerprint: Fingerprint) -> str:
    """Names how a table is made, as far as its readers depend on that."""
    of_source = any(f" of {OF_SOURCE} " in name for name in fingerprint.inputs)
    rules = [text for text in fingerprint.rules.values() if text.startswith("row ")] if of_source else []
    parts: list[object] = [
        fingerprint.code, fingerprint.schema, fingerprint.key, fingerprint.partitions, fingerprint.inputs,
        fingerprint.options, rules,
    ]  # fmt: skip
    return digest_of(msgspec.json.encode(parts))


def type_of(kind: Any, *, is_nullable: bool = True) -> str:
    """The type of a column, with what `simpleString` leaves out."""
    nested = code_graph.without_comments(kind.jsonValue())
    text = kind.simpleString()
    has_required = "False" in str(nested)
    return f"{text}{f' {digest_of(nested)}' if has_required else ''}{'' if is_nullable else ' not null'}"


def _renamed(source: Source) -> list[tuple[str, str]]:
    """The columns of a source that are delivered under other names."""
    pairs = zip(source.schema.names, source.delivered.names, strict=True)
    return [(name, delivered) for name, delivered in pairs if name != delivered]


def _of_topic(topic: Topic) -> Iterator[tuple[str, str]]:
    said = {
        "key": topic.key,
        "event_time": topic.event_time,
        "optional": ", ".join(topic.optional),
        "malformed_if": digest_of(*topic.malformed_if) if topic.malformed_if else "",
        "event_time_after_max": str(topic.event_time_after_max),
    }
    yield from ((f"{key} of {OF_TOPIC} {topic.name}", text) for key, text in said.items() if text)
    for each in topic.schema:
        yield f"column {each.name} of {OF_TOPIC} {topic.name}", type_of(each.dataType, is_nullable=each.nullable)


def _arguments(rule: Rule) -> str:
    """What a rule was made with, in words."""
    given: dict[str, Any] = {}
    if isinstance(rule, Expectation):
        for condition in (rule.is_violated, rule.counted):
            names = getattr(condition, "__code__", None)
            cells = getattr(condition, "__closure__", None) or ()
            given |= dict(zip(names.co_freevars, (each.cell_contents for each in cells), strict=True)) if names else {}
    else:
        given = dict(vars(rule))
    shown = {name: value for name, value in given.items() if name != "column" and not callable(value)}
    text = ", ".join(f"{name}={'…' if is_secret(name) else value}" for name, value in shown.items())
    return re.sub(r"\s+", " ", text)[:80]


def _is_aggregate(code: Reach) -> bool:
    return not AGGREGATES.isdisjoint(code.words) and "over" not in code.words


def _with_named(name: str, codes: Mapping[str, Reach]) -> list[Reach]:
    """The code of a column, and those of the columns beside it that it may mean: Spark looks there, too."""
    found, open_names = dict[str, Reach](), [name]
    while open_names:
        if (each := open_names.pop()) not in found:
            found[each] = codes[each]
            open_names += [other for other in codes if other.lower() in codes[each].words and other != each]
    return list(found.values())


def _packages(reach: Reach) -> set[str]:
    """The installed packages, other than this library, that code uses."""
    return {each for each in reach.packages if each.isidentifier() and each != "spark_app" and _is_package(each)}


@cache
def _is_package(name: str) -> bool:
    module = sys.modules.get(name)
    return module is None or not is_own(file_of(module))


@cache
def _version(package: str) -> str:
    """The version of the distribution of a package, or those of all that have a part of it; empty where none has."""
    with suppress(PackageNotFoundError):
        return version(package)
    found = [each for each in distributions() if f"\n{package}/" in f"\n{each.read_text('RECORD') or ''}"]
    return ", ".join(sorted(f"{each.name} {each.version}" for each in found))


@cache
def _by_column() -> frozenset[str]:
    """The names of attributes in code that uses no rows whole."""
    of_python = {*dir(dict), *dir(list), *dir(str)} - {"replace", "count"}
    return frozenset({*BY_COLUMN, *dir(F), *dir(Column), *of_python} - ({*dir(DataFrame)} - BY_COLUMN - {*dir(F)}))

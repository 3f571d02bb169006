"""Records of a topic, whatever brought them, and the values in them."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from app.pipeline.topics import Topic

FILE: Final = "file"
"""The header with the path of the file that a line is from, where records are lines of files."""
CORRUPT: Final = "_corrupt"
INSTANT: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"
"""An instant in UTC. Spark's own reader of JSON takes `12:30` for today, and 17 for a second of 1970."""
NOT_ONE_OBJECT: Final = "not one JSON object"


def parsed(records: DataFrame, topic: Topic) -> DataFrame:
    """One row per record of a topic, with the columns of its JSON value and what is wrong with it.

    A value is malformed if it is not UTF-8, is anything but one JSON object, if a value does not have the type of its
    column, if a required column is missing or null, if it happened later than its record by more than the bound of its
    topic, or if it has one of the faults of its topic. The reason is one of a few texts.

    The bound is measured from the timestamp of the record, not from the clock: whoever reads the record, and however
    often, gives the same answer.

    Columns in: those of `RECORD`.
    Columns out: those of `RECORD`; row, a struct of the columns of the value, as far as they were read; problem, null
        for a well-formed value.
    """
    text, schema = F.col("value").cast("string"), topic.schema
    strings = StructType([*map(_instants_as_text, schema), StructField(CORRUPT, StringType())])
    read = records.withColumn("read", F.from_json(text, strings, {"columnNameOfCorruptRecord": CORRUPT}))
    row = F.struct(*[_typed(field).alias(field.name) for field in schema])
    typed = read.withColumn("row", row)
    return typed.withColumn("problem", _problem(text, topic)).drop("read")


def valid(records: DataFrame, topic: Topic, *, keep: Sequence[str] = (), counted_as: str = "rows") -> DataFrame:
    """The well-formed values of the records of a topic; the others are counted.

    Args:
        records: Records, with the columns of `RECORD`.
        topic: Their topic.
        keep: Columns of the records that are kept beside those of the value.
        counted_as: The name of the observation with the counts.
    """
    counted = judged(parsed(records, topic), counted_as=counted_as)
    return counted.where("problem IS NULL").select("row.*", *keep)


def judged(rows: DataFrame, *, counted_as: str = "rows") -> DataFrame:
    """The same rows; how many were read, and how many have a problem, is observed.

    The observation also keeps a filter from moving below the parser, where each value would be parsed twice.
    """
    malformed = F.count_if(F.col("problem").isNotNull()).alias("malformed")
    return rows.observe(counted_as, F.count(F.lit(1)).alias("read"), malformed)


def identity() -> Column:
    """The id of a record: topic-partition-offset; of a line of a file, topic-SHA-256 of its path and the line."""
    file = F.get(F.filter("headers", lambda header: header["key"] == FILE), F.lit(0))["value"]
    line = F.sha2(F.concat(*[F.coalesce(part, F.lit(b"")) for part in (file, F.col("value"))]), 256)
    place = F.when(F.col("offset").isNull(), line).otherwise(F.concat_ws("-", "partition", "offset"))
    return F.concat_ws("-", "topic", place)


def single(values: DataFrame, topic: Topic, watermark: str) -> DataFrame:
    """Each value of a topic once, if it comes no later than the watermark; repetitions are found for as long."""
    return values.withWatermark("timestamp", watermark).dropDuplicatesWithinWatermark([topic.key])


def _instants_as_text(field: StructField) -> StructField:
    return StructField(field.name, StringType()) if isinstance(field.dataType, TimestampType) else field


def _typed(field: StructField) -> Column:
    value = F.col(f"read.{field.name}")
    return F.when(value.rlike(INSTANT), value.try_cast(field.dataType)) if _is_instant(field) else value


def _is_instant(field: StructField) -> bool:
    return isinstance(field.dataType, TimestampType)


def _problem(text: Column, topic: Topic) -> Column:
    """The first thing that is wrong with a value, as text; null if nothing is."""
    is_object = F.schema_of_variant(F.try_parse_json(text)).startswith("OBJECT")
    problem = F.when(text.isNull(), F.lit("no value")).when(~F.is_valid_utf8(text), F.lit("not UTF-8"))
    problem = problem.when(_has_more(text), F.lit(NOT_ONE_OBJECT))
    problem = problem.when(
        F.col(f"read.{CORRUPT}").isNotNull(),
        F.when(is_object, F.lit("a value of another type")).otherwise(F.lit(NOT_ONE_OBJECT)),
    )
    for name in [field.name for field in topic.schema if _is_instant(field)]:
        is_other = F.col(f"read.{name}").isNotNull() & F.col(f"row.{name}").isNull()
        problem = problem.when(is_other, F.lit(f"{name} is no instant in UTC"))
    for name in topic.required:
        problem = problem.when(F.col(f"row.{name}").isNull(), F.lit(f"no {name}"))
    if topic.event_time_after_max is not None:
        latest = F.col("timestamp") + F.expr(f"INTERVAL {topic.event_time_after_max}")
        is_later = F.col(f"row.{topic.event_time}") > latest
        problem = problem.when(is_later, F.lit(f"{topic.event_time} later than its record"))
    for condition, reason in topic.faults:
        problem = problem.when(F.expr(condition), F.lit(reason))
    return problem


def _has_more(text: Column) -> Column:
    """Whether anything follows the first object, which Spark's reader of JSON would leave out silently."""
    elements = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    return ~text.rlike(r"\}\s*$") | (text.rlike(r"\}\s*\{") & ~elements.eqNullSafe(F.lit(1)))

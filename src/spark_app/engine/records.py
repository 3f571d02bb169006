"""Records of a topic, whatever brought them, and the values in them."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField

from spark_app.engine import json_types
from spark_app.engine.json_types import Value
from spark_app.engine.topics import Topic
from spark_app.vocabulary.spark_progress import UNKNOWN_FIELDS

FILE: Final = "file"
"""The header with the path of the file that a line is from, where records are lines of files."""
EXTRA: Final = "extra"
"""The column with the fields of a value that the schema of its topic does not know."""
NOT_ONE_OBJECT: Final = "not one JSON object"
KEY_TWICE: Final = "a key twice in one object"
MAX_DEPTH: Final = 100
"""How deep objects and arrays of a value may be nested. Spark's functions of variants call themselves for each level: a
thousand levels overflow the stack of a task, which ends the JVM of the executor."""
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
MAX_VALUE_BYTES: Final = 16 * 2**20
"""Bytes of a value that a variant of Spark has room for."""
_END: Final = "end of the value"
_DEEP: Final = "deep"
"""The column with the brackets of a value that are nested too deeply."""
_STRICT: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def parsed(records: DataFrame, topic: Topic) -> DataFrame:
    """One row per record of a topic, with the columns of its JSON value and what is wrong with it.

    A value is malformed if it is not UTF-8, is anything but one JSON object (RFC 8259), has a key twice, if a field is
    not of the type of its column, if a required column is missing, null or empty, if it happened later than its record
    by more than the bound of its topic, or if a condition of its topic (`malformed_if`) holds. The reason is one of
    a few texts. No value makes the parser fail.

    The types of JSON are those of the columns: `json_types.column` says which.

    The bound is measured from the timestamp of the record, not from the clock: whoever reads the record, and however
    often, gives the same answer.

    Columns in: those of `RECORD`.
    Columns out: those of `RECORD`; row, a struct of the columns of the value, as far as they were read; extra, the
        fields that the schema does not know, as text, null without one; reason, null for a well-formed value.
    """
    text = F.col("value").cast("string")
    # A parser stops at the end of the first value: what follows it must be the second element of the array.
    array = F.concat(F.lit("["), text, F.lit(f',"{_END}"]'))
    deep = records.withColumn(_DEEP, F.when(_has_room(text) & (_opened(text) > MAX_DEPTH), _deepest(text)))
    read = deep.withColumn("read", F.when(_is_parsed(text), F.try_parse_json(array)))
    row = F.struct(*[_typed(field).alias(field.name) for field in topic.schema])
    typed = read.withColumns({"row": row, EXTRA: _extra(topic)})
    return typed.withColumn("reason", _reason(text, array, topic)).drop("read", _DEEP)


def valid(
    records: DataFrame, topic: Topic, *, keep: Sequence[str] = (), counted_as: str | Observation = "rows"
) -> DataFrame:
    """The well-formed values of the records of a topic; the others are counted.

    Args:
        records: Records, with the columns of `RECORD`.
        topic: Their topic.
        keep: Columns of the records that are kept beside those of the value.
        counted_as: The name of the observation with the counts.
    """
    counted = count_malformed(parsed(records, topic), counted_as=counted_as)
    return counted.where("reason IS NULL").select("row.*", *keep)


def count_malformed(rows: DataFrame, *, counted_as: str | Observation = "rows") -> DataFrame:
    """The same rows; how many were read, are malformed, and have unknown fields, is observed.

    The observation also keeps a filter from moving below the parser, where each value would be parsed twice.
    """
    malformed = F.count_if(F.col("reason").isNotNull()).alias("malformed")
    unknown = F.count_if(F.col("reason").isNull() & F.col(EXTRA).isNotNull()).alias(UNKNOWN_FIELDS)
    return rows.observe(counted_as, F.count(F.lit(1)).alias("read"), malformed, unknown)


def identity() -> Column:
    """The id of a record: topic-partition-offset; of a line of a file, topic-SHA-256 of its path and the line."""
    file = F.get(F.filter("headers", lambda header: header["key"] == FILE), F.lit(0))["value"]
    line = F.sha2(F.concat(*[F.coalesce(part, F.lit(b"")) for part in (file, F.col("value"))]), 256)
    position = F.when(F.col("offset").isNull(), line).otherwise(F.concat_ws("-", "partition", "offset"))
    return F.concat_ws("-", "topic", position)


def single(values: DataFrame, topic: Topic, watermark: str) -> DataFrame:
    """Each value of a topic once, if it comes no later than the watermark; repetitions are found for as long."""
    return values.withWatermark(topic.event_time, watermark).dropDuplicatesWithinWatermark([topic.key])


def _is_parsed(text: Column) -> Column:
    return F.is_valid_utf8(text) & _has_room(text) & _is_shallow()


def _has_room(text: Column) -> Column:
    return F.octet_length(text) <= MAX_VALUE_BYTES


def _is_shallow() -> Column:
    """Whether no more than `MAX_DEPTH` brackets are open at once: most values do not have so many at all."""
    return F.coalesce(F.col(_DEEP), F.lit("")) == ""


def _deepest(text: Column) -> Column:
    """The brackets that are left when pairs without another inside were removed `MAX_DEPTH` times.

    Whether a bracket is closed by one of its kind is for the parser: pairs of one kind are found without a pattern,
    which would take seconds for a megabyte of brackets.
    """
    outside = F.regexp_replace(_without(text, "\\\\", '\\"'), '"[^"]*"', "")
    brackets = F.regexp_replace(outside, r"[^\[\]{}]", "")
    for brace, bracket in (("{", "["), ("}", "]")):
        brackets = F.replace(brackets, F.lit(brace), F.lit(bracket))
    return F.aggregate(F.sequence(F.lit(1), F.lit(MAX_DEPTH)), brackets, lambda left, _: _without(left, "[]"))


def _opened(text: Column) -> Column:
    return F.octet_length(text) - F.octet_length(_without(text, "{", "["))


def _without(text: Column, *parts: str) -> Column:
    for part in parts:
        text = F.replace(text, F.lit(part), F.lit(""))
    return text


def _has_half_character(text: Column) -> Column:
    r"""Whether a value has half of a pair of escapes, such as `\ud83d`, in place of which Spark would read a `?`."""
    pair = r"(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
    # A space in the place of an escaped backslash, as without it two halves could become neighbours.
    rest = F.regexp_replace(F.replace(text, F.lit("\\\\"), F.lit(" ")), pair, "")
    return text.rlike(r"(?i)\\ud[89a-f]") & rest.rlike(r"(?i)\\ud[89a-f]")


def _field(name: str, kind: str) -> Column:
    return F.try_variant_get("read", f"$[0].{name}", kind)


def _kind(name: str) -> Column:
    """What JSON type a field has: OBJECT, ARRAY, STRING, BIGINT, ...; VOID for null, null for none.

    Asked of scalars and empty arrays only: `schema_of_variant` goes through all that is in a value.
    """
    kind = F.when(_field(name, "struct<>").isNotNull(), F.lit("OBJECT"))
    kind = kind.when(_field(f"{name}[0]", "variant").isNotNull(), F.lit("ARRAY"))
    return kind.otherwise(F.schema_of_variant(_field(name, "variant")))


def _typed(field: StructField) -> Column:
    """A field of a value in the type of its column; null if it has another type, as `_reason` says."""
    return json_types.column(Value(_kind(field.name), partial(_field, field.name)), field.dataType)


def _other_type(field: StructField) -> str:
    """The reason of a value that does not have the type of its column."""
    return f"{field.name} is no {json_types.name(field.dataType)}"


def _extra(topic: Topic) -> Column:
    others = F.map_filter(
        F.try_variant_get("read", "$[0]", "map<string,string>"), lambda key, _: ~key.isin(*topic.schema.names)
    )
    return F.when(F.size(others) > 0, others)


def _reason(text: Column, array: Column, topic: Topic) -> Column:
    """The first thing that is wrong with a value, as text; null if nothing is."""
    reason = F.when(text.isNull(), F.lit("no value")).when(~F.is_valid_utf8(text), F.lit("not UTF-8"))
    reason = reason.when(~_has_room(text), F.lit(f"more than {MAX_VALUE_BYTES >> 20} MiB"))
    is_balanced = _opened(F.col(_DEEP)) * 2 == F.octet_length(_DEEP)
    reason = reason.when(~_is_shallow(), F.when(is_balanced, F.lit(TOO_DEEP)).otherwise(F.lit(NOT_ONE_OBJECT)))
    reason = reason.when(_has_half_character(text), F.lit("half a character: an escape without its pair"))
    is_whole = F.try_variant_get("read", "$[1]", "string").eqNullSafe(F.lit(_END)) & text.rlike(r"^\s*\{")
    reason = reason.when(~is_whole, F.when(_is_json(text, array), F.lit(KEY_TWICE)).otherwise(F.lit(NOT_ONE_OBJECT)))
    for field in topic.schema:
        is_given = F.coalesce(_kind(field.name), F.lit("VOID")) != "VOID"
        reason = reason.when(F.col(f"row.{field.name}").isNull() & is_given, F.lit(_other_type(field)))
        if field.name in topic.required:
            reason = reason.when(F.col(f"row.{field.name}").isNull(), F.lit(f"no {field.name}"))
            if isinstance(field.dataType, StringType):
                reason = reason.when(~F.col(f"row.{field.name}").rlike(r"\S"), F.lit(f"{field.name} is empty"))
    if topic.event_time_after_max is not None:
        latest = F.col("timestamp") + F.expr(f"INTERVAL {topic.event_time_after_max}")
        is_later = F.col(f"row.{topic.event_time}") > latest
        reason = reason.when(is_later, F.lit(f"{topic.event_time} later than its record"))
    for condition, text_of_reason in topic.malformed_if:
        reason = reason.when(F.expr(condition), F.lit(text_of_reason))
    return reason


def _is_json(text: Column, array: Column) -> Column:
    """Whether a value that is no variant is one JSON object nevertheless: only a key that comes twice is in its way."""
    elements = F.from_json(array, "array<string>", _STRICT)
    is_one = (F.size(elements) == 2) & F.get(elements, F.lit(1)).eqNullSafe(F.lit(_END))
    return text.rlike(r"^\s*\{") & F.coalesce(is_one, F.lit(False))

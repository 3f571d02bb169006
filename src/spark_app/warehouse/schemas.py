"""The schemas of records, dead letters, quarantined rows and models; the meaning of a column is its comment."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


def column(name: str, kind: DataType, comment: str) -> StructField:
    """A column with its meaning and unit."""
    return StructField(name, kind, metadata={"comment": comment})


_QUARANTINED: Final = [
    column("violations", ArrayType(StringType()), "expectations that the row violates; empty for a valid row"),
    column("raw", StringType(), "the row as it was read; only for rows with violations"),
    column("source_file", StringType(), "file that the row was read from"),
    column("date", DateType(), "day of the raw folder"),
]

_AUDIT_COLUMNS: Final = [
    column("version_rank", IntegerType(), "1 for the valid row of a key that is published, 2 and more for the others"),
    column("extra", MapType(StringType(), StringType()), "columns that are not in the schema, as text"),
    *_QUARANTINED,
]


def bronze(columns: Iterable[StructField]) -> StructType:
    """The schema of the bronze table of a source, from the typed columns that it keeps."""
    return StructType([*columns, *_AUDIT_COLUMNS])


QUARANTINE: Final = StructType(
    [
        column("source", StringType(), "source of the row"),
        *_QUARANTINED,
    ]
)

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

RECORD: Final = StructType(
    [
        column("key", BinaryType(), "key of the record; null for a line of a file"),
        column("value", BinaryType(), "value of the record, as it came"),
        column("headers", ArrayType(_HEADER), "headers of the record; of a line of a file its path, as file"),
        column("topic", StringType(), "topic of the record"),
        column("partition", IntegerType(), "partition of the topic; null for a line of a file"),
        column("offset", LongType(), "offset in the partition; null for a line of a file"),
        column("timestamp", TimestampType(), "instant of the record, or of the last change of its file, UTC"),
    ]
)

DEAD_LETTERS: Final = StructType(
    [
        column(
            "dead_letter_id",
            StringType(),
            "topic-partition-offset; of a line of a file topic-SHA-256 of path and line, of equal lines numbered",
        ),
        column("reason", StringType(), "what is wrong with the value"),
        *RECORD.fields,
        column("query", StringType(), "query that leaves the record out; null for a record that no query can parse"),
    ]
)

DEAD_LETTER_REPLAYS: Final = StructType(
    [
        column("dead_letter_id", StringType(), "key of the dead letter that was sent again"),
        column("replayed_at", TimestampType(), "instant that it was sent again, UTC"),
    ]
)

MODELS: Final = StructType(
    [
        column("model", StringType(), "name of the model, which is its pipeline: ml.refunds"),
        column("version", LongType(), "number of the version, from 1"),
        column("trained_at", TimestampType(), "instant that it was trained, UTC"),
        column("fingerprint", StringType(), "SHA-256 of what determines the model: tables, configuration, features"),
        column("artifact", StringType(), "folder of the fitted pipeline, relative to the warehouse"),
        column("algorithm", StringType(), "name of the algorithm that was chosen"),
        column("parameters", MapType(StringType(), StringType()), "its parameters that were chosen"),
        column("metrics", MapType(StringType(), DoubleType()), "scores of the cross-validation"),
        column("features", MapType(StringType(), StringType()), "type of each feature, by its name"),
        column("table_versions", MapType(StringType(), LongType()), "versions of the tables that it was trained on"),
        column("git_commit", StringType(), "commit of the program; null where it is not known"),
        column("run_id", StringType(), "the run that trained it"),
        column("trace_id", StringType(), "trace of that run; null without telemetry"),
        column("card", StringType(), "the whole model card, as JSON"),
    ]
)

MODEL_EVALUATIONS: Final = StructType(
    [
        column("model", StringType(), "name of the model"),
        column("version", LongType(), "version that was evaluated"),
        column("evaluated_at", TimestampType(), "instant of the evaluation, UTC"),
        column("run_id", StringType(), "the run that evaluated it"),
        column("metrics", MapType(StringType(), DoubleType()), "scores on the held-out rows"),
        column("evaluation", StringType(), "curves, intervals and slices, as JSON"),
    ]
)

MODEL_PROMOTIONS: Final = StructType(
    [
        column("model", StringType(), "name of the model"),
        column("promotion", LongType(), "number of the change, from 1; the last one says what is in production"),
        column("version", LongType(), "version in production from then on"),
        column("action", StringType(), "promoted or rolled_back"),
        column("promoted_at", TimestampType(), "instant of the change, UTC"),
        column("run_id", StringType(), "the run that changed it"),
    ]
)

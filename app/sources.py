"""Raw files of a day as rows of text: JSON Lines, CSV or Parquet, on any path that Spark can read.

Every source becomes the same shape: `text` (a struct with one string per known column), `extra` (columns that the
schema does not know, as a map of strings, or null), `is_malformed`, `raw` (the row as it was read) and `source_file`.
"""

import datetime
from collections import defaultdict
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from app import files
from app.errors import InputError
from app.settings import RawFormat

_CORRUPT: Final = "__corrupt"


def day_folder(root: str, source: str, date: datetime.date) -> str:
    """The folder that holds the raw files of one source and one day."""
    return f"{root.rstrip('/')}/{source}/date={date.isoformat()}"


def has_files(spark: SparkSession, folder: str) -> bool:
    """Whether a folder exists and holds at least one file that is not hidden."""
    return bool(files.sizes(spark, folder))


def read_day(spark: SparkSession, folder: str, *, schema: StructType, kind: RawFormat) -> DataFrame:
    """The raw rows of one day as text; blank lines are no rows.

    Raises:
        InputError: The folder is missing or holds no files.
    """
    found = files.sizes(spark, folder)
    if not found:
        raise InputError(f"no raw data at {folder}: deliver the day's files there, or name another raw.path")
    if kind == "json":
        return json_rows(spark.read.text(folder).withColumn("source_file", _file_name()), schema=schema)
    if kind == "csv":
        return _csv_rows(spark, list(found), schema=schema)
    table = spark.read.option("mergeSchema", "true").option("recursiveFileLookup", "false").parquet(*found)
    return _column_rows(table, schema=schema, corrupt=F.lit(None).cast("string"))


def json_rows(lines: DataFrame, *, schema: StructType) -> DataFrame:
    """JSON objects, one per line in column `value`, as rows of text.

    Columns in: value (string), source_file (string).
    """
    known = F.array(*[F.lit(name) for name in schema.names])
    fields = F.col("fields")
    unknown = F.size(F.array_except(F.map_keys(fields), known)) > 0
    parsed = lines.where(F.trim("value") != "").withColumn("fields", F.from_json("value", "map<string,string>"))
    return parsed.select(
        F.struct(*[fields[name].alias(name) for name in schema.names]).alias("text"),
        F.when(unknown, F.map_filter(fields, lambda key, _: ~key.isin(*schema.names))).alias("extra"),
        fields.isNull().alias("is_malformed"),
        F.col("value").alias("raw"),
        "source_file",
    )


def again(rows: DataFrame, *, schema: StructType) -> DataFrame:
    """Rows of a bronze table as they were read, to be judged once more.

    Columns in: those of the schema, raw, extra, source_file.
    """
    columns = F.create_map(*[item for name in schema.names for item in (F.lit(name), F.col(name).cast("string"))])
    whole = F.to_json(F.map_concat(columns, F.coalesce("extra", F.create_map().cast("map<string,string>"))))
    return json_rows(rows.select(F.coalesce("raw", whole).alias("value"), "source_file"), schema=schema)


def _csv_rows(spark: SparkSession, paths: list[str], *, schema: StructType) -> DataFrame:
    """CSV files, read by their own header each, so that a column may appear in the middle of a day."""
    by_header: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_header[files.first_line(spark, path)].append(path)
    parts = [_csv_part(spark, names, schema=schema) for names in by_header.values()]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows


def _csv_part(spark: SparkSession, paths: list[str], *, schema: StructType) -> DataFrame:
    header = spark.read.option("header", "true").csv(paths).columns
    strings = StructType([StructField(name, StringType()) for name in [*header, _CORRUPT]])
    reader = spark.read.schema(strings).option("header", "true").option("columnNameOfCorruptRecord", _CORRUPT)
    return _column_rows(reader.option("mode", "PERMISSIVE").csv(paths), schema=schema, corrupt=F.col(_CORRUPT))


def _column_rows(table: DataFrame, *, schema: StructType, corrupt: Column) -> DataFrame:
    """Rows that come with columns, as rows of text; one that does not parse has none in any column."""
    present = [name for name in table.columns if name != _CORRUPT]
    texts = {name: F.when(corrupt.isNull(), F.col(f"`{name}`").cast("string")) for name in present}
    others = [item for name in present if name not in schema.names for item in (F.lit(name), texts[name])]
    whole = F.to_json(F.struct(*[texts[name].alias(name) for name in present]))
    return table.select(
        F.struct(*[texts.get(name, F.lit(None).cast("string")).alias(name) for name in schema.names]).alias("text"),
        (F.create_map(*others) if others else F.lit(None).cast("map<string,string>")).alias("extra"),
        corrupt.isNotNull().alias("is_malformed"),
        F.coalesce(corrupt, whole).alias("raw"),
        _file_name().alias("source_file"),
    )


def _file_name() -> Column:
    return F.col("_metadata.file_name")


def bytes_of(spark: SparkSession, folder: str) -> tuple[int, int]:
    """Number of files of a folder that are not hidden, and their bytes together."""
    sizes = files.sizes(spark, folder).values()
    return len(sizes), sum(sizes)

"""Raw files of a day as rows of text: JSON Lines, CSV or Parquet, on any path that Spark can read.

Every source becomes the same shape: `text` (a struct with one string per known column), `extra` (columns that the
schema does not know, as a map of strings, or null), `is_malformed`, `raw` (the row as it was read) and `source_file`.
"""

import datetime
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import PurePosixPath
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.errors import InputError
from spark_app.formatting import quantity
from spark_app.settings import Csv, RawFormat
from spark_app.warehouse import hadoop_files

COMMAS: Final = Csv()
SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What people write between values."""
_CORRUPT: Final = "__corrupt"
_END: Final = "end of line"
_BYTE_ORDER_MARK: Final = "\ufeff"


def day_folder(root: str, source: str, date: datetime.date) -> str:
    """The folder that holds the raw files of one source and one day."""
    return f"{root.rstrip('/')}/{source}/date={date.isoformat()}"


def has_files(spark: SparkSession, folder: str) -> bool:
    """Whether a folder exists and holds at least one file that is not hidden."""
    return bool(hadoop_files.sizes(spark, folder))


def is_empty(rows: DataFrame, folder: str, *, kind: RawFormat) -> bool:
    """Whether the files of a day hold no row; a first line that is not blank says so of JSON without a Spark job."""
    spark = rows.sparkSession
    if kind == "json":
        first_lines = (hadoop_files.first_line(spark, file) for file in hadoop_files.sizes(spark, folder))
        if any(line.removeprefix(_BYTE_ORDER_MARK).strip() for line in first_lines):
            return False
    return rows.isEmpty()


def read_day(spark: SparkSession, folder: str, *, schema: StructType, kind: RawFormat, csv: Csv = COMMAS) -> DataFrame:
    """The raw rows of one day as text; blank lines are no rows, files of 0 bytes have none.

    Args:
        spark: The session.
        folder: The folder of the day.
        schema: The columns of the source.
        kind: The format of its files.
        csv: How they are written, if that is CSV.

    Raises:
        InputError: The folder is missing or holds no files, or one is not what the format says.
    """
    sizes = hadoop_files.sizes(spark, folder)
    if not sizes:
        raise InputError(f"no raw data at {folder}: deliver the day's files there, or name another raw.path")
    if kind == "json":
        lines = spark.read.text(_literal([folder]))
        return json_rows(lines.select("value", _file_name(lines)), schema=schema)
    read: Callable[..., DataFrame] = _parquet_rows
    alike: Callable[[SparkSession, str], str] = hadoop_files.parquet_schema
    if kind == "csv":
        read, alike = partial(_csv_rows, csv=csv), hadoop_files.first_line if csv.header else _one_kind
    groups = _groups([path for path, size in sizes.items() if size], lambda path: alike(spark, path))
    if not groups:
        return json_rows(spark.createDataFrame([], "value string, source_file string"), schema=schema)
    return reduce(DataFrame.unionByName, [read(spark, paths, schema=schema) for paths in groups])


def json_rows(lines: DataFrame, *, schema: StructType) -> DataFrame:
    """JSON objects, one per line in column `value`, as rows of text.

    A line that is anything but one object, or has a key twice, is malformed. Spark stops at the end of the first object
    and would drop what follows, so a line is read as the first element of an array whose second one must come next.
    It reads a number with a fraction or an exponent as a double; to find those that a double does not hold, by a
    regular expression on each line, made reading 1.5 times as expensive. Whole numbers keep every digit.

    Columns in: value (string), source_file (string).
    """
    array = F.concat(F.lit("["), "value", F.lit(f',{{"{_END}":""}}]'))
    parsed = lines.where(F.trim("value") != "").withColumn("parsed", F.from_json(array, "array<map<string,string>>"))
    first, second, fields = F.get("parsed", F.lit(0)), F.get("parsed", F.lit(1)), F.col("fields")
    known = F.array(*[F.lit(name) for name in schema.names])
    # Most rows have the columns of the schema in its order: only the others are searched for repeated and new ones.
    is_usual, keys = F.map_keys(first) == known, F.map_keys(fields)
    is_one = second[_END].isNotNull() & (is_usual | (F.size(F.array_distinct(F.map_keys(first))) == F.size(first)))
    unknown = (keys != known) & (F.size(F.array_except(keys, known)) > 0)
    return parsed.withColumn("fields", F.when(is_one, first)).select(
        F.struct(*[fields[name].alias(name) for name in schema.names]).alias("text"),
        F.when(unknown, F.map_filter(fields, lambda key, _: ~key.isin(*schema.names))).alias("extra"),
        fields.isNull().alias("is_malformed"),
        F.col("value").alias("raw"),
        "source_file",
    )


def rows_from_bronze(rows: DataFrame, *, schema: StructType) -> DataFrame:
    """Rows of a bronze table as they were read, to be judged once more.

    Columns in: those of the schema, raw, extra, source_file.
    """
    columns = F.create_map(*[item for name in schema.names for item in (F.lit(name), F.col(name).cast("string"))])
    whole = F.to_json(F.map_concat(columns, F.coalesce("extra", F.create_map().cast("map<string,string>"))))
    return json_rows(rows.select(F.coalesce("raw", whole).alias("value"), "source_file"), schema=schema)


def _groups(paths: Sequence[str], kind: Callable[[str], str]) -> list[list[str]]:
    """Files of one kind together, so that a column may come, go or change its type in the middle of a day.

    A file without a kind has no rows.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        groups[kind(path)].append(path)
    return [alike for name, alike in groups.items() if name]


def _one_kind(_: SparkSession, path: str) -> str:
    """All files without a header are alike."""
    return "no header" if path else ""


def _csv_rows(spark: SparkSession, paths: list[str], *, schema: StructType, csv: Csv) -> DataFrame:
    """CSV files of one header, or of none; a quote within quotes is doubled (RFC 4180), and a line is a row.

    Spark's reader of files ends a quoted value with its line and says nothing, so that the lines are judged here: one
    with an odd number of quotes is a part of a row, and malformed.

    Raises:
        InputError: The first line names none of the columns.
    """
    first = hadoop_files.first_line(spark, paths[0]).removeprefix(_BYTE_ORDER_MARK)
    options = {"escape": '"', "sep": csv.separator}
    names = schema.names
    if csv.header:
        names = spark.read.options(header="true", **options).csv(_literal(paths)).columns
        _require_known(names, first, paths[0], schema, csv)
    columns = ", ".join(f"{_quoted(name)} string" for name in [*names, _CORRUPT])
    lines = spark.read.text(_literal(paths))
    parsed = F.from_csv("value", columns, options | {"columnNameOfCorruptRecord": _CORRUPT})
    rows = lines.where((F.trim("value") != "") & (F.lit(not csv.header) | (F.col("value") != first)))
    rows = rows.select("value", parsed.alias("row"), _file_name(lines))
    quotes = F.octet_length("value") - F.octet_length(F.replace("value", F.lit('"')))
    is_whole = (quotes % 2 == 0) & F.col(f"row.{_CORRUPT}").isNull()
    return _column_rows(rows.withColumn("corrupt", F.when(~is_whole, F.col("value"))), names=names, schema=schema)


def _require_known(names: Sequence[str], first: str, path: str, schema: StructType, csv: Csv) -> None:
    if not first.strip() or set(names) & set(schema.names):
        return
    option = f"raw.csv.{PurePosixPath(path).parent.parent.name}"
    counts = {mark: first.count(mark) for mark in SEPARATORS}
    mark = max(counts, key=lambda each: counts[each])
    if mark != csv.separator and counts[mark] > counts.get(csv.separator, 0):
        found = f"{quantity(counts[mark], SEPARATORS[mark])} and {_number(counts.get(csv.separator, 0), csv.separator)}"
        raise InputError(f"the first line of {path} has {found}: set {option}.separator to {mark!r} in config/app.yml")
    raise InputError(
        f"the first line of {path} names none of the columns {', '.join(schema.names)}: if it is a row, set "
        f"{option}.header to false in config/app.yml"
    )


def _number(count: int, separator: str) -> str:
    name = SEPARATORS.get(separator, separator)
    return quantity(count, name) if count else f"no {name}"


def _parquet_rows(spark: SparkSession, paths: list[str], *, schema: StructType) -> DataFrame:
    """Parquet files of one schema.

    Raises:
        InputError: Two of their columns have names that differ in capitals only, which Spark takes for one.
    """
    try:
        table = spark.read.parquet(*_literal(paths))
    except AnalysisException as error:
        raise InputError(f"cannot read {paths[0]}: {error}") from error
    rows = table.select(F.struct("*").alias("row"), F.lit(None).cast("string").alias("corrupt"), _file_name(table))
    return _column_rows(rows, names=table.columns, schema=schema)


def _column_rows(rows: DataFrame, *, names: Sequence[str], schema: StructType) -> DataFrame:
    """Rows that come with columns, as rows of text; one that does not parse has none in any column.

    Columns in: row (struct with the names), corrupt (string, the text of a row that does not parse), source_file.
    """
    corrupt = F.col("corrupt")
    texts = {name: F.when(corrupt.isNull(), F.col(f"row.{_quoted(name)}").cast("string")) for name in names}
    others = [item for name in names if name not in schema.names for item in (F.lit(name), texts[name])]
    whole = F.to_json(F.struct(*[texts[name].alias(name) for name in names]))
    return rows.select(
        F.struct(*[texts.get(name, F.lit(None).cast("string")).alias(name) for name in schema.names]).alias("text"),
        (F.create_map(*others) if others else F.lit(None).cast("map<string,string>")).alias("extra"),
        corrupt.isNotNull().alias("is_malformed"),
        F.coalesce(corrupt, whole).alias("raw"),
        "source_file",
    )


def _file_name(table: DataFrame) -> Column:
    """The name of each row's file, also where the table has a column `_metadata` of its own."""
    return table.metadataColumn("_metadata")["file_name"].alias("source_file")


def _literal(paths: Sequence[str]) -> list[str]:
    """Paths that Spark takes by the letter, not as patterns."""
    return [re.sub(r"[{}\[\]*?\\]", r"\\\g<0>", path) for path in paths]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def bytes_of(spark: SparkSession, folder: str) -> tuple[int, int]:
    """Number of files of a folder that are not hidden, and their bytes together."""
    sizes = hadoop_files.sizes(spark, folder).values()
    return len(sizes), sum(sizes)

"""Raw files of a day as rows of text: JSON, CSV, Parquet, ORC or lines, on any path that Spark can read.

Every source becomes the same shape: `text` (a struct with one string per known column), `extra` (columns that the
schema does not know, as a map of strings, or null), `is_malformed`, `raw` (the row as it was read) and `source_file`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Final, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.errors import InputError
from spark_app.formatting import quantity
from spark_app.settings import Csv, Encoding, RawFormat
from spark_app.warehouse import hadoop_files
from spark_app.warehouse.hadoop_files import StoredFile

SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What people write between values."""
_CORRUPT: Final = "__corrupt"
_END: Final = "end of line"
_END_OF_FILE: Final = "end of file"
_BYTE_ORDER_MARK: Final = "\ufeff"
_LATIN: Final = "ISO-8859-1"
_WINDOWS: Final = {
    byte: text for byte in range(0x80, 0xA0) if (text := bytes([byte]).decode("windows-1252", errors="ignore"))
}
"""What windows-1252 has in the place of the control characters of ISO-8859-1; Spark decodes the latter only."""
Kind = RawFormat | Literal["orc", "text"]
KINDS: Final = ("json", "csv", "parquet", "orc", "text")
_OPTIONS: Final = {"separator": "sep"}
"""What `files(...)` calls a key of `raw.csv` that it names as Spark does."""


@dataclass(frozen=True)
class FileFormat:
    """How the files of a source are written.

    Attributes:
        kind: Their format.
        csv: How they are written, if that is CSV.
        multi_line: Whether a file of JSON is one array of objects, or one object, over many lines.
        source: The source, where its configuration says this.
        declared: Where `files(...)` says this: file and line.
    """

    kind: Kind
    csv: Csv = field(default_factory=Csv)
    multi_line: bool = False
    source: str = ""
    declared: str = ""

    def set_format(self, kind: Kind) -> str:
        """What somebody has to do whose files have another format."""
        if self.declared:
            return f"write format={kind!r} in {self.declared}"
        return f"set raw.formats.{self.source} to {kind} in config/app.yml"

    def set(self, key: str, value: object) -> str:
        """What an operator has to do to change how CSV is read."""
        if self.declared:
            return f"set {_OPTIONS.get(key, key)}={value!r} in {self.declared}"
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        return f"set raw.csv.{self.source}.{key} to {shown} in config/app.yml"


def is_empty(rows: DataFrame, files: Sequence[StoredFile], *, form: FileFormat) -> bool:
    """Whether the files of a day hold no row; a first line that is not blank says so of lines without a Spark job."""
    spark = rows.sparkSession
    if form.kind == "text" or (form.kind == "json" and not form.multi_line):
        first_lines = (hadoop_files.first_line(spark, file.path) for file in files)
        if any(line.removeprefix(_BYTE_ORDER_MARK).strip() for line in first_lines):
            return False
    return rows.isEmpty()


def read(spark: SparkSession, files: Sequence[StoredFile], *, schema: StructType, form: FileFormat) -> DataFrame:
    """The raw rows of files as text; blank lines are no rows, files of 0 bytes have none.

    Args:
        spark: The session.
        files: The files, at least one.
        schema: The columns of the source.
        form: How the files are written.

    Raises:
        InputError: One of them is not what the format says.
    """
    if form.kind in ("json", "text"):
        lines = spark.read.text(_literal(_roots(spark, files)), wholetext=form.multi_line)
        rows = lines.select("value", _file_name(lines))
        if form.kind == "text":
            return _text_rows(rows, schema=schema)
        return json_rows(_objects(rows) if form.multi_line else rows, schema=schema)
    readers: dict[str, tuple[Callable[..., DataFrame], Callable[[SparkSession, str], str]]] = {
        "csv": (partial(_csv_rows, form=form), partial(_header, csv=form.csv)),
        "parquet": (partial(_stored_rows, kind="parquet"), hadoop_files.parquet_schema),
        "orc": (partial(_stored_rows, kind="orc"), hadoop_files.orc_schema),
    }
    reader, alike = readers[form.kind]
    groups = _groups([file.path for file in files if file.bytes], lambda path: alike(spark, path))
    if not groups:
        return json_rows(spark.createDataFrame([], "value string, source_file string"), schema=schema)
    return reduce(DataFrame.unionByName, [reader(spark, paths, schema=schema) for paths in groups])


def _roots(spark: SparkSession, files: Sequence[StoredFile]) -> list[str]:
    """The folders of files that have no other ones, which Spark lists without a job for many, and the other files."""
    folders, roots = defaultdict[str, list[str]](list), list[str]()
    for file in files:
        folders[file.path.rpartition("/")[0]].append(file.path)
    for folder, paths in folders.items():
        roots += [folder] if len(hadoop_files.listed(spark, folder)) == len(paths) else paths
    return roots


def _objects(files: DataFrame) -> DataFrame:
    """The objects of whole files of JSON, each as text; a file that is neither an object nor an array is one of them.

    As of a line, a document is read as the first element of an array, so that nothing behind it is dropped.

    Columns in: value (string), source_file (string).
    """
    text = F.regexp_replace("value", f"^{_BYTE_ORDER_MARK}", "")
    both = F.from_json(F.concat(F.lit("["), text, F.lit(f',"{_END_OF_FILE}"]')), "array<string>")
    is_one = (F.size(both) == 2) & (F.get(both, F.lit(1)) == _END_OF_FILE)
    document = F.when(is_one, F.get(both, F.lit(0)))
    elements = F.when(F.substring(document, 1, 1) == "[", F.from_json(document, "array<string>"))
    known = files.where(text.rlike(r"\S")).withColumn("element", F.explode(F.coalesce(elements, F.array(text))))
    return known.select(F.coalesce("element", F.lit("null")).alias("value"), "source_file")


def _text_rows(lines: DataFrame, *, schema: StructType) -> DataFrame:
    """Lines as the values of the only column.

    Columns in: value (string), source_file (string).
    """
    [name] = schema.names
    rows = lines.where(F.trim("value") != "").select(
        F.struct(F.col("value").alias(name)).alias("row"), F.lit(None).cast("string").alias("corrupt"), "source_file"
    )
    return _column_rows(rows, names=[name], schema=schema)


def json_rows(lines: DataFrame, *, schema: StructType) -> DataFrame:
    """JSON objects, one per line in column `value`, as rows of text.

    A line that is anything but one object, or has a key twice, is malformed. Spark stops at the end of the first object
    and would drop what follows, so a line is read as the first element of an array whose second one must come next.
    It reads a number with a fraction or an exponent as a double; to find those that a double does not hold, by a
    regular expression on each line, costs 1.5 times as much to read. Whole numbers keep every digit.

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


def rows_from_bronze(rows: DataFrame, *, schema: StructType, names: Sequence[str]) -> DataFrame:
    """Rows of a bronze table as they were read, to be judged once more.

    Columns in: the names, raw, extra, source_file.

    Args:
        rows: The rows.
        schema: The columns of the source, as they are delivered.
        names: The names of these in the table.
    """
    pairs = zip(schema.names, names, strict=True)
    columns = F.create_map(*[item for key, name in pairs for item in (F.lit(key), F.col(name).cast("string"))])
    whole = F.to_json(F.map_concat(columns, F.coalesce("extra", F.create_map().cast("map<string,string>"))))
    return json_rows(rows.select(F.coalesce("raw", whole).alias("value"), "source_file"), schema=schema)


def renamed(rows: DataFrame, *, schema: StructType, names: Sequence[str]) -> DataFrame:
    """Rows of text whose columns have other names than they were delivered with."""
    if schema.names == [*names]:
        return rows
    pairs = zip(schema.names, names, strict=True)
    return rows.withColumn("text", F.struct(*[F.col("text")[key].alias(name) for key, name in pairs]))


def table_rows(rows: DataFrame, name: str, *, schema: StructType) -> DataFrame:
    """Rows of a table as rows of text; its other columns are not read.

    Args:
        rows: The rows.
        name: What is the file of each row.
        schema: The columns of the source.

    Raises:
        InputError: The table lacks one of the columns.
    """
    known = {column.lower() for column in rows.columns}
    if lacking := [column for column in schema.names if column.lower() not in known]:
        raise InputError(
            f"{name} has no column {', '.join(lacking)}, which the source declares: it has {', '.join(rows.columns)}"
        )
    row = F.struct(*[F.col(quoted(column)).alias(column) for column in schema.names])
    alike = rows.select(row.alias("row"), F.lit(None).cast("string").alias("corrupt"), F.lit(name).alias("source_file"))
    return _column_rows(alike, names=schema.names, schema=schema)


def _groups(paths: Sequence[str], kind: Callable[[str], str]) -> list[list[str]]:
    """Files of one kind together, so that a column may come, go or change its type in the middle of a day.

    A file without a kind has no rows.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        groups[kind(path)].append(path)
    return [alike for name, alike in groups.items() if name]


def _header(spark: SparkSession, path: str, *, csv: Csv) -> str:
    """The first line of a file that is not blank; all files without a header are alike."""
    return hadoop_files.first_line(spark, path, encoding=csv.encoding) if csv.header else "no header"


def _csv_rows(spark: SparkSession, paths: list[str], *, schema: StructType, form: FileFormat) -> DataFrame:
    """CSV files of one header, or of none; a quote within quotes is doubled (RFC 4180), and a line is a row.

    Spark's reader of files ends a quoted value with its line and says nothing, so that the lines are judged here: one
    with an odd number of quotes is a part of a row, and malformed.

    Raises:
        InputError: The first line names none of the columns.
    """
    csv, names = form.csv, schema.names
    first = hadoop_files.first_line(spark, paths[0], encoding=csv.encoding).removeprefix(_BYTE_ORDER_MARK)
    options = {"escape": csv.quote, "quote": csv.quote, "sep": csv.separator}
    if csv.header:
        names = _names(spark.read.options(header="true", **options), paths, csv.encoding)
        _require_known(names, first, paths[0], schema, form)
    columns = ", ".join(f"{quoted(name)} string" for name in [*names, _CORRUPT])
    lines = spark.read.text(_literal(paths))
    lines = lines.select(_decoded(csv.encoding).alias("value"), _file_name(lines))
    parsed = F.from_csv("value", columns, options | {"columnNameOfCorruptRecord": _CORRUPT})
    rows = lines.where((F.trim("value") != "") & (F.lit(not csv.header) | (F.col("value") != first)))
    rows = rows.select("value", parsed.alias("row"), "source_file")
    quotes = F.octet_length("value") - F.octet_length(F.replace("value", F.lit(csv.quote)))
    is_whole = (quotes % (2 * len(csv.quote.encode())) == 0) & F.col(f"row.{_CORRUPT}").isNull()
    return _column_rows(rows.withColumn("corrupt", F.when(~is_whole, F.col("value"))), names=names, schema=schema)


def _names(reader: DataFrameReader, paths: list[str], encoding: Encoding) -> list[str]:
    """The columns that the first of some files names."""
    if encoding == "UTF-8":
        return reader.csv(_literal(paths)).columns
    names = reader.options(encoding=_LATIN).csv(_literal(paths)).columns
    return [name.translate(_WINDOWS) if encoding == "windows-1252" else name for name in names]


def _decoded(encoding: Encoding) -> Column:
    """The text of a line, whose bytes Spark takes for UTF-8."""
    if encoding == "UTF-8":
        return F.col("value")
    text = F.decode(F.col("value").cast("binary"), _LATIN)
    if encoding == _LATIN:
        return text
    return F.translate(text, "".join(map(chr, _WINDOWS)), "".join(_WINDOWS.values()))


def _require_known(names: Sequence[str], first: str, path: str, schema: StructType, form: FileFormat) -> None:
    if not first.strip() or set(names) & set(schema.names):
        return
    csv = form.csv
    if first.lstrip().startswith(("{", "[")):
        raise InputError(f"the first line of {path} is JSON, and is read as CSV: {form.set_format('json')}")
    counts = {mark: first.count(mark) for mark in SEPARATORS}
    mark = max(counts, key=lambda each: counts[each])
    if mark != csv.separator and counts[mark] > counts.get(csv.separator, 0):
        found = f"{quantity(counts[mark], SEPARATORS[mark])} and {_number(counts.get(csv.separator, 0), csv.separator)}"
        raise InputError(f"the first line of {path} has {found}: {form.set('separator', mark)}")
    raise InputError(
        f"the first line of {path} names none of the columns {', '.join(schema.names)}: if it is a row, "
        f"{form.set('header', False)}"
    )


def _number(count: int, separator: str) -> str:
    name = SEPARATORS.get(separator, separator)
    return quantity(count, name) if count else f"no {name}"


def _stored_rows(spark: SparkSession, paths: list[str], *, schema: StructType, kind: Kind) -> DataFrame:
    """Files of one schema, of a format that stores it.

    Raises:
        InputError: Two of their columns have names that differ in capitals only, which Spark takes for one.
    """
    try:
        table = spark.read.format(kind).load(_literal(paths))
    except AnalysisException as error:
        raise InputError(f"cannot read {paths[0]}: {error}") from error
    rows = table.select(F.struct("*").alias("row"), F.lit(None).cast("string").alias("corrupt"), _file_name(table))
    return _column_rows(rows, names=table.columns, schema=schema)


def _column_rows(rows: DataFrame, *, names: Sequence[str], schema: StructType) -> DataFrame:
    """Rows that come with columns, as rows of text; one that does not parse has none in any column.

    Columns in: row (struct with the names), corrupt (string, the text of a row that does not parse), source_file.
    """
    corrupt = F.col("corrupt")
    texts = {name: F.when(corrupt.isNull(), F.col(f"row.{quoted(name)}").cast("string")) for name in names}
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


def quoted(name: str) -> str:
    """A name of a column as an expression takes it by the letter."""
    return "`" + name.replace("`", "``") + "`"

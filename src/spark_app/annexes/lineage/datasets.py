"""What a query reads and writes, by its plan: places as OpenLineage names them, with columns where the plan has them.

Names follow OpenLineage's naming conventions: the namespace is the storage, `s3://bucket`, the name the path in it. A
table whose files the plan does not name is in the namespace of the job: the catalog of the same Spark.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from spark_app.eventlog.model.operators import Operator
from spark_app.eventlog.model.plan_names import (
    COMMAND,
    DELTA_LOG,
    INSERT_INTO_FILES,
    LOCATION,
    PATHS,
    SCAN_OF_TABLE,
)
from spark_app.eventlog.model.targets import Target
from spark_app.redaction import redacted

READ_SCHEMA: Final = "ReadSchema"
_PATHS: Final = re.compile(rf"{PATHS}(.*)\]", re.DOTALL)
"""A location of a scan of files; Spark cuts long lists of paths and ends them with `...`."""
_TABLE: Final = re.compile(SCAN_OF_TABLE)
_WRITTEN: Final = re.compile(r"\[([^\[\]]*)\]$")
"""The names of the columns that a command writes: the end of its arguments."""
_CUT: Final = re.compile(r"\.\.\. (?:\d+ more fields?)?")
_FILE: Final = "file"
_WITHOUT_SLASH: Final = ("s3", "gs", "abfss", "abfs", "wasbs", "wasb")
"""Stores whose names are keys."""
_SAME: Final = {"s3a": "s3", "s3n": "s3"}
_STREAM: Final = re.compile(r"\w+(?:Source|Sink)\[(.*/.*)\]", re.DOTALL)
"""What Spark calls a source or a sink of a streaming query in files or a Delta table: `FileStreamSource[file:/in]`."""
_PART: Final = re.compile(r"(?:/[^/=]+=[^/]*)*(?:/part-\d{5,}-[0-9a-f]{8}-[^/]*)?/*$")
"""The end of a path of a partition, or of a file that Spark wrote, whose name is another one at each write."""
_INTERNAL: Final = (DELTA_LOG, "/_spark_metadata", "/.hoodie")
"""Parts of paths that hold the state of a table, not its rows."""
_DELTA_LOG: Final = re.compile(rf"((?:\w+:)?/[^\[\],]*?)/{DELTA_LOG}\b")
_WRITES: Final = (f"{COMMAND}{INSERT_INTO_FILES}", INSERT_INTO_FILES)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with the type as Spark writes it; None where only the name is known."""

    name: str
    type: str | None


class Field(NamedTuple):
    """A column of another dataset."""

    namespace: str
    name: str
    column: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table, a folder or a topic; without columns where the log does not have all of them.

    Attributes:
        namespace, name: What it is known by everywhere.
        columns: Its columns.
        table: Its name in the catalog, if it is known by its path.
        origins: The columns of which the values of its own are computed, as far as they are known, by column.
    """

    namespace: str
    name: str
    columns: tuple[Column, ...] = ()
    table: str | None = None
    origins: tuple[tuple[str, tuple[Field, ...]], ...] = ()


def of_target(target: Target, job_namespace: str) -> Dataset | None:
    """What a query writes; None for a table or a topic whose server the log does not name."""
    if target.path is not None:
        return replace(of_location(target.path), table=target.table)
    if target.table is not None:
        return Dataset(job_namespace, redacted(target.table))
    return Dataset(f"kafka://{target.broker}", target.name) if target.broker else None


def of_location(location: str) -> Dataset:
    """The dataset at a path or a URI: the table or the folder, if it is a partition or a part file of it."""
    location = _PART.sub("", location) or location
    parts = urlsplit(location)
    if parts.scheme in ("", _FILE):
        return Dataset(_FILE, redacted(parts.path.rstrip("/") or "/"))
    scheme = _SAME.get(parts.scheme, parts.scheme)
    user, _, host = parts.netloc.rpartition("@")
    authority = f"{user}@{host}" if user and ":" not in user and scheme.startswith(("abfs", "wasb")) else host
    path = parts.path.rstrip("/") or "/"
    return Dataset(f"{scheme}://{authority}", redacted(path.lstrip("/") or "/" if scheme in _WITHOUT_SLASH else path))


def inputs(root: Operator, job_namespace: str) -> Iterator[Dataset]:
    """What the scans of a plan read, with the columns that they read, which are not always all of the table."""
    for _, operator in root.walk():
        columns = read_columns(operator.metadata.get(READ_SCHEMA, ""))
        table = _TABLE.match(operator.name)
        for path in _paths(operator):
            yield replace(of_location(path), columns=columns, table=table and table[1])
        if table and LOCATION not in operator.metadata:
            yield Dataset(job_namespace, redacted(table[1]), columns)


def delta_path(root: Operator) -> str | None:
    """The path of the Delta table whose log a plan reads; None if it reads none."""
    for _, operator in root.walk():
        found = _DELTA_LOG.search(operator.metadata.get(LOCATION, operator.name))
        if found:
            return found[1]
    return None


def of_stream(description: str) -> Dataset | None:
    """What a source or a sink of a streaming query reads or writes; None without a path, as for topics of Kafka."""
    match = _STREAM.fullmatch(description)
    return of_location(match[1]) if match else None


def _paths(operator: Operator) -> list[str]:
    """The paths of a scan of files, without those that hold the state of a table."""
    paths = _PATHS.fullmatch(operator.metadata.get(LOCATION, ""))
    found = paths[1].split(", ") if paths else []
    return [path for path in found if path not in ("", "...") and not any(part in path for part in _INTERNAL)]


def read_columns(schema: str) -> tuple[Column, ...]:
    """The columns of `struct<a:int,b:struct<c:string>>`; none if Spark has cut the text."""
    if not (schema.startswith("struct<") and schema.endswith(">")) or _CUT.search(schema):
        return ()
    fields = [field.partition(":") for field in _split(schema[len("struct<") : -1])]
    return tuple(Column(name, kind) for name, colon, kind in fields if colon)


def _split(fields: str) -> Iterator[str]:
    """The parts between commas that are in no brackets: `a:int`, `b:decimal(10,2)`."""
    depth = start = 0
    for position, letter in enumerate(fields):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            yield fields[start:position]
            start = position + 1
    if fields[start:]:
        yield fields[start:]


def written_columns(root: Operator) -> tuple[Column, ...]:
    """The columns that a plan writes to files, without types; none for other commands, or if Spark has cut the text."""
    for _, operator in root.walk():
        names = _WRITTEN.search(operator.text) if operator.name.startswith(_WRITES) else None
        if names and names[1] and not _CUT.search(names[1]):
            return tuple(Column(name, None) for name in names[1].split(", "))
    return ()

"""The rows of a source in a table that others write: Delta, Parquet, ORC, or a name of a catalog."""

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, StructType, TimestampNTZType, TimestampType

from spark_app.errors import InputError
from spark_app.settings import Settings
from spark_app.warehouse import delta_log, raw_files
from spark_app.warehouse.freshness import versions
from spark_app.warehouse.hadoop_files import FileReader
from spark_app.warehouse.origin import RawDay, declared_in
from spark_app.warehouse.periods import ROWS

Kind = Literal["delta", "parquet", "orc", "catalog"]
KINDS: Final = ("delta", "parquet", "orc")
"""The formats of a table in a folder."""
_VERSION: Final = "version "
_DAYS: Final = (DateType, TimestampType, TimestampNTZType, StringType)


@dataclass(frozen=True)
class LakeTable:
    """A table that others write, as `table(...)` declares it.

    Attributes:
        name: Its folder or URI, or its name in a catalog.
        by: The column that says which day a row belongs to: a date, an instant (UTC), or text that begins with
            YYYY-MM-DD.
        kind: Its format, or `catalog`.
        declared: Where it is declared: file and line.
    """

    name: str
    by: str
    kind: Kind
    declared: str

    def problem(self, schema: StructType) -> str | None:
        """See `DeclaredOrigin`."""
        return None

    def lacks(self) -> None:
        """See `DeclaredOrigin`."""

    def of(self, settings: Settings) -> "SourceTable":
        """See `DeclaredOrigin`."""
        return SourceTable(self.name.rstrip("/"), self.by, self.kind, settings.raw_path.rstrip("/"), self.declared)


@dataclass(frozen=True)
class SourceTable:
    """The same, as a run reads it.

    Attributes:
        name: Its folder or URI, or its name in a catalog.
        by: The column that says which day a row belongs to.
        kind: Its format, or `catalog`.
        root: The folder that its folder is below, unless that is absolute.
        declared: Where it is declared: file and line.
    """

    content_name: ClassVar[str] = ROWS

    name: str
    by: str
    kind: Kind
    root: str = ""
    declared: str = ""

    @property
    def path(self) -> str | None:
        """See `Origin`."""
        if self.kind == "catalog":
            return None
        is_absolute = self.name.startswith("/") or ":/" in self.name
        return self.name if is_absolute else f"{self.root}/{self.name}"

    @property
    def facts(self) -> Mapping[str, str]:
        """See `Origin`."""
        return {"table": self.name, "by": self.by, "format": self.kind}

    def where(self, day: datetime.date) -> str:
        """See `Origin`."""
        return f"{self._place} where {self.by} is {day}"

    def is_delivered(self, spark: SparkSession, day: datetime.date) -> bool:
        """See `Origin`."""
        return not self._rows(spark, day).isEmpty()

    def content(self, reader: FileReader, day: datetime.date, known: str = "") -> str | None:
        """Names the version of a Delta table, or the files of a folder; of other tables nobody can tell. See `Origin`.

        A Delta table that was only compacted since, or whose commits since are about other days by their partitions or
        statistics, has the same content.
        """
        if self.path is None or not reader.reaches(self.path):
            return None
        if self.kind == "delta":
            return self._delta_content(reader, day, known)
        folder = f"{self.path}/{self.by}={day}"
        seen = sorted(_files(reader, folder if reader.listed(folder) else self.path))
        return hashlib.sha256(repr(seen).encode()).hexdigest()[:16] if seen else ""

    def read(self, spark: SparkSession, day: datetime.date, schema: StructType) -> RawDay:
        """See `Origin`."""
        with declared_in(self.declared):
            rows = self._rows(spark, day)
            return RawDay(raw_files.table_rows(rows, self._place, schema=schema), rows.isEmpty)

    @property
    def _place(self) -> str:
        return self.path or self.name

    def _rows(self, spark: SparkSession, day: datetime.date) -> DataFrame:
        try:
            rows = self._table(spark)
        except AnalysisException as error:
            raise InputError(f"cannot read the table {self._place}: {' '.join(str(error).split())}") from error
        return rows.where(of_day(rows, self.by, day, self._place))

    def _table(self, spark: SparkSession) -> DataFrame:
        if self.kind == "catalog":
            return spark.table(self.name)
        reader = spark.read.format(self.kind)
        if self.kind == "delta" and (version := delta_log.last_version(spark, self._place)) >= 0:
            reader = reader.option("versionAsOf", version)  # so that each job of the run reads the same rows
        return reader.load(self._place)

    def _delta_content(self, reader: FileReader, day: datetime.date, known: str) -> str:
        log = f"{self.path}/_delta_log"
        commits = versions(file.name for file in reader.listed(log))
        if not commits:
            return ""
        newest, was = commits[-1], known.removeprefix(_VERSION)
        if was.isdecimal() and int(was) <= newest and {*range(int(was) + 1, newest + 1)} <= {*commits}:
            since = (reader.text(f"{log}/{version:020d}.json") for version in range(int(was) + 1, newest + 1))
            if not any(commit is None or _changes(commit, self.by, str(day)) for commit in since):
                return known
        return f"{_VERSION}{newest}"


def of_day(rows: DataFrame, by: str, day: datetime.date, table: str) -> Column:
    """Whether a row belongs to a day.

    Args:
        rows: The rows.
        by: Their column that says so.
        day: The day.
        table: What messages call the rows.

    Raises:
        InputError: There is no such column, or it has no days.
    """
    kind = _kind_of(rows, by, table)
    name = raw_files.quoted(by)
    first, following = F.lit(str(day)), F.lit(str(day + datetime.timedelta(days=1)))
    if isinstance(kind, DateType):
        return F.col(name) == first.cast(kind)
    return (F.col(name) >= first.cast(kind)) & (F.col(name) < following.cast(kind))


def _kind_of(rows: DataFrame, by: str, table: str) -> DataType:
    kinds = {field.name.lower(): field.dataType for field in rows.schema}
    if by.lower() not in kinds:
        raise InputError(f"{table} has no column {by}, which says the day of a row: it has {', '.join(rows.columns)}")
    kind = kinds[by.lower()]
    if not isinstance(kind, _DAYS):
        raise InputError(f"{by} of {table} is {kind.simpleString()}: the day of a row is a date, a timestamp or text")
    return kind


def _files(reader: FileReader, folder: str) -> Iterator[tuple[str, int, int]]:
    """The files in a folder and those below it: path, size in bytes, and when each was written."""
    for each in reader.listed(folder):
        if each.is_file:
            yield each.path.removeprefix("file:"), each.bytes, each.modified_ms
        else:
            yield from _files(reader, each.path)


def _changes(commit: str, by: str, day: str) -> bool:
    """Whether a commit of Delta may have changed rows of a day."""
    for line in commit.splitlines():
        action: dict[str, Any] = json.loads(line) if line else {}
        file = action.get("add") or action.get("remove")
        if file and file.get("dataChange", True) and _may_have(file, by, day):
            return True
    return False


def _may_have(file: dict[str, Any], by: str, day: str) -> bool:
    """Whether a file may have rows of a day, by its partition or its statistics; where these say nothing, it may."""
    partition = file.get("partitionValues") or {}
    if by in partition:
        return str(partition[by])[:10] == day
    stats = json.loads(file.get("stats") or "{}")
    least, largest = stats.get("minValues", {}).get(by), stats.get("maxValues", {}).get(by)
    if not (isinstance(least, str) and isinstance(largest, str)):
        return True
    return least[:10] <= day <= largest[:10]

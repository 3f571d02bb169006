"""Delta tables of a warehouse: where they are, their rows now and earlier, their history, and their upkeep."""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, StructField, StructType

from spark_app.errors import UsageError
from spark_app.local_files import exclusive_lock, local_path
from spark_app.warehouse import delta_log, schemas
from spark_app.warehouse.lease import lease
from spark_app.warehouse.periods import CHANGES, Periods, periods_of
from spark_app.warehouse.s3_object import S3Object

QUARANTINE: Final = "quarantine"
PERIOD: Final = "_period"
"""The column with the day, in the table of what each day has changed in a state."""
DELETED: Final = "_deleted"
"""The column that says whether a change of a state deletes its row: of changes, never of the table."""
LOCKS: Final = "_locks"
"""The folder of the warehouse with the locks; a name that is no table's."""
MIN_RETAIN_DAYS: Final = 7
CONSTRAINT: Final = "delta.constraints."
"""How the properties of a table begin in which Delta keeps its CHECK constraints."""


@dataclass(frozen=True)
class Table:
    """A Delta table as the pipeline that writes it declares it.

    Attributes:
        name: Its folder in the warehouse, and its name on the command line.
        schema: Its columns; the comment of each states its meaning and unit.
        partitions: Columns that its files are partitioned by; the first is the day, where there are days.
        source: The raw source whose rows it holds, valid or not; None for every other table.
        key: Of a state, the columns that identify a row.
        validity: Of a history, the columns with the time in which a row is true: from when, and until when.
    """

    name: str
    schema: StructType
    partitions: tuple[str, ...] = ()
    source: str | None = None
    key: tuple[str, ...] = ()
    validity: tuple[str, str] | None = None

    @property
    def day(self) -> str | None:
        """The column with the day that its files are partitioned by; None where there are no days."""
        first = self.partitions[0] if self.partitions else None
        return first if first and self.schema[first].dataType == DateType() else None


@dataclass(frozen=True)
class HistoryEntry:
    """One version of a table."""

    version: int
    at: datetime.datetime
    operation: str
    rows: int | None


@dataclass(frozen=True)
class Compaction:
    """What a compaction did to the files of a table."""

    table: str
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int

    def __str__(self) -> str:
        return f"{self.table}: compacted {self.files_removed} files into {self.files_added}"


@dataclass(frozen=True)
class TableFacts:
    """A table as `spark-app tables` shows it; None stands for what is unknown."""

    name: str
    path: str
    exists: bool
    version: int | None = None
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    last_change: datetime.datetime | None = None
    history: list[HistoryEntry] = field(default_factory=list)


class Warehouse:
    """The Delta tables under one root folder.

    Attributes:
        spark: The session that reads and writes them.
        root: A path or URI.
        tables: The declared tables by name.
    """

    def __init__(self, spark: SparkSession, root: str, tables: Iterable[Table]) -> None:
        """Declares the tables; nothing is read or created."""
        self.spark = spark
        self.root = root.rstrip("/")
        self.tables: Mapping[str, Table] = {table.name: table for table in tables}

    @cached_property
    def periods(self) -> Periods:
        """What is known of the days of the tables."""
        return periods_of(self.spark, self.root)

    def declared(self, name: str) -> Table:
        """A table, or that of what each day has changed in a state."""
        if not name.startswith(f"{CHANGES}/"):
            return self.tables[name]
        columns = self.tables[name.removeprefix(f"{CHANGES}/")].schema.fields
        further = [StructField(DELETED, BooleanType()), StructField(PERIOD, DateType())]
        return Table(name, StructType([*columns, *further]), (PERIOD,))

    def path(self, name: str) -> str:
        """The folder of a table.

        Raises:
            UsageError: No pipeline declares a table of this name.
        """
        if name.startswith(f"{CHANGES}/"):
            return f"{self.root}/{name}"
        if name not in self.tables:
            raise UsageError(f"no table {name!r}; the tables are {', '.join([*self.tables, QUARANTINE])}")
        return f"{self.root}/{name}"

    def exists(self, name: str) -> bool:
        """Whether a table has at least one commit."""
        return delta_log.last_version(self.spark, self.path(name)) >= 0

    def existing(self) -> list[str]:
        """The names of the tables that exist."""
        return [name for name in self.tables if self.exists(name)]

    def table(self, name: str, *, version: int | None = None) -> DataFrame:
        """A table as it is now or at a version; without rows if it was never written."""
        if not self.exists(name):
            return self.spark.createDataFrame([], self.declared(name).schema)
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path(name))

    def replace_where(self, rows: DataFrame, name: str, condition: str, tag: str) -> None:
        """Replaces the rows that meet a condition, in one commit with a tag; the first write creates the table.

        Columns that a newer program declares are added to the table; rows of before have none of their values.
        """
        writer = self._writer(rows, name, tag).mode("overwrite").option("mergeSchema", "true")
        writer.option("replaceWhere", condition).save(self.path(name))

    def replace_all(self, rows: DataFrame, name: str, tag: str) -> None:
        """Replaces all rows of a table, in one commit with a tag; the first write creates the table."""
        self._writer(rows, name, tag).mode("overwrite").option("mergeSchema", "true").save(self.path(name))

    def create(self, rows: DataFrame, name: str, tag: str) -> None:
        """Creates a table with rows, in one commit with a tag.

        Raises:
            AnalysisException: The table exists (`DELTA_PATH_EXISTS`).
        """
        self._writer(rows, name, tag).mode("error").save(self.path(name))

    def create_if_missing(self, name: str) -> None:
        """Creates a table without rows, unless it exists; other processes that would create it wait."""
        with self.creation_lock(name):
            if self.exists(name):
                return
            try:
                self.create(self.table(name), name, delta_log.NO_ROWS)
            except AnalysisException as error:
                if error.getCondition() != delta_log.PATH_EXISTS:  # another process was faster, where there is no lock
                    raise

    def append(self, rows: DataFrame, name: str) -> None:
        """Appends rows to a table in one commit; columns that a newer program declares are added to it."""
        writer = rows.to(self.tables[name].schema).write.format("delta").mode("append")
        writer.option("mergeSchema", "true").save(self.path(name))

    def merge(self, rows: DataFrame, name: str, condition: str, *, is_upsert: bool = True) -> None:
        """Inserts rows (alias `new`) into a table (alias `old`); columns that only they have are added to it.

        Args:
            rows: The rows; with the column `DELETED`, those that it is true of delete a row.
            name: The table, which exists.
            condition: When a new row stands for an old one.
            is_upsert: Whether it replaces the old one then; else the old one stays.
        """
        old = DeltaTable.forPath(self.spark, self.path(name)).alias("old")
        merge = old.merge(rows.alias("new"), condition).withSchemaEvolution()
        if DELETED in rows.columns:
            values = {f"`{name}`": f"new.`{name}`" for name in rows.columns if name != DELETED}
            merge = merge.whenMatchedDelete(f"new.{DELETED}").whenMatchedUpdate(set=dict[str, str | Column](values))
            merge.whenNotMatchedInsert(f"NOT new.{DELETED}", dict[str, str | Column](values)).execute()
            return
        merge = merge.whenMatchedUpdateAll() if is_upsert else merge
        merge.whenNotMatchedInsertAll().execute()

    def checked(self, rows: DataFrame, name: str) -> DataFrame:
        """The same rows, which fail where the table would refuse to be written: by its constraints, and at a null.

        Args:
            rows: Rows for the table.
            name: The table; one that does not exist refuses nothing.
        """
        if not self.exists(name):
            return rows
        table = DeltaTable.forPath(self.spark, self.path(name))
        properties = table.detail().select("properties").collect()[0].properties
        wanted = {text: text for key, text in properties.items() if key.lower().startswith(CONSTRAINT)}
        required = [
            column.name for column in table.toDF().schema if not column.nullable and column.name in rows.columns
        ]
        wanted |= {f"{column} IS NOT NULL": f"`{column}` IS NOT NULL" for column in required}
        for what, condition in wanted.items():
            refusal = F.raise_error(F.lit(f"the table {name} refuses a row: CHECK ({what})"))
            rows = rows.where(F.when(F.expr(condition), F.lit(True)).otherwise(refusal.cast("boolean")))
        return rows

    def partition_filter(self, name: str, date: datetime.date) -> str:
        """The condition that selects the rows of one day in a table that is partitioned by days."""
        return f"{self.declared(name).partitions[0]} = '{date}'"

    def days(self, name: str, first: datetime.date, last: datetime.date) -> set[datetime.date]:
        """The days, of those from the first to the last, that a table has rows of, which is partitioned by days."""
        day = F.col(self.tables[name].partitions[0])
        return {row[0] for row in self.table(name).where(day.between(first, last)).select(day).distinct().collect()}

    def lock(self, key: str, *, on_wait: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Holds the lock of a key, which a second process waits for.

        The lock of a killed process is free at once in a local folder, and after half a minute on `s3a://`. Elsewhere
        there are no locks: Delta's conflict check alone keeps two writers right.

        Args:
            key: Names what is locked: a pipeline and its slice.
            on_wait: Is called once if another process holds the lock.
        """
        root = local_path(self.root)
        if root is None and self.root.startswith("s3a://"):
            return lease(S3Object(self.spark, f"{self.root}/{LOCKS}/{key}.lock"), key, on_wait=on_wait)
        return exclusive_lock(None if root is None else root / LOCKS / f"{key}.lock", on_wait=on_wait)

    def creation_lock(self, name: str) -> AbstractContextManager[None]:
        """Keeps other processes from creating a table at the same time; does nothing once it exists.

        Where there are no locks, Delta lets one of several creators commit, and the others try again.
        """
        return exclusive_lock(None) if self.exists(name) else self.lock(f"create-{name}")

    def open(self, name: str, *, version: int | None = None, as_of: datetime.datetime | None = None) -> DataFrame:
        """A table now, at a version or at an instant; `quarantine` is the view of all rows with violations.

        Raises:
            UsageError: The table is unknown, does not exist, or did not exist then; or the view has no versions.
        """
        if name == QUARANTINE:
            if version is not None or as_of is not None:
                raise UsageError("quarantine is a view without versions: look at an old version of bronze instead")
            return self.quarantine()
        path = self.path(name)
        if not self.exists(name):
            raise _missing(name)
        if as_of is not None:
            version = self._version_at(path, as_of)
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(path)

    def quarantine(self) -> DataFrame:
        """Every raw row that violates an expectation, with its violations, of all sources that were read.

        Columns out: source, violations, raw, source_file, date.

        Raises:
            UsageError: No source was read yet.
        """
        parts = [
            self.table(table.name).withColumn("source", F.lit(table.source))
            for table in self.tables.values()
            if table.source is not None and self.exists(table.name)
        ]
        if not parts:
            raise _missing(QUARANTINE)
        invalid = [part.where(F.size("violations") > 0).select(*schemas.QUARANTINE.names) for part in parts]
        return reduce(DataFrame.unionByName, invalid)

    def facts(self) -> list[TableFacts]:
        """Every declared table with its history, newest version first."""
        return [self._facts(name) for name in self.tables]

    def optimize(self, name: str) -> Compaction:
        """Compacts the small files of a table; a writer that commits first is no reason to fail."""
        row = DeltaTable.forPath(self.spark, self.path(name)).optimize().executeCompaction().collect()[0]
        removed, added = row.metrics.filesRemoved, row.metrics.filesAdded
        return Compaction(
            name,
            row.metrics.numFilesRemoved,
            row.metrics.numFilesAdded,
            removed.totalSize,
            added.totalSize,
        )

    def vacuum(self, name: str, *, retain_days: int) -> str:
        """Deletes files that only versions older than so many days need; those versions are then unreadable.

        A table that is younger has no such files. Delta is not asked to look for them: that takes some 20 Spark jobs.

        Raises:
            UsageError: Fewer days than are safe for readers and runs in flight.
        """
        if retain_days < MIN_RETAIN_DAYS:
            raise UsageError(f"retain at least {MIN_RETAIN_DAYS} days: running jobs may still read younger files")
        created, now = delta_log.created_at(self.spark, self.path(name)), datetime.datetime.now(datetime.UTC)
        if created is not None and created > now - datetime.timedelta(days=retain_days):
            return f"{name}: no version is older than {retain_days} days"
        beside = f"{CHANGES}/{name}"
        for each in [name, *([beside] if self.tables[name].key and self.exists(beside) else [])]:
            DeltaTable.forPath(self.spark, self.path(each)).vacuum(retain_days * 24)
        return f"{name}: deleted the files that only versions older than {retain_days} days need"

    def _writer(self, rows: DataFrame, name: str, tag: str) -> DataFrameWriter:
        table = self.declared(name)
        writer = rows.to(table.schema).write.format("delta")  # the comments of the columns are in the schema
        return writer.partitionBy(*table.partitions).option("userMetadata", tag)

    def _version_at(self, path: str, instant: datetime.datetime) -> int:
        """The version that was the newest at an instant, which may be later than the last commit."""
        oldest = None
        for commit in delta_log.history(self.spark, path):
            if commit.at <= instant:
                return commit.version
            oldest = commit
        since = f"; its first version is from {oldest.at:%Y-%m-%dT%H:%M:%SZ}" if oldest else ""
        raise UsageError(f"{path} has no version that old{since}")

    def _facts(self, name: str) -> TableFacts:
        path = self.path(name)
        if not self.exists(name):
            return TableFacts(name, path, exists=False)
        detail: Any = DeltaTable.forPath(self.spark, path).detail().collect()[0]
        commits = delta_log.history(self.spark, path)
        history = [HistoryEntry(commit.version, commit.at, commit.operation, commit.rows) for commit in commits]
        return TableFacts(
            name,
            path,
            exists=True,
            version=history[0].version if history else None,
            rows=self.table(name).count(),
            files=detail.numFiles,
            bytes=detail.sizeInBytes,
            last_change=history[0].at if history else None,
            history=history,
        )


def same_key(key: Sequence[str]) -> str:
    """The SQL condition that a row of `old` and one of `new` have the same key; nulls are equal."""
    return " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in key)


def kept(rows: DataFrame) -> DataFrame:
    """Changes without those that delete a row, as rows of their table."""
    if DELETED not in rows.columns:
        return rows
    return rows.where(~F.coalesce(DELETED, F.lit(False))).drop(DELETED)


def _missing(name: str) -> UsageError:
    return UsageError(f"table {name} does not exist yet: run `spark-app etl --date YYYY-MM-DD` first")

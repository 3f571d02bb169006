"""Delta tables of the warehouse: what they are, their commits and history, and their upkeep."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app import commits, folders, making, schemas
from app.errors import UsageError
from app.settings import Settings

QUARANTINE: Final = "quarantine"
BRONZE_OF: Final = {"transactions": "bronze", "customers": "bronze_customers"}
MIN_RETAIN_DAYS: Final = 7


@dataclass(frozen=True)
class Table:
    """A table by its schema and the columns that its files are parted by, the day first where there are days."""

    schema: StructType
    partitions: tuple[str, ...] = ()


TABLES: Final[Mapping[str, Table]] = {
    "bronze": Table(schemas.BRONZE, ("date",)),
    "bronze_customers": Table(schemas.BRONZE_CUSTOMERS, ("date",)),
    "customers": Table(schemas.CUSTOMERS),
    "transactions": Table(schemas.TRANSACTIONS, ("processed_date", "amount_category")),
    "daily_sales": Table(schemas.DAILY_SALES, ("processed_date",)),
}


@dataclass(frozen=True)
class HistoryEntry:
    """One version of a table."""

    version: int
    at: datetime.datetime
    operation: str
    rows: int | None


@dataclass(frozen=True)
class TableFacts:
    """A table as `spark-app tables` shows it; what is not known is None."""

    name: str
    path: str
    exists: bool
    version: int | None = None
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    last_change: datetime.datetime | None = None
    history: list[HistoryEntry] = field(default_factory=list)


def path_of(settings: Settings, name: str) -> str:
    """The folder of a table.

    Raises:
        UsageError: There is no such table.
    """
    if name not in TABLES:
        raise UsageError(f"no table {name!r}; there are {', '.join([*TABLES, QUARANTINE])}")
    return f"{settings.warehouse_path.rstrip('/')}/{name}"


def day(name: str, date: datetime.date) -> str:
    """The condition that names the rows of one date in a table that is parted by days."""
    return f"{TABLES[name].partitions[0]} = '{date}'"


def as_it_was(
    spark: SparkSession, settings: Settings, date: datetime.date, name: str, version: int
) -> DataFrame | None:
    """The rows of a date at a version of a table; None where that is its newest."""
    path = path_of(settings, name)
    if commits.last_version(spark, path) == version:
        return None
    return spark.read.format("delta").option("versionAsOf", version).load(path).where(day(name, date))


def put_back(
    spark: SparkSession,
    settings: Settings,
    date: datetime.date,
    name: str,
    version: int,
    *,
    note: Callable[[str], None],
) -> None:
    """Gives a date in a table the content again that it had at a version, in one commit, or none if it has it."""
    good = as_it_was(spark, settings, date, name, version)
    if good is not None:
        path = path_of(settings, name)
        write = partial(replace_day, good, path, day(name, date))
        commits.committed(spark, path, write, author=f"{date} as in version {version}", note=note)


def replace_day(rows: DataFrame, path: str, condition: str, tag: str) -> Mapping[str, Any]:
    """Puts rows in place of those of a day, in one commit that carries a tag; nothing is observed."""
    writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", condition)
    writer.option("userMetadata", tag).save(path)
    return {}


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a Delta table lies at a path; a log without a commit is none."""
    return commits.last_version(spark, path) >= 0


def ensure(spark: SparkSession, settings: Settings, name: str) -> str:
    """The path of a table that is there, made empty if it was not."""
    path, table = path_of(settings, name), TABLES[name]
    if not exists(spark, path):
        with folders.alone(settings, f"making-{name}", note=_untold):
            making.make(spark, path, table.schema, table.partitions)
    return path


def _untold(text: str) -> None:
    """Takes the note that somebody else makes the same table: it takes a second."""


def open_table(
    spark: SparkSession,
    settings: Settings,
    name: str,
    *,
    version: int | None = None,
    as_of: datetime.datetime | None = None,
) -> DataFrame:
    """A table, now or as it was at a version or an instant; `quarantine` is the rows of bronze with problems.

    Raises:
        UsageError: There is no such table, not yet, or not then; or the view is asked for an old version.
    """
    if name == QUARANTINE:
        if version is not None or as_of is not None:
            raise UsageError("quarantine is a view: look at an old version of bronze instead")
        return quarantine(spark, settings)
    path = path_of(settings, name)
    if not exists(spark, path):
        raise _not_yet(name)
    if as_of is not None:
        version = _version_at(spark, path, as_of)
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def _version_at(spark: SparkSession, path: str, instant: datetime.datetime) -> int:
    """The version that was the newest at an instant, which may be later than the last commit."""
    oldest = None
    for commit in commits.newest_first(spark, path):
        if commit.at <= instant:
            return commit.version
        oldest = commit
    since = f"; its first version is of {oldest.at:%Y-%m-%dT%H:%M:%SZ}" if oldest else ""
    raise UsageError(f"{path} has no version that old{since}")


def quarantine(spark: SparkSession, settings: Settings) -> DataFrame:
    """Every raw row that breaks a promise, with its reasons, of all sources that have been read.

    Columns out: source, problems, raw, source_file, date.

    Raises:
        UsageError: No source has been read yet.
    """
    paths = {source: path_of(settings, name) for source, name in BRONZE_OF.items()}
    parts = [
        spark.read.format("delta").load(path).withColumn("source", F.lit(source))
        for source, path in paths.items()
        if exists(spark, path)
    ]
    if not parts:
        raise _not_yet(QUARANTINE)
    return reduce(DataFrame.unionByName, [_bad(part) for part in parts])


def _bad(rows: DataFrame) -> DataFrame:
    return rows.where(F.size("problems") > 0).select(*schemas.QUARANTINE.names)


def _not_yet(name: str) -> UsageError:
    return UsageError(f"table {name} does not exist yet: run `spark-app etl --date YYYY-MM-DD` first")


def made(spark: SparkSession, settings: Settings) -> list[str]:
    """The names of the tables that there are."""
    return [name for name in TABLES if exists(spark, path_of(settings, name))]


def list_tables(spark: SparkSession, settings: Settings) -> list[TableFacts]:
    """Every table of the warehouse with its history, newest version first."""
    return [_facts(spark, settings, name) for name in TABLES]


def optimize(spark: SparkSession, settings: Settings, name: str) -> str:
    """Merges the small files of a table; its content stays. One line says what was done."""
    row = DeltaTable.forPath(spark, path_of(settings, name)).optimize().executeCompaction().collect()[0]
    return f"{name}: {row.metrics.numFilesRemoved} files became {row.metrics.numFilesAdded}"


def vacuum(spark: SparkSession, settings: Settings, name: str, *, retain_days: int) -> str:
    """Deletes files that no version of the last days needs; older versions can then not be read any more.

    Raises:
        UsageError: Fewer days than are safe for readers and runs in flight.
    """
    if retain_days < MIN_RETAIN_DAYS:
        raise UsageError(f"keep at least {MIN_RETAIN_DAYS} days: a running job may still need what is younger")
    DeltaTable.forPath(spark, path_of(settings, name)).vacuum(retain_days * 24)
    return f"{name}: files that only versions older than {retain_days} days need are deleted"


def _facts(spark: SparkSession, settings: Settings, name: str) -> TableFacts:
    path = path_of(settings, name)
    if not exists(spark, path):
        return TableFacts(name, path, exists=False)
    detail = DeltaTable.forPath(spark, path).detail().collect()[0]
    history = [HistoryEntry(c.version, c.at, c.operation, c.rows) for c in commits.newest_first(spark, path)]
    return TableFacts(
        name,
        path,
        exists=True,
        version=history[0].version if history else None,
        rows=spark.read.format("delta").load(path).count(),
        files=detail.numFiles,
        bytes=detail.sizeInBytes,
        last_change=history[0].at if history else None,
        history=history,
    )

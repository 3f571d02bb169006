"""Delta tables of the warehouse: what they are, their commits and history, and their upkeep."""

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app import schemas
from app.errors import UsageError
from app.settings import Settings

QUARANTINE: Final = "quarantine"
MIN_RETAIN_DAYS: Final = 7


@dataclass(frozen=True)
class Table:
    """A table by its schema and the columns that its files are parted by."""

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
class Commit:
    """What one commit of a table states of itself.

    Attributes:
        version: Version of the table that the commit made.
        rows: Rows in the files that it added.
        bytes: Bytes of those files.
        files: Number of those files.
        nulls: Nulls per top-level column in those files.
        operation: What Delta calls it: WRITE, MERGE, OPTIMIZE.
        at: Instant of the commit.
        tag: What the writer noted with it (`userMetadata`).
    """

    version: int
    rows: int
    bytes: int
    files: int
    nulls: Mapping[str, int]
    operation: str
    at: datetime.datetime
    tag: str | None


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


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a Delta table lies at a path."""
    return DeltaTable.isDeltaTable(spark, path)


def ensure(spark: SparkSession, settings: Settings, name: str) -> str:
    """The path of a table that is there, made empty if it was not."""
    path, table = path_of(settings, name), TABLES[name]
    if not exists(spark, path):
        builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(table.schema)
        builder.partitionedBy(*table.partitions).execute()
    return path


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
        UsageError: There is no such table, or not yet, or the view is asked for an old version.
    """
    if name == QUARANTINE:
        if version is not None or as_of is not None:
            raise UsageError("quarantine is a view: look at an old version of bronze instead")
        return quarantine(spark, settings)
    path = path_of(settings, name)
    if not exists(spark, path):
        raise UsageError(f"table {name} does not exist yet: run `spark-app etl --date YYYY-MM-DD` first")
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    if as_of is not None:
        reader = reader.option("timestampAsOf", as_of.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f"))
    return reader.load(path)


def quarantine(spark: SparkSession, settings: Settings) -> DataFrame:
    """Every raw row that breaks a promise, with its reasons, of all sources.

    Columns out: source, problems, raw, source_file, date.
    """
    parts = [
        spark.read.format("delta").load(ensure(spark, settings, name)).withColumn("source", F.lit(source))
        for source, name in (("transactions", "bronze"), ("customers", "bronze_customers"))
    ]
    columns = [part.where(F.size("problems") > 0).select(*schemas.QUARANTINE.names) for part in parts]
    return columns[0].unionByName(columns[1])


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


def commits(spark: SparkSession, path: str, *, after: int = -1) -> Iterator[Commit]:
    """The commits of a table newer than a version, newest first, read from its log without a Spark job."""
    for version in range(last_version(spark, path), after, -1):
        commit = _commit(spark, path, version)
        if commit is None:
            return
        yield commit


def last_version(spark: SparkSession, path: str) -> int:
    """The newest version in a table's log; -1 where there is no table."""
    log = _jvm(spark).org.apache.hadoop.fs.Path(f"{path}/_delta_log")
    system = log.getFileSystem(_hadoop(spark))
    if not system.exists(log):
        return -1
    names = [status.getPath().getName() for status in system.listStatus(log)]
    return max((int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit()), default=-1)


def _commit(spark: SparkSession, path: str, version: int) -> Commit | None:
    text = read_text(spark, f"{path}/_delta_log/{version:020d}.json")
    if text is None:
        return None
    actions = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    added = [action["add"] for action in actions if "add" in action]
    stats = [json.loads(add["stats"]) for add in added if add.get("stats")]
    nulls: dict[str, int] = {}
    for stat in stats:
        for column, count in stat.get("nullCount", {}).items():
            if isinstance(count, int):
                nulls[column] = nulls.get(column, 0) + count
    return Commit(
        version=version,
        rows=sum(stat["numRecords"] for stat in stats),
        bytes=sum(add["size"] for add in added),
        files=len(added),
        nulls=nulls,
        operation=info.get("operation", "unknown"),
        at=datetime.datetime.fromtimestamp(info.get("timestamp", 0) / 1000, datetime.UTC),
        tag=info.get("userMetadata"),
    )


def read_text(spark: SparkSession, path: str) -> str | None:
    """The content of a small file on any path that Spark can read; None where there is none."""
    file = _jvm(spark).org.apache.hadoop.fs.Path(path)
    system = file.getFileSystem(_hadoop(spark))
    if not system.exists(file):
        return None
    stream = system.open(file)
    try:
        return str(_jvm(spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_text(spark: SparkSession, path: str, content: str) -> None:
    """Puts a small file in place, whole or not at all."""
    jvm = _jvm(spark)
    part = jvm.org.apache.hadoop.fs.Path(path + ".part")
    system = part.getFileSystem(_hadoop(spark))
    stream = system.create(part, True)
    stream.write(bytearray(content, "utf-8"))
    stream.close()
    if not system.rename(part, jvm.org.apache.hadoop.fs.Path(path)):
        raise OSError(f"cannot rename {path}.part")


def delete_file(spark: SparkSession, path: str) -> None:
    """Deletes a file if it is there."""
    file = _jvm(spark).org.apache.hadoop.fs.Path(path)
    file.getFileSystem(_hadoop(spark)).delete(file, False)


def _facts(spark: SparkSession, settings: Settings, name: str) -> TableFacts:
    path = path_of(settings, name)
    if not exists(spark, path):
        return TableFacts(name, path, exists=False)
    detail = DeltaTable.forPath(spark, path).detail().collect()[0]
    history = [HistoryEntry(c.version, c.at, c.operation, c.rows) for c in commits(spark, path)]
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


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def _hadoop(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()

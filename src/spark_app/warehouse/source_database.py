"""The rows of a source in a table of a database that Spark reads by JDBC: PostgreSQL, MariaDB or MySQL."""

import datetime
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from spark_app.errors import InputError, MachineError
from spark_app.redaction import redacted
from spark_app.settings import Settings, process_environment
from spark_app.warehouse import hadoop_files, raw_files
from spark_app.warehouse.hadoop_files import FileReader
from spark_app.warehouse.origin import RawDay, declared_in
from spark_app.warehouse.periods import ROWS
from spark_app.warehouse.source_table import of_day

FETCHED_AT_ONCE: Final = 10_000
"""Rows of one answer of the database: by default PostgreSQL's driver keeps all of them in memory."""


class _Database(NamedTuple):
    """A kind of database.

    Attributes:
        scheme: The scheme by which Spark knows its SQL.
        driver: The class of its driver.
        parameters: Parameters of its URL.
        in_utc: What makes a session count time in UTC: Spark writes the bounds of a day without a time zone.
    """

    scheme: str
    driver: str
    parameters: Mapping[str, str]
    in_utc: str


_POSTGRESQL: Final = _Database("postgresql", "org.postgresql.Driver", {}, "SET TIME ZONE 'UTC'")
_MARIADB: Final = _Database(
    "mysql", "org.mariadb.jdbc.Driver", {"permitMysqlScheme": "true"}, "SET time_zone = '+00:00'"
)
DATABASES: Final[Mapping[str, _Database]] = {
    "postgresql": _POSTGRESQL,
    "postgres": _POSTGRESQL,
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
}
"""By the scheme of a URL."""
LOGIN: Final[tuple[str, ...]] = ("user", "password")


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a database, as `jdbc(...)` declares it.

    Attributes:
        url: The name of the variable of the environment with the URL of the database.
        table: The table.
        by: The column that says which day a row belongs to: a date, an instant (UTC), or text that begins with
            YYYY-MM-DD.
        connections: How many connections read a day at once, each a range of `by`.
        declared: Where it is declared: file and line.
    """

    url: str
    table: str
    by: str
    connections: int
    declared: str

    def problem(self, schema: StructType) -> str | None:
        """See `DeclaredOrigin`."""
        return None

    def lacks(self) -> str | None:
        """See `DeclaredOrigin`."""
        try:
            required_address(self.url, self.table)
        except InputError as error:
            return str(error)
        return None

    def of(self, settings: Settings) -> "SourceDatabase":
        """See `DeclaredOrigin`."""
        return SourceDatabase(self.url, self.table, self.by, self.connections, self.declared)


@dataclass(frozen=True)
class SourceDatabase:
    """The same, as a run reads it."""

    content_name: ClassVar[str] = ROWS
    path: ClassVar[None] = None

    url: str
    table: str
    by: str
    connections: int
    declared: str = ""

    @property
    def facts(self) -> Mapping[str, str]:
        """See `Origin`."""
        return {"table": f"{self.table} of the database {self.url}", "by": self.by}

    def where(self, day: datetime.date) -> str:
        """See `Origin`."""
        return f"{self.table} of the database {self.url} where {self.by} is {day}"

    def is_delivered(self, spark: SparkSession, day: datetime.date) -> bool:
        """See `Origin`."""
        return not self._rows(spark, day).isEmpty()

    def content(self, reader: FileReader, day: datetime.date, known: str = "") -> None:
        """See `Origin`: a database does not say what has changed."""

    def read(self, spark: SparkSession, day: datetime.date, schema: StructType) -> RawDay:
        """See `Origin`."""
        with declared_in(self.declared):
            rows = self._rows(spark, day)
            return RawDay(raw_files.table_rows(rows, f"{self.url} {self.table}", schema=schema), rows.isEmpty)

    def _rows(self, spark: SparkSession, day: datetime.date) -> DataFrame:
        options = self._options(spark)
        rows = self._loaded(lambda: spark.read.format("jdbc").options(**options).load())
        condition = of_day(rows, self.by, day, f"{self.table} of the database {self.url}")
        kind = next(field.dataType for field in rows.schema if field.name.lower() == self.by.lower())
        if self.connections > 1 and isinstance(kind, TimestampType | TimestampNTZType):
            ranges = self._ranges(spark, options["url"], day)
            rows = self._loaded(
                lambda: spark.read.jdbc(options["url"], self.table, predicates=ranges, properties=options)
            )
        return rows.where(condition)

    def _ranges(self, spark: SparkSession, url: str, day: datetime.date) -> list[str]:
        """A condition in SQL for each connection; Spark's own ranges are of no column without a time zone."""
        name = hadoop_files.jvm(spark).org.apache.spark.sql.jdbc.JdbcDialects.get(url).quoteIdentifier(self.by)
        start, parts = datetime.datetime.combine(day, datetime.time()), self.connections
        bounds = [start + datetime.timedelta(days=1) * part / parts for part in range(parts + 1)]
        return [f"{name} >= '{first}' AND {name} < '{following}'" for first, following in pairwise(bounds)]

    def _loaded(self, load: Callable[[], DataFrame]) -> DataFrame:
        try:
            return load()
        except (Py4JJavaError, PySparkException) as error:
            where = redacted(required_address(self.url, self.table).url)
            raise InputError(
                f"cannot read {self.table} of the database {self.url} ({where}): {_reason(error)}"
            ) from error

    def _options(self, spark: SparkSession) -> dict[str, str]:
        """The options of Spark's reader.

        Raises:
            InputError: The variable is not set, or is no URL of a database that is known.
            MachineError: The jars of databases are not installed.
        """
        found = required_address(self.url, self.table)
        _require_driver(spark, found.database.driver)
        return {
            "url": found.url,
            "driver": found.database.driver,
            "dbtable": self.table,
            "fetchsize": str(FETCHED_AT_ONCE),
            "sessionInitStatement": found.database.in_utc,
            "preferTimestampNTZ": "true",  # else a timestamp without a time zone is one of the JVM's
            **found.login,
        }


class Address(NamedTuple):
    """A URL without its login, as a driver takes it, the kind of database, and the login as options of Spark."""

    url: str
    database: _Database
    login: Mapping[str, str]


def address(text: str) -> Address | None:
    """What a URL says, with or without `jdbc:` before it; None where it is of no database that is known."""
    parts = urlsplit(text.removeprefix("jdbc:"))
    database = DATABASES.get(parts.scheme)
    if database is None or not parts.hostname:
        return None
    asked = dict(parse_qsl(parts.query))
    login = {name: asked.pop(name) for name in LOGIN if name in asked}
    login |= {name: unquote(text) for name, text in zip(LOGIN, (parts.username, parts.password), strict=True) if text}
    query = urlencode(asked | dict(database.parameters))
    host = parts.netloc.rpartition("@")[2]
    return Address(f"jdbc:{database.scheme}://{host}{parts.path}{f'?{query}' if query else ''}", database, login)


def required_address(variable: str, table: str) -> Address:
    """The address in a variable of the environment.

    Raises:
        InputError: The variable is not set, or has no URL of a database that is known.
    """
    form = "postgresql://HOST/DATABASE (or mariadb://, mysql://), with user, colon, password and @ before the host"
    text = process_environment().get(variable, "")
    if not text:
        raise InputError(f"the variable {variable} is not set: set it to the URL of the database with {table}, {form}")
    if (found := address(text)) is None:
        raise InputError(f"the variable {variable} has no URL of a database that can be read: write {form}")
    return found


def _require_driver(spark: SparkSession, driver: str) -> None:
    try:
        hadoop_files.jvm(spark).java.lang.Class.forName(driver)
    except Py4JJavaError as error:
        command = f"{Path(sys.executable).name} -m spark_app.spark.jars jdbc"
        raise MachineError(
            f"the drivers of databases are not beside Spark's own jars: run `{command}` with the Python of spark-app, "
            f"once"
        ) from error


def _reason(error: Exception) -> str:
    """What the database says: the message of the first cause, without Java's stack."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while java is not None and (cause := java.getCause()) is not None:
        java = cause
    text = str(java.getMessage()) if java is not None else str(error)
    return redacted(" ".join(text.split()))

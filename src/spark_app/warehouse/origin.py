"""Where the raw rows of a source come from: what files, tables of others, databases and topics have in common."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_app.errors import InputError
from spark_app.settings import Settings
from spark_app.warehouse.hadoop_files import FileReader


@dataclass(frozen=True)
class RawDay:
    """The raw rows of a day.

    Attributes:
        rows: The rows, in the columns that `spark_app.warehouse.raw_files` describes.
        is_empty: Whether there are none; it may run a Spark job.
        files: How many files they are in; None where nothing says it.
        bytes: The size of these.
    """

    rows: DataFrame
    is_empty: Callable[[], bool]
    files: int | None = None
    bytes: int | None = None


class Origin(Protocol):
    """Where the raw rows of a source come from, with the settings of a run."""

    @property
    def content_name(self) -> str:
        """What its content is called where it has changed, before the name of the source: `raw files of `."""

    @property
    def path(self) -> str | None:
        """The folder with its rows of all days; None where they are in no folder."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What its rows depend on, in words, for `spark-app plan`: no password, and nothing of this machine."""

    def where(self, day: datetime.date) -> str:
        """What messages call the rows of a day."""

    def is_delivered(self, spark: SparkSession, day: datetime.date) -> bool:
        """Whether a day has rows, or files for them."""

    def content(self, reader: FileReader, day: datetime.date, known: str = "") -> str | None:
        """Names the content of a day, without a Spark job; empty without any.

        Args:
            reader: Reads its files.
            day: The day.
            known: How it was named before: if nothing has changed since, that is the answer.

        Returns:
            None where nobody can tell.
        """

    def read(self, spark: SparkSession, day: datetime.date, schema: StructType) -> RawDay:
        """The raw rows of a day.

        Raises:
            InputError: They cannot be read, or are not what the schema says.
        """


@contextmanager
def declared_in(place: str) -> Iterator[None]:
    """Names file and line of the declaration in errors of its rows.

    Raises:
        InputError: One was raised.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error


@runtime_checkable
class DeclaredOrigin(Protocol):
    """What a `Source` says of where its rows come from: `files(...)`, `table(...)`, `jdbc(...)`, `kafka(...)`."""

    @property
    def declared(self) -> str:
        """Where it says this: file and line."""

    def problem(self, schema: StructType) -> str | None:
        """Why it cannot have rows of a schema; None where it can."""

    def lacks(self) -> str | None:
        """What is missing here to read it, as far as that is known without a connection; None where nothing is."""

    def of(self, settings: Settings) -> Origin:
        """The same with the settings of a run."""

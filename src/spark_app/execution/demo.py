"""Generated data of a project: what is run where no source is configured."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, cast

from spark_app import project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_app.settings import Settings


class Demo(Protocol):
    """What a project may have to be tried without a source: a module with these functions.

    Attributes:
        COMMANDS: Further commands of `spark-app` by name, each with the extra that it needs.
    """

    COMMANDS: Mapping[str, tuple[Callable[..., None], str]]

    def make_if_missing(
        self,
        spark: "SparkSession",
        settings: "Settings",
        sources: Sequence[str],
        date: datetime.date,
        *,
        note: Callable[[str], None],
    ) -> None:
        """Generates the raw files of a day of sources that have none, and notes it; replaces no file."""

    def feed(self, settings: "Settings", *, note: Callable[[str], None]) -> AbstractContextManager[object]:
        """Generates records of topics, in the landing folder, from entering to leaving the with-statement."""


def current() -> Demo | None:
    """That of the current project; None if it has none, or where no project is.

    Raises:
        ConfigError: It cannot be loaded.
    """
    found = project.current()
    return cast("Demo | None", found.load_demo()) if found else None

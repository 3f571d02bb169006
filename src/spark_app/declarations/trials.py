"""The functions of a project, ready to be called with frames without rows: no mistake in them needs data to be seen.

A trial plans what a run would plan, with the schemas that the project declares; nothing is read or written.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, MapType, StringType, StructField, StructType

from spark_app.engine.code_location import CodeLocation
from spark_app.engine.topics import Topic
from spark_app.settings import Settings
from spark_app.warehouse import schemas
from spark_app.warehouse.tables import Table

NO_DAY: Final = datetime.date(2024, 1, 1)
"""The day of frames without rows."""
TEXT: Final = StringType()


@dataclass(frozen=True)
class Trial:
    """A function of a project.

    Attributes:
        function: Its name.
        location: Where it is declared.
        call: Calls it with frames without rows, and plans what becomes of what it returns.
    """

    function: str
    location: CodeLocation
    call: Callable[[], object]


@dataclass(frozen=True)
class EmptyInputs:
    """Frames without rows, of the schemas that a project declares.

    Attributes:
        spark: Their session.
        tables: The tables of the project by name.
        settings: The configuration.
    """

    spark: SparkSession
    tables: Mapping[str, Table]
    settings: Settings

    def frame(self, schema: StructType) -> DataFrame:
        """A frame of a schema; Spark starts no job for what is made of it alone."""
        java: Any = self.spark._jsparkSession
        rows = self.spark._jvm.java.util.ArrayList()  # type: ignore[union-attr] # there is a JVM
        return DataFrame(java.createDataFrame(rows, java.parseDataType(schema.json())), self.spark)

    def table(self, name: str) -> DataFrame:
        """A table with all its columns, as queries and models get it."""
        return self.frame(self.tables[name].schema)

    def day_of(self, name: str) -> DataFrame:
        """The rows of a day of a table, as a function gets them: without the columns of the audit."""
        table = self.tables[name]
        return self.table(name).select(*visible(table))

    def raw(self, schema: StructType) -> DataFrame:
        """Raw rows of text, as `spark_app.warehouse.raw_files` reads them."""
        fields = [StructField("text", StructType([StructField(name, TEXT) for name in schema.names]))]
        fields += [StructField("extra", MapType(TEXT, TEXT)), StructField("is_malformed", BooleanType())]
        return self.frame(StructType([*fields, StructField("raw", TEXT), StructField("source_file", TEXT)]))

    def stream(self, topic: Topic, *further: StructField) -> DataFrame:
        """The values of a topic, as a stream that never has one."""
        ticks = self.spark.readStream.format("rate").load().where(F.lit(False))
        return ticks.select(*[F.lit(None).cast(each.dataType).alias(each.name) for each in [*topic.schema, *further]])


def visible(table: Table) -> list[str]:
    """The columns of a table that functions of daily pipelines get."""
    if table.source is None:
        return table.schema.names
    audit = {*schemas.bronze([]).names} - {"date"}
    return [name for name in table.schema.names if name not in audit]

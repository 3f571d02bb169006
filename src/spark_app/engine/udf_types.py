"""Types of user-defined functions as text, `@F.udf("decimal(10, 3)")`, read while no Spark runs.

Spark's own parser is in its JVM, which starts after the modules of a project are loaded.
"""

from pyspark import SparkContext
from pyspark.sql import types, udf
from pyspark.sql.types import DataType

from spark_app.engine import ddl


def _parsed(s: str) -> DataType:
    return types._parse_datatype_string(s) if SparkContext._active_spark_context else ddl.data_type(s)


def read_without_spark() -> None:
    """Lets modules declare functions of Spark as its documentation does, before there is a session."""
    udf._parse_datatype_string = _parsed  # type: ignore[attr-defined] # a name that the module has imported

"""Knows where Spark's counter of the bytes that tasks read misses most of them."""

import re
from typing import Final

from spark_app.eventlog.model.entities import Query
from spark_app.eventlog.model.plan_names import LOCATION
from spark_app.eventlog.model.releases import release
from spark_app.eventlog.parse.events import StageInfo
from spark_app.vocabulary.spark_settings import is_local

_SCAN: Final = '"name":"Scan parquet'
_LOCAL: Final = re.compile(rb'"%b":"[^"\[]*\[file:' % LOCATION.encode())
_VECTORED: Final = "spark.hadoop.parquet.hadoop.vectored.io.enabled"
SINCE: Final = (4, 1)
"""The first Spark whose Parquet reads local files in ranges by default. In the recorded logs of `tests/eventlogs` tasks
of 4.1 to 4.3 report 550 bytes for a file of which tasks of 3.5 and 4.0 report over 1,100; of large files next to
nothing."""


def is_missed(info: StageInfo, query: Query | None, version: str | None, properties: dict[str, str]) -> bool:
    """Whether tasks of a stage read local Parquet files in a way that Spark does not count.

    Parquet reads ranges of a local file through `java.nio`, past the statistics of Hadoop's file systems, which Spark's
    `inputMetrics.bytesRead` is made of. Only the footers are counted. Rows are counted by another path.

    Args:
        info: The stage.
        query: The query that it runs for; without one, local mode stands for local files.
        version: Of Spark.
        properties: Of the application.
    """
    if not any(_SCAN in (rdd.scope or "") for rdd in info.rdds) or properties.get(_VECTORED) == "false":
        return False
    number = release(version)
    is_new = number is not None and number >= SINCE
    return is_new and (is_local(properties) if query is None else _LOCAL.search(bytes(query.plan)) is not None)

"""Empty Delta tables, made by several at once or after a maker that was killed."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from delta.tables import DeltaTable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from app import commits, files, folders

PATIENCE_SECONDS: Final = 5.0
"""How long a log without a commit may be that of a maker who is still at it: far above the time of one commit."""
PAUSE_SECONDS: Final = 0.1


def make(spark: SparkSession, path: str, schema: StructType, partitions: Sequence[str]) -> None:
    """Makes an empty table, unless somebody else is faster; what a killed maker left is taken away.

    Where no lock keeps others waiting, a log without a commit may be of one who is still at it, and is given time.
    """
    seconds = 0.0 if folders.local(path) else PATIENCE_SECONDS
    if _made(spark, path, schema, partitions, seconds) is None:
        return
    _sweep(spark, path)
    error = _made(spark, path, schema, partitions, seconds)
    if error is not None:
        raise error


def _made(
    spark: SparkSession, path: str, schema: StructType, partitions: Sequence[str], seconds: float
) -> Exception | None:
    """None if there is a table within so many seconds after the first refusal, else what was in the way.

    Who is refused may have been too slow for another maker: only where there is no table then is something in the way.
    """
    refused, until = None, 0.0
    while commits.last_version(spark, path) < 0:
        if refused is not None and time.monotonic() >= until:
            return refused
        try:
            _create(spark, path, schema, partitions)
        except (PySparkException, Py4JError) as error:
            until = until or time.monotonic() + seconds
            refused = error
            time.sleep(PAUSE_SECONDS)
    return None


def _create(spark: SparkSession, path: str, schema: StructType, partitions: Sequence[str]) -> None:
    # As Hadoop writes it: Delta takes file:///warehouse and file:/warehouse for two places.
    location = files.jvm(spark).org.apache.hadoop.fs.Path(path).toString()
    builder = DeltaTable.createIfNotExists(spark).location(location).addColumns(schema)
    builder.partitionedBy(*partitions).execute()


def _sweep(spark: SparkSession, path: str) -> None:
    """Takes away a log without a commit: its maker was killed, and Delta makes no table where there is a log."""
    names = files.names_in(spark, f"{path}/_delta_log")
    if names is None or any(name[0] not in "._" or "checkpoint" in name for name in names):
        return
    hadoop_path = files.jvm(spark).org.apache.hadoop.fs.Path
    log = hadoop_path(f"{path}/_delta_log")
    system = log.getFileSystem(files.hadoop(spark))
    # Checksums of a local disk are not listed; elsewhere another maker, who is not kept waiting, may have come in.
    with suppress(Py4JError):
        for name in names:
            system.delete(hadoop_path(log, name), True)
        system.delete(log, folders.local(path) is not None)

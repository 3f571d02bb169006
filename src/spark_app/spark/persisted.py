"""Rows that several actions read and Spark computes once."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """Persists rows for a block of code, and unpersists them at its end, whatever happened in it.

    A session outlives its pipelines: what a failed one left persisted would take memory until the session ends.
    """
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def size_in_bytes(rows: DataFrame) -> int:
    """The bytes that Spark plans to read for rows; of files, those that a filter of partitions leaves."""
    return int(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

"""A job that needs memory: `python -m tests.bench.memory_job KIND MEBIBYTES`; each kind needs it on another side."""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

DIGESTS: Final = 32
"""Of 32 bytes each, in a row of 1 KiB: nothing compresses them."""


def rows_of(spark: SparkSession, mebibytes: int) -> DataFrame:
    """So many mebibytes of rows of 1 KiB."""
    digests = (F.unhex(F.sha2(F.concat_ws("-", "id", F.lit(number)), 256)) for number in range(DIGESTS))
    return spark.range(0, mebibytes * 1024, 1, 4).select("id", F.concat(*digests).alias("bytes"))


def collect(spark: SparkSession, mebibytes: int) -> None:
    """The driver collects the rows."""
    rows_of(spark, mebibytes).collect()


def broadcast(spark: SparkSession, mebibytes: int) -> None:
    """The driver builds a table of the rows."""
    small = rows_of(spark, mebibytes)
    spark.range(10).join(F.broadcast(small), "id").write.format("noop").mode("overwrite").save()


def group(spark: SparkSession, mebibytes: int) -> None:
    """A task holds all rows in one."""
    rows = rows_of(spark, mebibytes).groupBy(F.lit(1)).agg(F.collect_list("bytes").alias("all"))
    rows.select(F.size("all")).write.format("noop").mode("overwrite").save()


def row(spark: SparkSession, mebibytes: int) -> None:
    """A task makes one long text."""
    rows = spark.range(1).select(F.expr(f"length(repeat(cast(id as string), {mebibytes << 20}))").alias("length"))
    rows.write.format("noop").mode("overwrite").save()


def worker(spark: SparkSession, mebibytes: int) -> None:
    """A Python worker holds a list of bytes."""

    def hold(batches: Iterator[Any]) -> Iterator[Any]:
        held = bytearray(mebibytes << 20)
        for batch in batches:
            yield batch[: len(held)]

    spark.range(1).mapInPandas(hold, "id long").write.format("noop").mode("overwrite").save()


KINDS: Final[Mapping[str, Callable[[SparkSession, int], None]]] = {
    each.__name__: each for each in (collect, broadcast, group, row, worker)
}


def main() -> None:
    """Runs one kind."""
    spark = SparkSession.builder.appName("memory").getOrCreate()
    KINDS[sys.argv[1]](spark, int(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()

"""What else runs on the machine: another application of Spark."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import functions as F

from truth.programs.common import digest, done, hashed, main, place, session


def two_at_once(*, planted: bool, form: str, rows: int = 2_000_000) -> None:
    """Digests, beside another application that has as many threads and computes all the time."""
    spark = session("digests")
    sales = spark.range(0, rows, 1, 8)
    sales.createOrReplaceTempView("sales")
    with place(spark), _beside(["other", "{}"] if planted else []):
        if form == "rdd":
            spark.sparkContext.range(0, rows * 2, 1, 8).map(hashed).sum()
        elif form == "sql":
            done(spark.sql("SELECT * FROM sales WHERE id % 97 <> 0").select(digest("id")))
        else:
            done(sales.where(F.col("id") % 97 != 0).select(digest("id")))
    spark.stop()


def other() -> None:
    """The other application, which somebody has to end."""
    spark = session("other", eventLog_enabled="false")
    while True:
        done(spark.range(0, 1_000_000, 1, 8).select(digest("id")))


@contextmanager
def _beside(arguments: Sequence[str]) -> Iterator[None]:
    """Another program of this file meanwhile; none without arguments."""
    program = subprocess.Popen([sys.executable, __file__, *arguments]) if arguments else None
    try:
        yield
    finally:
        if program is not None:
            program.kill()
            program.wait()


if __name__ == "__main__":
    main(two_at_once, other)

"""Two ordinary PySpark jobs that are measured with and without `observe`: `python -m tests.bench.job KIND TASKS`.

The last line says what the work took in seconds, from a warm session to its end: wall time, CPU time of Python and the
JVM, and their CPU time including the start.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.measure import cpu_seconds

ROWS: Final = 60_000
"""Rows of an ordinary task, which takes some hundred milliseconds."""
WARM_SHARE: Final = 8


def ordinary(spark: SparkSession, tasks: int) -> None:
    """Generates rows, hashes, shuffles and counts them, and hashes again, in half of the tasks each."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks // 2)
    rows = spark.range(0, ROWS * (tasks // 2), 1, tasks // 2)
    texts = rows.select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512).alias("text"))
    counted = texts.groupBy("text").count()
    discard(counted.select(F.sha2(F.repeat("text", 10), 512), "count"))


def empty(spark: SparkSession, tasks: int) -> None:
    """Runs tasks with one row each, and drops it."""
    discard(spark.range(0, tasks, 1, tasks).filter("id < 0"))


def discard(rows: Any) -> None:
    """Computes all rows and writes none."""
    rows.write.format("noop").mode("append").save()


KINDS: Final[Mapping[str, Callable[[SparkSession, int], None]]] = {"ordinary": ordinary, "empty": empty}


def main(kind: str, tasks: int) -> None:
    """Runs a job in a session that a smaller job has warmed up."""
    builder = SparkSession.builder.appName(kind).config("spark.ui.port", "0").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    KINDS[kind](spark, tasks // WARM_SHARE)
    wall, cpu = time.monotonic(), used()
    KINDS[kind](spark, tasks)
    spark.stop()
    whole = used()
    print(json.dumps({"wall": time.monotonic() - wall, "cpu": whole - cpu, "whole": whole}))


def used() -> float:
    """CPU seconds of Python and the JVM so far."""
    gateway: Any = SparkContext._gateway
    return time.process_time() + cpu_seconds(gateway.proc.pid)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

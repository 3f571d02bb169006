"""Queries that a rule about plans must speak of, and twins of them that it must not.

`python -m tests.eventlogs.plans FOLDER` runs all in one small application of its own, with its event log in
`FOLDER/events`. The description of what a case runs is its name.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

PROPERTIES: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.buffer.pageSize": "1m",  # or else the hash table of one row takes 32 MiB
    "spark.python.unix.domain.socket.enabled": "true",
}
ROWS: Final = 2000


@dataclass(frozen=True)
class Bench:
    """Where cases run: the session, and the folder of their files."""

    spark: SparkSession
    folder: str

    def numbers(self, rows: int = ROWS) -> DataFrame:
        """Ids from 0, and a text of some length that no optimiser can leave out."""
        return self.spark.range(0, rows, 1, 2).withColumn("text", F.concat(F.repeat(F.lit("x"), 80), "id"))

    def write(self, name: str, *, files: int, kind: str = "parquet") -> None:
        """Writes some files."""
        self.numbers().repartition(files).write.format(kind).save(f"{self.folder}/{name}")

    def write_days(self) -> None:
        """Writes a table of six partitions, of one file each."""
        days = self.numbers().withColumn("day", F.col("id") % 6).coalesce(1)
        days.write.partitionBy("day").parquet(f"{self.folder}/days")

    def read(self, name: str, where: str = "true", *, kind: str = "parquet") -> None:
        """Reads files once."""
        looked_at(self.spark.read.format(kind).load(f"{self.folder}/{name}").where(where))

    def read_again(self, name: str, *, is_cached: bool) -> None:
        """Reads the same files three times, for something else each time."""
        frame = self.spark.read.parquet(f"{self.folder}/{name}")
        if is_cached:
            frame.cache()
        for number in range(3):
            looked_at(frame.where(F.col("id") > number))
        frame.unpersist()

    def read_in_one_query(self, name: str, *, times: int) -> None:
        """Reads the same files several times in one query."""
        frame = self.spark.read.parquet(f"{self.folder}/{name}")
        for number in range(times - 1):
            frame = frame.union(self.spark.read.parquet(f"{self.folder}/{name}").where(F.col("id") > number))
        looked_at(frame)

    def collect_again(self, name: str) -> None:
        """Runs the same plan three times: what it has shuffled is there, so that the files are read once."""
        frame = self.spark.read.parquet(f"{self.folder}/{name}").groupBy("text").count()
        for _ in range(3):
            frame.collect()

    def join(self, *, left: int, right: int, how: str = "inner", hint: str = "merge") -> None:
        """Joins so many rows with so many others in a way that a hint says."""
        other = self.numbers(right).withColumnRenamed("text", "more")
        looked_at(self.numbers(left).join(other.hint(hint), "id", how))

    def cross(self, *, left: int, right: int) -> None:
        """Pairs each row with each other."""
        looked_at(self.spark.range(left).crossJoin(self.spark.range(right).toDF("other")))

    def call(self, function: Callable[..., Any], rows: int = ROWS) -> None:
        """Calls a function for each row."""
        self.spark.range(rows).select(F.sum(function("id"))).collect()

    def cache(self, *, times: int, is_adaptive: bool = True) -> None:
        """Fills a cache, and uses it so many times."""
        with self.adapting(is_adaptive=is_adaptive):
            frame = self.numbers(ROWS + 10 * times + is_adaptive).cache()
            for number in range(times):
                looked_at(frame.where(F.col("id") > number))
            frame.unpersist()

    def cache_for_two(self, *, is_adaptive: bool) -> None:
        """Fills a cache, and uses it twice in the same query."""
        with self.adapting(is_adaptive=is_adaptive):
            frame = self.numbers(ROWS + 100 + is_adaptive).cache()
            looked_at(frame.union(frame.where("id > 10")))
            frame.unpersist()

    def cache_rdd(self, *, times: int) -> None:
        """Fills the cache of an RDD, and uses it so many times."""
        pairs = self.spark.sparkContext.parallelize(range(10), 2).map(lambda number: number + 1).cache()
        for _ in range(times):
            pairs.count()
        pairs.unpersist()

    @contextmanager
    def adapting(self, *, is_adaptive: bool) -> Iterator[None]:
        """With adaptive execution or without it."""
        self.spark.conf.set("spark.sql.adaptive.enabled", str(is_adaptive).lower())
        yield
        self.spark.conf.unset("spark.sql.adaptive.enabled")


def looked_at(frame: DataFrame) -> None:
    """Looks at all columns of all rows."""
    frame.agg(*(F.max(name) for name in frame.columns)).collect()


def plain() -> Callable[..., Any]:
    """A function that is called for each row, which is sent as Python objects."""
    return F.udf(lambda number: number + 1, "long", useArrow=False)


def over_arrow() -> Callable[..., Any]:
    """A function that is called for each row, which is sent by Arrow."""
    return F.udf(lambda number: number + 1, "long", useArrow=True)


def vectorised() -> Callable[..., Any]:
    """A function that is called for thousands of rows."""
    made: Callable[..., Any] = pandas_udf(lambda numbers: numbers + 1, "long", PandasUDFType.SCALAR)
    return made


@dataclass(frozen=True)
class Case:
    """What is run under a name, and the rule that must speak of it; None where all must be silent."""

    name: str
    rule: str | None
    run: Callable[[Bench], None]


BROADCAST: Final = "sort_merge_join_could_broadcast"
CASES: Final = (
    Case("12 files", "small_files_written", lambda at: at.write("many", files=12)),
    Case("1 file", None, lambda at: at.write("one", files=1)),
    Case("12 Delta files", "small_files_written", lambda at: at.write("delta", files=12, kind="delta")),
    Case("1 Delta file", None, lambda at: at.write("delta1", files=1, kind="delta")),
    Case("read 12 files", "small_files_read", lambda at: at.read("many")),
    Case("read 1 file", None, lambda at: at.read("one")),
    Case("read 12 Delta files", "small_files_read", lambda at: at.read("delta", kind="delta")),
    Case("read 1 Delta file", None, lambda at: at.read("delta1", kind="delta")),
    Case("all days", "partition_filter_missing", lambda at: at.read("days", "id < 5")),
    Case("one day", None, lambda at: at.read("days", "id < 5 and day = 3")),
    Case("large broadcast", "large_broadcast", lambda at: at.join(left=10, right=40000, hint="broadcast")),
    Case("small broadcast", None, lambda at: at.join(left=20000, right=10, hint="broadcast")),
    Case("small right", BROADCAST, lambda at: at.join(left=20000, right=10)),
    Case("small left", BROADCAST, lambda at: at.join(left=10, right=20000)),
    Case("small right, hashed", BROADCAST, lambda at: at.join(left=20000, right=10, hint="shuffle_hash")),
    Case("both large", None, lambda at: at.join(left=20000, right=20001)),
    Case("small, but kept whole", None, lambda at: at.join(left=10, right=20000, how="left")),
    Case("all pairs", "cross_join", lambda at: at.cross(left=500, right=500)),
    Case("pairs with one row", None, lambda at: at.cross(left=500, right=1)),
    Case("few pairs", None, lambda at: at.cross(left=500, right=100)),
    Case("plain function", "row_python_udf", lambda at: at.call(plain())),
    Case("plain function over Arrow", "row_python_udf", lambda at: at.call(over_arrow())),
    Case("vectorised function", None, lambda at: at.call(vectorised())),
    Case("plain function, few rows", None, lambda at: at.call(plain(), rows=100)),
    Case("read three times", "repeated_scan", lambda at: at.read_again("again", is_cached=False)),
    Case("cached and read three times", None, lambda at: at.read_again("kept", is_cached=True)),
    Case("three scans in one query", "repeated_scan", lambda at: at.read_in_one_query("thrice", times=3)),
    Case("two scans in one query", None, lambda at: at.read_in_one_query("twice", times=2)),
    Case("collected three times", None, lambda at: at.collect_again("shuffled")),
    Case("used once", "unused_cache", lambda at: at.cache(times=1)),
    Case("used twice", None, lambda at: at.cache(times=2)),
    Case("used once, not adaptive", "unused_cache", lambda at: at.cache(times=1, is_adaptive=False)),
    Case("used twice in one query", None, lambda at: at.cache_for_two(is_adaptive=True)),
    Case("used twice in one query, not adaptive", None, lambda at: at.cache_for_two(is_adaptive=False)),
    Case("RDD used once", "unused_cache", lambda at: at.cache_rdd(times=1)),
    Case("RDD used twice", None, lambda at: at.cache_rdd(times=2)),
)


def main(folder: str) -> None:
    """Runs all cases."""
    builder = SparkSession.builder.appName("plans")
    for key, value in PROPERTIES.items():
        builder = builder.config(key, value)
    spark = builder.config("spark.eventLog.dir", f"file://{folder}/events").getOrCreate()
    bench = Bench(spark, folder)
    for name in ("again", "kept", "thrice", "twice", "shuffled"):
        bench.write(name, files=1)
    bench.write_days()
    for case in CASES:
        spark.sparkContext.setJobDescription(case.name)
        case.run(bench)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

"""Programs of the certificate of what-if, as they are and with changes: an application for each run, in one JVM.

    python what_if_program.py "waves of 16: as it was" "waves of 16: cores=8" ...

The applications have the names of the runs. Before the first run of a program it is run once for nobody to count, since
the first run in a JVM takes longer than the next one.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

AS_IT_WAS = "as it was"
QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
FIXED = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "16"}


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        run: Runs its jobs.
        master: Of the application as it was.
        changes: What it is run with instead, as `--what-if` takes it.
        settings: Spark properties of all its applications.
        twin: Runs its jobs without their skew, for `without=skew`.
    """

    run: Callable[[SparkSession], None]
    master: str = "local[4]"
    changes: tuple[str, ...] = ("cores=2", "cores=8")
    settings: Mapping[str, str] = field(default_factory=lambda: FIXED)
    twin: Callable[[SparkSession], None] | None = None


def slept(milliseconds: Column | int) -> Column:
    """A column whose rows take so long each, without a processor."""
    time_ = F.lit(milliseconds) if isinstance(milliseconds, int) else milliseconds
    return F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), time_.cast("bigint"))


def one_each(spark: SparkSession, milliseconds: Iterable[int]) -> DataFrame:
    """A task for each of some times."""
    times = list(milliseconds)
    rows = spark.range(0, len(times), 1, len(times))
    return rows.select(slept(F.element_at(F.array(*map(F.lit, times)), (F.col("id") + 1).cast("int"))).alias("slept"))


def run_all(rows: DataFrame) -> None:
    """Computes every row and keeps none."""
    rows.write.format("noop").mode("overwrite").save()


def waves(count: int, milliseconds: int) -> Callable[[SparkSession], None]:
    """Equal tasks."""
    return lambda spark: run_all(one_each(spark, [milliseconds] * count))


def uneven(milliseconds: Iterable[int]) -> Callable[[SparkSession], None]:
    """A stage of tasks that take different times."""
    times = list(milliseconds)
    return lambda spark: run_all(one_each(spark, times))


def grouped(rows: int, milliseconds: int) -> Callable[[SparkSession], None]:
    """Rows that a shuffle distributes over as many tasks as the settings say, and that take their time there."""

    def run(spark: SparkSession) -> None:
        groups = spark.range(0, rows, 1, 8).groupBy(F.xxhash64("id").alias("key")).count()  # by id needs no shuffle
        run_all(groups.select(slept(F.lit(milliseconds) + F.col("count") * 0).alias("slept")))

    return run


def joined(left: int, right: int, milliseconds: int) -> Callable[[SparkSession], None]:
    """Two sides of a join, each with tasks of its own, and the join."""

    def side(spark: SparkSession, tasks: int) -> DataFrame:
        rows = spark.range(0, tasks, 1, tasks)
        return rows.select("id", slept(F.lit(milliseconds) + F.col("id") * 0).alias("slept"))

    def run(spark: SparkSession) -> None:
        both = side(spark, left).join(side(spark, right).withColumnRenamed("slept", "other"), "id")
        run_all(both.select(slept(F.lit(milliseconds // 2) + F.length(F.coalesce("other", F.lit(""))) * 0).alias("x")))

    return run


def at_once(*jobs: Callable[[SparkSession], None]) -> Callable[[SparkSession], None]:
    """Jobs of several threads."""

    def run(spark: SparkSession) -> None:
        threads = [threading.Thread(target=job, args=(spark,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def in_turn(*jobs: Callable[[SparkSession], None], pause: float = 0) -> Callable[[SparkSession], None]:
    """Jobs one after another, with pauses of the driver in between."""

    def run(spark: SparkSession) -> None:
        for job in jobs:
            job(spark)
            time.sleep(pause)

    return run


def by_default(rows: int, milliseconds: int) -> Callable[[SparkSession], None]:
    """As many tasks as there are cores: the default of Spark."""
    return lambda spark: run_all(spark.range(rows).select(slept(F.lit(milliseconds) + F.col("id") * 0).alias("x")))


def in_python(tasks: int, seconds: float) -> Callable[[SparkSession], None]:
    """Tasks that wait in a Python function over an RDD."""

    def wait(number: int) -> int:
        time.sleep(seconds)
        return number

    return lambda spark: print(spark.sparkContext.parallelize(range(tasks), tasks).map(wait).count())


def in_function(tasks: int, rows: int, seconds: float) -> Callable[[SparkSession], None]:
    """Tasks that wait in a Python function for each row."""

    def wait(number: int) -> int:
        time.sleep(seconds)
        return number

    def run(spark: SparkSession) -> None:
        run_all(spark.range(0, tasks * rows, 1, tasks).select(F.udf(wait, "long")("id").alias("x")))

    return run


def cached(tasks: int, milliseconds: int) -> Callable[[SparkSession], None]:
    """Rows that are computed once and read twice."""

    def run(spark: SparkSession) -> None:
        rows = one_each(spark, [milliseconds] * tasks).cache()
        for _ in range(3):
            run_all(rows)
        rows.unpersist()

    return run


def computed(rows: int, tasks: int) -> Callable[[SparkSession], None]:
    """Rows that take a processor."""

    def run(spark: SparkSession) -> None:
        value = F.col("id")
        for salt in range(12):
            value = F.xxhash64(value, F.lit(salt))
        run_all(spark.range(0, rows, 1, tasks).select(F.sum(value % 1000).alias("x")))

    return run


def sorted_rows(rows: int, tasks: int) -> Callable[[SparkSession], None]:
    """Rows that are shuffled and sorted."""

    def run(spark: SparkSession) -> None:
        run_all(spark.range(0, rows, 1, tasks).withColumn("key", F.xxhash64("id")).orderBy("key"))

    return run


def counted(rows: int, tasks: int, groups: int) -> Callable[[SparkSession], None]:
    """Rows that are grouped."""

    def run(spark: SparkSession) -> None:
        keys = spark.range(0, rows, 1, tasks).select((F.xxhash64("id") % groups).alias("key"), "id")
        run_all(keys.groupBy("key").agg(F.sum("id"), F.count("*")))

    return run


def computed_in_python(rows: int, tasks: int) -> Callable[[SparkSession], None]:
    """Rows that take a processor in a Python function."""

    def work(number: int) -> int:
        return sum(number * factor % 7 for factor in range(40))

    return lambda spark: run_all(spark.range(0, rows, 1, tasks).select(F.udf(work, "long")("id").alias("x")))


SKEWED = [600] * 15 + [6000]
ADAPTIVE = {"spark.sql.adaptive.enabled": "true"}
CLUSTER = FIXED | {"spark.executor.cores": "1", "spark.cores.max": "8"}
UP = ("cores=4", "cores=8")
PARTITIONS = ("partitions=4", "partitions=8", "partitions=64")
FEW = {"master": "local[2]", "changes": ("cores=1", "cores=4")}
SLEEPING: Mapping[str, Program] = {
    "waves of 16": Program(waves(16, 1500)),
    "waves of 24": Program(waves(24, 900)),
    "waves of 37": Program(waves(37, 600)),
    "waves of 50 on two": Program(waves(50, 300), "local[2]", ("cores=1", "cores=4")),
    "waves of 9 on two": Program(waves(9, 1500), "local[2]", ("cores=1", "cores=4", "cores=8")),
    "tiny tasks": Program(waves(400, 40)),
    "tiny tasks on two": Program(waves(250, 60), "local[2]", ("cores=1", "cores=4")),
    "few tasks": Program(waves(3, 5000)),
    "one task": Program(waves(1, 8000)),
    "a skewed task": Program(uneven(SKEWED), changes=("cores=2", "cores=8", "without=skew"), twin=waves(16, 600)),
    "a skewed task first": Program(
        uneven(SKEWED[::-1]), changes=("cores=2", "cores=8", "without=skew"), twin=waves(16, 600)
    ),
    "two skewed tasks on two": Program(
        uneven([500] * 10 + [4000] * 2), "local[2]", ("cores=1", "cores=4", "without=skew"), twin=waves(12, 500)
    ),
    "a ramp": Program(uneven(range(100, 2500, 100))),
    "a ramp down": Program(uneven(range(2400, 0, -100))),
    "spread times": Program(uneven(200 + number * 617 % 1600 for number in range(32))),
    "spread times on two": Program(uneven(200 + number * 617 % 1600 for number in range(20)), "local[2]", UP),
    "groups": Program(grouped(200, 100), changes=("cores=2", "cores=8", *PARTITIONS)),
    "many groups": Program(grouped(1000, 25), changes=("cores=8", *PARTITIONS)),
    "groups on two": Program(grouped(160, 100), "local[2]", ("cores=1", "partitions=6", "partitions=48")),
    "adaptive groups": Program(grouped(100, 80), changes=("cores=2", "cores=8", "partitions=64"), settings=ADAPTIVE),
    "a join": Program(joined(12, 8, 800)),
    "a join of many": Program(joined(24, 20, 400)),
    "a join on two": Program(joined(8, 6, 800), "local[2]", ("cores=1", "cores=4")),
    "an adaptive join": Program(joined(12, 8, 800), settings=ADAPTIVE),
    "two jobs at once": Program(at_once(waves(8, 1500), waves(6, 2000))),
    "three jobs at once": Program(at_once(waves(5, 1000), waves(9, 1200), waves(3, 4000))),
    "jobs in turn": Program(in_turn(waves(8, 800), waves(6, 1200), waves(10, 500))),
    "jobs with pauses": Program(in_turn(waves(8, 800), waves(12, 500), waves(4, 1500), pause=1.5)),
    "a loop": Program(in_turn(*[waves(7, 600)] * 6)),
    "a loop on two": Program(in_turn(*[waves(5, 500)] * 8), "local[2]", ("cores=1", "cores=4")),
    "by default": Program(by_default(160, 125), settings=ADAPTIVE),
    "by default on two": Program(by_default(120, 125), "local[2]", ("cores=1", "cores=4"), settings=ADAPTIVE),
    "an rdd in Python": Program(in_python(24, 0.8)),
    "an rdd in Python on two": Program(in_python(12, 0.8), "local[2]", ("cores=1", "cores=4")),
    "a function in Python": Program(in_function(16, 10, 0.12)),
    "a cache": Program(cached(16, 1200)),
    "a cache on two": Program(cached(10, 1200), "local[2]", ("cores=1", "cores=4")),
    "two stages at once and one": Program(in_turn(at_once(waves(6, 1000), waves(6, 1000)), waves(8, 900))),
    "executors": Program(waves(24, 800), "local-cluster[2,1,1024]", ("executors=4", "memory=1536m"), CLUSTER),
    "executors and a shuffle": Program(grouped(160, 100), "local-cluster[2,1,1024]", ("executors=4",), CLUSTER),
    "an executor": Program(waves(12, 800), "local-cluster[1,2,1024]", ("executors=2", "memory=1536m"), CLUSTER),
}
COMPUTING: Mapping[str, Program] = {
    "hashes": Program(computed(120_000_000, 16), "local[2]", ("cores=1",)),
    "hashes on one": Program(computed(90_000_000, 16), "local[1]", ("cores=2",)),
    "uneven hashes": Program(in_turn(*[computed(40_000_000, 5)] * 3), "local[2]", ("cores=1",)),
    "a sort": Program(sorted_rows(32_000_000, 8), "local[2]", ("cores=1", "partitions=4", "partitions=64")),
    "a sort on one": Program(sorted_rows(20_000_000, 8), "local[1]", ("cores=2", "partitions=64")),
    "counts": Program(counted(30_000_000, 8, 2_000_000), "local[2]", ("cores=1", "partitions=64")),
    "counts on one": Program(counted(20_000_000, 8, 2_000_000), "local[1]", ("cores=2", "partitions=4")),
    "adaptive counts": Program(counted(80_000_000, 8, 100_000), "local[2]", ("cores=1",), ADAPTIVE),
    "a computing function in Python": Program(computed_in_python(2_400_000, 8), "local[2]", ("cores=1",)),
    "a computing function in Python on one": Program(computed_in_python(1_200_000, 8), "local[1]", ("cores=2",)),
}
PROGRAMS: Mapping[str, Program] = {**SLEEPING, **COMPUTING}


def changed(program: Program, change: str) -> tuple[dict[str, str], Callable[[SparkSession], None]]:
    """The settings and the jobs of a program with a change."""
    settings = {**QUIET, **program.settings, "spark.master": program.master}
    what, _, value = change.partition("=")
    _, _, given = program.master.partition("[")
    numbers = given.rstrip("]").split(",")
    if what == "cores":
        settings["spark.master"] = f"local[{value}]"
    elif what == "executors":
        settings["spark.master"] = f"local-cluster[{value},{numbers[1]},{numbers[2]}]"
    elif what == "memory":
        megabytes = value.rstrip("m")
        settings["spark.master"] = f"local-cluster[{numbers[0]},{numbers[1]},{megabytes}]"
        settings["spark.executor.memory"] = value
    elif what == "partitions":
        settings["spark.sql.shuffle.partitions"] = value
    if program.master.startswith("local-cluster"):
        settings = {"spark.executor.memory": f"{numbers[2]}m", **settings}
    return settings, program.twin if what == "without" and program.twin else program.run


def start(name: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of an application of its own."""
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def warm_up() -> None:
    """Loads classes and compiles what every program needs."""
    with start("warm-up", QUIET | FIXED | {"spark.master": "local[2]"}) as spark:
        for rows in (5, 8):
            grouped(rows, 1)(spark)
            in_function(2, 1, 0.01)(spark)
            joined(2, 2, 2)(spark)


def main() -> None:
    """Does the runs that the arguments name."""
    warm_up()
    warm = set[str]()
    for run in sys.argv[1:]:
        name, _, change = run.partition(": ")
        settings, jobs = changed(PROGRAMS[name], change)
        if name not in warm and not settings["spark.master"].startswith("local-cluster"):
            with start("warm-up", settings | {"spark.master": "local[8]"}) as spark:
                jobs(spark)
        warm.add(name)
        with start(run, settings) as spark:
            jobs(spark)


if __name__ == "__main__":
    main()

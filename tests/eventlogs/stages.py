"""Programs in trouble, each beside a twin that is not: what the diagnoses of stages and executors are tested with.

`python stages.py FOLDER NAME...` runs applications one after the other in one JVM; their event logs go to the folder.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import InheritableThread, SparkConf, SparkContext, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

HEAP_MIB: Final = 640
YOUNG_MIB: Final = 96
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.driver.memory": f"{HEAP_MIB}m",
    "spark.memory.fraction": "0.25",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmn{YOUNG_MIB}m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.metrics.pollingInterval": "100ms",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.enabled": "false",
}


def stages(spark: SparkSession, folder: Path) -> None:
    """Every trouble of a stage, and its twin, each in a job group that is named after it."""
    context = spark.sparkContext
    spark.range(10).repartition(2).count()  # nobody's trouble is that all is slow at first
    context.parallelize(range(2), 2).count()
    shapes(spark)
    accidents(spark, folder)


def shapes(spark: SparkSession) -> None:
    """Work that is cut badly, and well."""
    context = spark.sparkContext
    group(context, "hot key")
    hash_by(spark, F.when(F.col("id") % 100 < 97, 0).otherwise(F.col("id") % 64))
    group(context, "no hot key")
    hash_by(spark, F.col("id") % 64)
    group(context, "slow task")
    numbers_apart(context).map(lambda pair: lasting(3 if pair[0] == 5 else 0.02)).count()
    group(context, "no slow task")
    numbers_apart(context).map(lambda _: lasting(0.4)).count()
    group(context, "tiny tasks")
    spark.range(0, 600, 1, 600).agg(F.sum("id")).collect()
    group(context, "no tiny tasks")
    spark.range(0, 600, 1, 4).agg(F.sum("id")).collect()
    group(context, "few tasks")
    context.parallelize(range(1), 1).map(lambda _: lasting(2)).count()
    group(context, "enough tasks")
    context.parallelize(range(2), 2).map(lambda _: lasting(2)).count()
    group(context, "huge partitions")
    read_in(spark, 2)
    group(context, "no huge partitions")
    read_in(spark, 8)


def accidents(spark: SparkSession, folder: Path) -> None:
    """What goes wrong, and well."""
    context = spark.sparkContext
    group(context, "spill")
    sort(spark.range(0, 1_200_000, 1, 2))
    group(context, "no spill")
    sort(spark.range(0, 1_200_000, 1, 16))
    group(context, "failure")
    context.parallelize(range(4), 2).map(fails_once).count()
    group(context, "no failure")
    context.parallelize(range(4), 2).count()
    group(context, "lost shuffle")
    sums = shuffled(context)
    for file in folder.glob("local/**/shuffle_*"):
        file.unlink()
    sums.count()
    group(context, "no lost shuffle")
    shuffled(context).count()
    group(context, "garbage")
    work = InheritableThread(target=busy, args=(spark, 8))
    work.start()
    while work.is_alive():
        collect_garbage(context)
    group(context, "no garbage")
    busy(spark, 8)


def short(spark: SparkSession, folder: Path) -> None:
    """Two troubles that take seconds, and their twins: the live round."""
    context = spark.sparkContext
    context.parallelize(range(2), 2).count()
    group(context, "few tasks")
    context.parallelize(range(1), 1).map(lambda _: lasting(2)).count()
    group(context, "enough tasks")
    context.parallelize(range(2), 2).map(lambda _: lasting(2)).count()
    group(context, "failure")
    context.parallelize(range(4), 2).map(fails_once).count()
    group(context, "no failure")
    context.parallelize(range(4), 2).count()


def gap(spark: SparkSession, folder: Path) -> None:
    """The driver is busy with itself."""
    spark.sparkContext.parallelize(range(2), 2).map(lambda _: lasting(0.5)).count()
    lasting(8)
    spark.sparkContext.parallelize(range(2), 2).map(lambda _: lasting(0.5)).count()


def with_heap_used(mib: int) -> Callable[[SparkSession, Path], None]:
    """Work for two cores, beside a heap that is used in part."""

    def run(spark: SparkSession, folder: Path) -> None:
        with filled(spark, mib):
            busy(spark, 12)

    return run


def idle_cluster(spark: SparkSession, folder: Path) -> None:
    """One of two cores works."""
    spark.sparkContext.parallelize(range(6), 1).map(lambda _: lasting(0.5)).count()


def lost_executor(spark: SparkSession, folder: Path) -> None:
    """An executor is killed while it works."""
    spark.sparkContext.parallelize(range(2), 2).map(kills_its_executor_once).count()


APPLICATIONS: Final[dict[str, tuple[Callable[[SparkSession, Path], None], str]]] = {
    "short": (short, "local[2,4]"),
    "stages": (stages, "local[2,4]"),
    "gap": (gap, "local[2]"),
    "healthy": (with_heap_used(400), "local[2]"),
    "full": (with_heap_used(HEAP_MIB - YOUNG_MIB - 20), "local[2]"),
    "empty": (with_heap_used(0), "local[2]"),
    "busy cluster": (with_heap_used(0), "local-cluster[1,2,1024]"),
    "idle cluster": (idle_cluster, "local-cluster[1,2,1024]"),
    "lost executor": (lost_executor, "local-cluster[1,2,1024]"),
}
RECORDED: Final = tuple(name for name in APPLICATIONS if name != "short")
"""The applications whose logs tests replay."""


def main(folder: Path, names: list[str]) -> None:
    """Runs some applications."""
    home = folder / "spark"  # what the workers of a local cluster leave behind goes to the home of Spark
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    for name in names:
        run, master = APPLICATIONS[name]
        log = folder / "logs" / name
        log.mkdir(parents=True)
        places = {"spark.eventLog.dir": log.as_uri(), "spark.local.dir": str(folder / "local")}
        conf = SparkConf().setAll([*SETTINGS.items(), *places.items()]).setMaster(master).setAppName(name)
        spark = SparkSession(SparkContext(conf=conf))
        collect_garbage(spark.sparkContext)
        run(spark, folder)
        spark.stop()
    shutil.rmtree(folder / "local", ignore_errors=True)


def collect_garbage(context: SparkContext) -> None:
    """What others have left behind in the heap is not the trouble of the next."""
    jvm: Any = context._jvm
    jvm.System.gc()


def group(context: SparkContext, name: str) -> None:
    """The jobs that follow are of a case."""
    collect_garbage(context)
    context.setJobGroup(name, name)


@contextmanager
def filled(spark: SparkSession, mib: int) -> Iterator[None]:
    """Takes up a part of the heap of the driver."""
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    jvm.System.gc()
    memory = jvm.java.lang.Runtime.getRuntime()
    used = (memory.totalMemory() - memory.freeMemory()) // 1024**2
    taken = gateway.new_array(jvm.long, max(0, mib - used) * 1024**2 // 8)  # Py4J would fetch an array of bytes
    yield
    gateway.detach(taken)


def busy(spark: SparkSession, tasks: int) -> None:
    """Work for two cores."""
    spark.sparkContext.parallelize(range(tasks), tasks).map(lambda _: lasting(0.5)).count()


def hash_by(spark: SparkSession, key: Column) -> None:
    """Work on rows, in tasks by their keys."""
    rows = spark.range(500_000).withColumn("key", key).repartition("key")
    rows.select(F.sha2(F.repeat(F.col("id").cast("string"), 100), 512)).write.format("noop").mode("append").save()


def read_in(spark: SparkSession, tasks: int) -> None:
    """Reads 24 MB that cannot be compressed by much, in some tasks."""
    rows = spark.range(0, 300_000, 1, 8).select(F.unhex(F.sha2(F.col("id").cast("string"), 512)))
    rows.repartition(tasks).write.format("noop").mode("append").save()


def sort(rows: DataFrame) -> None:
    """Sorts the rows of each task."""
    texts = rows.select(F.repeat(F.hash("id").cast("string"), 8).alias("text"))
    texts.sortWithinPartitions("text").write.format("noop").mode("append").save()


def numbers_apart(context: SparkContext) -> Any:
    """Eight pairs, in a task each that reads its pair of a shuffle."""
    return context.parallelize(range(8), 2).map(lambda number: (number, number)).partitionBy(8, int)


def shuffled(context: SparkContext) -> Any:
    """An RDD whose shuffle has been written."""
    sums = context.parallelize(range(100), 2).map(lambda number: (number % 3, number)).reduceByKey(max)
    sums.count()
    return sums


def lasting(seconds: float) -> float:
    """Takes a place among the tasks, and no processor from the other tests."""
    time.sleep(seconds)
    return seconds


def fails_once(number: int) -> int:
    """Fails in the first attempt of the first task."""
    if _is_first_attempt_of_the_first_task():
        raise RuntimeError("the first attempt fails on purpose")
    return number


def kills_its_executor_once(number: int) -> float:
    """Works, then kills the JVM above the worker and its daemon, in the first attempt of the first task."""
    lasting(1)
    if _is_first_attempt_of_the_first_task():
        fields = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        os.kill(int(fields[1]), 9)
    return lasting(0.5)


def _is_first_attempt_of_the_first_task() -> bool:
    context = TaskContext.get()
    return context is not None and context.partitionId() == 0 and context.attemptNumber() == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""What is hard to tell of a job, each once, in a group of its own: `python -m tests.eventlogs.hard FOLDER`.

The log is in FOLDER/logs. Every case runs under a step of its own, whose span id is the number of the case.
"""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.settings import load_settings
from spark_app.spark import job_properties, session
from tests.polling import poll_until

TRACE: Final = "c" * 32
CASES: Final = (
    "one step", "another step", "lost shuffle", "replanned", "no jobs", "merge", "python error", "division",
    "missing file", "subquery", "slow broadcast", "cancelled", "shared stage", "streams", "batches",
    "speculation", "lost executor", "killed",
)  # fmt: skip
PROPERTIES: Final = {
    "spark.master": "local[3]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.eventLog.rolling.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


def step(case: str) -> str:
    """The `traceparent` of a case."""
    return f"00-{TRACE}-{span_id(case):016x}-01"


def span_id(case: str) -> int:
    """The id of the span that somebody else has made of a case."""
    return 1 + CASES.index(case)


def started(folder: Path, **properties: str) -> SparkSession:
    """A session that logs to a folder."""
    own = {
        "spark.eventLog.dir": str(folder / "logs"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    settings = load_settings().model_copy(update={"home": folder})
    (folder / "logs").mkdir(parents=True)
    log_file, extra = folder / "spark.jsonl", PROPERTIES | own | properties
    return session.start(settings, name="hard", log_file=log_file, extra=extra)


def main(folder: Path) -> None:
    """Runs all cases."""
    spark = started(folder)
    (folder / "meeting").mkdir()
    threads = [
        begun(spark, case, lambda spark: concurrent(spark, folder / "meeting")) for case in ("one step", "another step")
    ]
    for thread in threads:
        thread.join()
    run(spark, "lost shuffle", lambda spark: lost_shuffle(spark, folder / "local"))
    run(spark, "replanned", replanned)
    run(spark, "no jobs", without_jobs)
    without_jobs(spark)
    run(spark, "merge", lambda spark: merge(spark, folder / "table"))
    run(spark, "python error", lambda spark: spark.range(1).select(F.udf(fails, "long")("id")).collect())
    run(spark, "division", lambda spark: spark.range(1).select(F.expr("1 / id")).collect())
    run(spark, "missing file", lambda spark: missing_file(spark, folder / "gone"))
    run(spark, "subquery", lambda spark: spark.range(1).where("id = (SELECT id FROM range(2))").collect())
    run(spark, "slow broadcast", slow_broadcast)
    run(spark, "cancelled", cancelled)
    run(spark, "shared stage", lambda spark: shared_stage(spark, folder / "both"))
    (folder / "numbers").mkdir()
    run(spark, "streams", lambda spark: streams(spark, folder))
    run(spark, "batches", lambda spark: batches(spark, folder))
    session.stop(spark)


@contextlib.contextmanager
def of_a_case(spark: SparkSession, case: str) -> Iterator[None]:
    """What this thread does belongs to a case."""
    spark.sparkContext.setJobGroup(case, case)
    with job_properties.step_properties(spark, case, traceparent=step(case), trace_id=None):
        yield


def run(spark: SparkSession, case: str, work: Callable[[SparkSession], Any]) -> None:
    """Runs one case; many of them fail."""
    with contextlib.suppress(Exception), of_a_case(spark, case):
        work(spark)


def begun(spark: SparkSession, case: str, work: Callable[[SparkSession], Any]) -> InheritableThread:
    """Runs one case beside others."""
    thread = InheritableThread(target=run, args=(spark, case, work))
    thread.start()
    return thread


def concurrent(spark: SparkSession, place: Path) -> None:
    """A query, and a job of an RDD that ends when that of another thread has begun."""
    spark.range(4, numPartitions=2).groupBy((F.col("id") % 2).alias("key")).count().collect()
    spark.sparkContext.parallelize(range(1), 1).map(lambda _: meets(place)).collect()


def lost_shuffle(spark: SparkSession, local: Path) -> None:
    """The output of a stage is there for the second job, and then it is not: the stage runs again."""
    pairs = spark.sparkContext.parallelize(range(20), 2).map(lambda number: (number % 3, number))
    sums = pairs.reduceByKey(lambda one, other: one + other)
    sums.count()
    for file in local.glob("**/shuffle_*.data"):
        file.unlink()
    sums.collect()


def replanned(spark: SparkSession) -> None:
    """A join of two shuffles becomes a broadcast when it is seen how little is left of one side."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "10m")
    few = spark.range(5000).where("id % 2500 = 7").withColumn("one", F.lit(1))
    spark.range(5000).join(few.groupBy("id").agg(F.sum("one").alias("ones")), "id").collect()
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.unset("spark.sql.adaptive.autoBroadcastJoinThreshold")


def without_jobs(spark: SparkSession) -> None:
    """A query that only the driver is at work for, with a tag that a program has set."""
    spark.sparkContext.addJobTag("of the program")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW nothing AS SELECT 1 AS one")


def merge(spark: SparkSession, table: Path) -> None:
    """Commands that run queries of their own."""
    spark.sql(f"CREATE TABLE delta.`{table}` USING delta AS SELECT id, 1 AS times FROM range(10)")
    spark.sql(
        f"MERGE INTO delta.`{table}` old USING (SELECT id FROM range(5, 15)) new ON old.id = new.id "
        "WHEN MATCHED THEN UPDATE SET times = times + 1 WHEN NOT MATCHED THEN INSERT (id, times) VALUES (new.id, 1)"
    )
    spark.sql(f"OPTIMIZE delta.`{table}`")


def missing_file(spark: SparkSession, folder: Path) -> None:
    """Files that were there when the query was planned."""
    spark.range(3).write.parquet(str(folder))
    rows = spark.read.parquet(str(folder))
    shutil.rmtree(folder)
    rows.collect()


def slow_broadcast(spark: SparkSession) -> None:
    """A side that takes longer to collect than Spark waits for it."""
    spark.conf.set("spark.sql.broadcastTimeout", "1")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    slow = spark.range(1).select(F.udf(sleeps, "long")("id").alias("id"))
    try:
        spark.range(10).join(F.broadcast(slow), "id").collect()
    finally:
        spark.conf.unset("spark.sql.broadcastTimeout")
        spark.conf.unset("spark.sql.adaptive.enabled")


def cancelled(spark: SparkSession) -> None:
    """A query whose group is cancelled as soon as its job is at work."""
    thread = InheritableThread(target=run, args=(spark, "cancelled", endless))
    thread.start()
    until_at_work(spark, "cancelled")
    spark.sparkContext.cancelJobGroup("cancelled")
    thread.join()


def shared_stage(spark: SparkSession, both: Path) -> None:
    """Two jobs at once that need the same shuffle, which is not made before both have begun."""
    made = spark.sparkContext.parallelize(range(2), 2).map(lambda number: (until_there(both), number))
    shared = made.reduceByKey(max)
    threads = [InheritableThread(target=shared.collect) for _ in range(2)]
    for thread in threads:
        thread.start()
    tracker = spark.sparkContext.statusTracker()
    poll_until(lambda: len(tracker.getJobIdsForGroup("shared stage")) == len(threads), "two jobs")
    both.touch()
    for thread in threads:
        thread.join()


def streams(spark: SparkSession, folder: Path) -> None:
    """Two queries at once, of which one is started again; a third fails. A batch for each file, and none is cut off."""
    numbers = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(folder / "numbers"))
    begun = [
        numbers.writeStream.format("noop").queryName(name).option("checkpointLocation", str(folder / name))
        for name in ("first", "second")
    ]
    for files, starting in (("ab", begun), ("c", begun[:1])):
        for file in files:
            (folder / "numbers" / file).write_text("1\n" * 10, encoding="utf-8")
        for query in [one.trigger(availableNow=True).start() for one in starting]:
            query.awaitTermination()
    broken = numbers.select(F.udf(fails, "long")("value")).writeStream.format("noop").queryName("broken")
    broken.option("checkpointLocation", str(folder / "broken")).start().awaitTermination()


def batches(spark: SparkSession, folder: Path) -> None:
    """A query whose batches run what a program wants, in a group of the program's own; then nothing is new."""
    source = folder / "source"
    spark.range(10).coalesce(1).write.parquet(str(source))
    rows = spark.readStream.schema("id long").parquet(str(source))
    begun = rows.writeStream.queryName("by batch").option("checkpointLocation", str(folder / "by batch"))
    query = begun.foreachBatch(counted).trigger(processingTime="100 milliseconds").start()
    until_batches(query, 1)
    time.sleep(0.5)
    query.stop()


def counted(rows: DataFrame, _: int) -> None:
    """Two queries, in a group of their own."""
    rows.sparkSession.sparkContext.setJobGroup("a group of the program", "counts")
    rows.count()
    rows.groupBy("id").count().collect()


def until_batches(query: Any, number: int) -> None:
    """Waits until a streaming query has done some batches."""
    poll_until(lambda: len({progress["batchId"] for progress in query.recentProgress}) >= number, f"{number} batches")


def until_at_work(spark: SparkSession, *groups: str) -> None:
    """Waits until each of some groups of jobs has running tasks."""
    tracker = spark.sparkContext.statusTracker()

    def is_at_work(group: str) -> bool:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return any(stage and stage.numActiveTasks for stage in stages)

    poll_until(lambda: all(map(is_at_work, groups)), f"{groups} at work")


def until_idle(spark: SparkSession) -> None:
    """Waits until no executor has a running task, one that is no longer wanted included."""
    tracker: Any = spark.sparkContext._jsc.sc().statusTracker()
    poll_until(lambda: not sum(each.numRunningTasks() for each in tracker.getExecutorInfos()), "the end of all tasks")


def endless(spark: SparkSession) -> None:
    """A query that nobody waits for."""
    spark.range(1).select(F.udf(sleeps, "long")("id")).collect()


def sleeps(number: int) -> int:
    """The same, much later."""
    time.sleep(300)
    return number


def meets(place: Path) -> None:
    """Comes to a place, and waits there for another process."""
    (place / str(os.getpid())).touch()
    poll_until(lambda: len(list(place.iterdir())) == 2, "another process")


def until_there(file: Path) -> int:
    """Waits for a file."""
    poll_until(file.exists, f"{file}")
    return 0


def fails(number: int) -> int:
    """An error that is the user's own."""
    raise LookupError(f"no number {number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

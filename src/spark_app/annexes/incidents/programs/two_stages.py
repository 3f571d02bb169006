"""A count by key of rows with work in them, which takes half a minute; it says when its tasks run."""

import sys
import threading
import time

from pyspark.sql import SparkSession

HASHES = 24

spark = SparkSession.builder.appName(sys.argv[1]).getOrCreate()
tracker = spark.sparkContext.statusTracker()


def say_when_tasks_run() -> None:
    """Waits for the first tasks that have ended: then both executors have some."""
    while not any(
        stage and stage.numCompletedTasks >= 2 for stage in map(tracker.getStageInfo, tracker.getActiveStageIds())
    ):
        time.sleep(0.2)
    print("tasks run", flush=True)


threading.Thread(target=say_when_tasks_run, daemon=True).start()
value = f"{'sha2(' * HASHES}string(id){', 512)' * HASHES} AS value"
rows = spark.range(0, 1_200_000, 1, 24).mapInPandas(lambda frames: frames, "id long").selectExpr("id % 7 AS key", value)
rows.repartition(16, "key").groupBy("key").agg({"value": "max"}).write.format("noop").mode("overwrite").save()
spark.stop()

"""A shuffle that does not fit on the disk of one worker.

The folder for shuffle files of the executor there becomes a link to a small file system, which is full after some
megabytes. The folder belongs to this application, and goes with it.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

WORKER = "spark-worker-1"
SMALL = Path("/dev/shm/incident_full_disk")


def make_small(_: Iterable[int]) -> Iterable[str]:
    """Links the folder for shuffle files to the small file system, if this is the worker; says which were linked."""
    if os.environ["HOSTNAME"] == WORKER:
        SMALL.mkdir(exist_ok=True)
        folders = map(Path, os.environ["SPARK_EXECUTOR_DIRS"].split(":"))
        for blocks in (each for folder in folders for each in folder.glob("blockmgr-*") if not each.is_symlink()):
            shutil.rmtree(blocks)
            blocks.symlink_to(SMALL)
            yield str(blocks)


spark = SparkSession.builder.appName(sys.argv[1]).config("spark.sql.adaptive.enabled", "false").getOrCreate()
linked = spark.sparkContext.parallelize(range(16), 16).mapPartitions(make_small).collect()
print(f"linked {linked}", flush=True)
rows = spark.range(0, 6_000_000, 1, 8).selectExpr("id", "sha2(string(id), 512) AS text")
rows.repartition(16, "id").sortWithinPartitions("text").write.format("noop").mode("overwrite").save()
spark.stop()

"""A job with our worker module gives what it gives without: results and errors."""

import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

SESSION: Final = """
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.eventLog.enabled", "false").config("spark.sql.shuffle.partitions", "2")
spark = builder.config("spark.python.worker.module", "pyspark_frozen").getOrCreate()
"""
JOB: Final = """
import gc, json
from pyspark.sql import functions as F

def doubled(parts):
    for part in parts:
        part["id"] = part["id"] * 2
        yield part

def fails(number):
    raise ValueError(f"no {number}")

rows = spark.range(0, 40, 1, 8)
results = [row["id"] for row in rows.mapInPandas(doubled, "id long").collect()]
results += [row[0] for row in rows.select(F.udf(lambda number: number + 1, "long")("id")).collect()]
pairs = spark.sparkContext.parallelize(range(12), 6).map(lambda number: (number % 3, number))
results += sorted(pairs.reduceByKey(int.__add__).collect())
frozen = spark.sparkContext.parallelize([0], 1).map(lambda _: gc.get_freeze_count()).collect()[0]
try:
    spark.range(1).select(F.udf(fails, "long")("id")).collect()  # of one row: which task fails first is chance
except Exception as error:
    said = [line for line in str(error).splitlines() if "ValueError" in line or "no 0" in line]
print(json.dumps({"results": [results, said], "frozen": frozen}))
"""


def measured() -> dict[str, Any]:
    """What the job says in a session of its own, with our worker module."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", SESSION + JOB], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_frozen_workers_change_neither_results_nor_errors(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what they hold is frozen; in the session of all tests, PySpark's own worker works."""
    exec(JOB, {"__name__": "__main__", "spark": spark})
    default, frozen = json.loads(capsys.readouterr().out), measured()
    assert frozen["results"] == default["results"]
    assert default["frozen"] == 0
    assert frozen["frozen"] > 0

"""A job with our worker module gives what it gives without: results and errors."""

import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest

PROGRAM: Final = """
import gc, json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.eventLog.enabled", "false").config("spark.sql.shuffle.partitions", "2")
if sys.argv[1] != "default":
    builder = builder.config("spark.python.worker.module", sys.argv[1])
spark = builder.getOrCreate()

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
    rows.select(F.udf(fails, "long")("id")).collect()
except Exception as error:
    said = [line for line in str(error).splitlines() if "ValueError" in line or "no 0" in line]
print(json.dumps({"results": [results, said], "frozen": frozen}))
"""


def measured(module: str) -> dict[str, Any]:
    """What the job says with a worker module."""
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def default() -> dict[str, Any]:
    """With PySpark's own worker."""
    return measured("default")


def test_frozen_workers_change_neither_results_nor_errors(default: dict[str, Any]) -> None:
    """And what they hold is frozen."""
    frozen = measured("pyspark_frozen")
    assert frozen["results"] == default["results"]
    assert default["frozen"] == 0
    assert frozen["frozen"] > 0

"""Runs and programs on the cluster that are sampled show the functions of their executors and Python workers."""

import json
import shlex
from typing import Any, Final

import pytest

from tests.e2e.signals import Day
from tests.e2e.stack import records, run_in

PROGRAM: Final = """
from pyspark.sql import SparkSession, functions as F

def much(number):
    return sum(number % each for each in range(1, 2000))

def little(number):
    return sum(number % each for each in range(1, 200))

spark = SparkSession.builder.appName("hashes").getOrCreate()
both = F.udf(lambda number: much(number) + little(number), "long")
spark.range(0, 60_000, 1, 4).select(both("id")).write.format("noop").mode("overwrite").save()
"""
FILE: Final = "/dev/shm/hashes.py"
RESULTS: Final = "/dev/shm/hashes.json"


def in_tasks(application: dict[str, Any]) -> dict[str, Any]:
    """The samples of an application, whose tasks run in executors of other containers."""
    samples: dict[str, Any] = application["stack_samples"]
    assert samples, application["remarks"]
    assert samples["task_samples"] > 0
    assert samples["in_stages_ratio"] >= 0.95
    return samples


@pytest.mark.before_release
def test_a_run_with_the_switch_shows_functions_of_executors(day: Day) -> None:
    """Its report has its stages and its driver; executors leave nothing in the folder that they share with that."""
    assert day.runs
    done = run_in("spark-master", "run_etl.sh", "2024-01-01", "--json", SPARK_APP_PROFILE="1")
    assert "sample" not in done.stderr
    for run in records(done.stdout):
        report = run_in("spark-master", "spark-app", "report", run["run_id"], "--json").stdout
        places = in_tasks(json.loads(report)["applications"][0])["places"]
        assert "driver" in {place["place"] for place in places}, "one run follows another"
    assert run_in("spark-worker-1", "sh", "-c", "ls -d /data/spark-app-*", check=False).stdout == ""


@pytest.mark.usefixtures("day")
def test_a_program_below_observe_shows_its_hot_function() -> None:
    """It runs as it is; of the function for each row the one is named that takes the time."""
    run_in("spark-master", "sh", "-c", f"cat >{FILE} <<'END'\n{PROGRAM.strip()}\nEND")
    command = f"spark-app observe --profile --json {RESULTS} -- spark-submit {FILE}"
    run_in("spark-master", *shlex.split(command))
    [application] = json.loads(run_in("spark-master", "cat", RESULTS).stdout)["applications"]
    places = in_tasks(application)["places"]
    stages = [place for place in places if place["stage"]]
    assert len(stages) < len(places), "the driver is sampled, too"
    [hottest, *_] = max(stages, key=lambda place: place["samples"])["functions"]
    assert hottest["name"].startswith("much"), hottest

"""Programs that meet what real clusters do: lost executors, excluded nodes, barriers, executors that come and go.

`python clusters.py FOLDER NAME MASTER` runs one of them. It leaves its event log in FOLDER/logs/NAME, and what Spark
itself counts in FOLDER/NAME.json.
"""

import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import BarrierTaskContext, SparkConf, SparkContext, TaskContext

MASTER: Final = "local-cluster[2,1,1024]"
TWO_HOSTS: Final = ("excluded", "speculation")
"""Applications for which executors on one host are not enough: a copy of a task runs on another host than the task."""
SETTINGS: Final = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
COUNTED: Final = ("numCompleteTasks", "numFailedTasks", "numKilledTasks")
"""What Spark's REST API says of a stage attempt, and we say too."""
EXCLUDED_SECONDS: Final = 30
"""Failures that are older than an exclusion would last do not count: on a busy machine the stage takes some seconds."""
Program = Callable[[SparkContext, Path], Any]


def main(folder: Path, name: str, master: str) -> None:
    """Runs one application in this process."""
    (folder / "logs" / name).mkdir(parents=True)
    home = folder / "spark"  # what the workers of a local cluster leave behind goes to the home of Spark
    home.mkdir(exist_ok=True)
    for part in ("bin", "jars"):
        if not (home / part).exists():
            (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    program, properties = APPLICATIONS[name]
    places = {"spark.eventLog.dir": (folder / "logs" / name).as_uri(), "spark.local.dir": str(folder / "local")}
    own = {"spark.master": master, **SETTINGS, **places, **properties}
    context = SparkContext(conf=SparkConf().setAll(list(own.items())).setAppName(name))
    until_executors(context, 2)
    program(context, folder)
    (folder / f"{name}.json").write_text(json.dumps(counts(context), indent=1) + "\n", encoding="utf-8")
    context.stop()


def until_executors(context: SparkContext, number: int) -> None:
    """Waits for the executors: the driver is one of those that Spark lists."""
    tracker: Any = context._jsc.sc().statusTracker()
    for _ in range(600):
        if len(tracker.getExecutorInfos()) > number:
            return
        time.sleep(0.1)
    raise TimeoutError(f"fewer than {number} executors")


def until_idle(context: SparkContext) -> None:
    """Waits until no executor has a running task, one that is no longer wanted included."""
    tracker: Any = context._jsc.sc().statusTracker()
    while any(each.numRunningTasks() for each in tracker.getExecutorInfos()):
        time.sleep(0.1)


def counts(context: SparkContext) -> dict[str, dict[str, int]]:
    """What Spark counts, by the stage and its attempt: `3.1`. Its REST API knows what its listeners took."""
    until_idle(context)
    jvm_context: Any = context._jsc.sc()
    jvm_context.listenerBus().waitUntilEmpty()
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages") as answer:
        stages = json.load(answer)
    ran = [stage for stage in stages if stage["status"] != "SKIPPED"]
    counts = {f"{stage['stageId']}.{stage['attemptId']}": {key: stage[key] for key in COUNTED} for stage in ran}
    return dict(sorted(counts.items()))


def lost_output(context: SparkContext, folder: Path) -> None:
    """An executor dies in the stage in which it has written output for the next one: Spark resubmits those tasks."""
    died = folder / "died of lost output"
    pairs = context.parallelize(range(16), 16).mapPartitionsWithIndex(lambda index, rows: dies(index, rows, died, at=9))
    pairs.map(lambda number: (number % 3, number)).reduceByKey(max, 2).collect()


def fetch_failure(context: SparkContext, folder: Path) -> None:
    """An executor dies in the stage after that: the others do not find its output, and the stage before runs again."""
    died = folder / "died of fetch failure"
    grouped = context.parallelize(range(40), 4).map(lambda number: (number % 4, number)).groupByKey(4)
    grouped.mapPartitionsWithIndex(lambda index, rows: dies(index, rows, died, at=0)).collect()


def excluded(context: SparkContext, folder: Path) -> None:
    """Tasks fail on one executor until Spark excludes it and its host; after some seconds both are used again."""
    numbers = context.parallelize(range(12), 12)
    numbers.map(lambda number: lasting(0.3, fails_on="0", number=number)).collect()
    time.sleep(EXCLUDED_SECONDS + 1)
    numbers.map(lambda number: lasting(0.1, fails_on="", number=number)).collect()


def barrier(context: SparkContext, folder: Path) -> None:
    """All tasks of a stage start together, and wait for each other."""
    context.parallelize(range(4), 2).barrier().mapPartitions(meets).collect()


def come_and_go(context: SparkContext, folder: Path) -> None:
    """Idle executors are released, and come back with the work."""
    numbers = context.parallelize(range(8), 8)
    numbers.map(lambda number: lasting(0.3, fails_on="", number=number)).collect()
    time.sleep(6)
    numbers.map(lambda number: lasting(0.5, fails_on="", number=number)).collect()


def speculation(context: SparkContext, folder: Path) -> None:
    """A slow task gets a copy, and the slower of the two is killed."""
    context.parallelize(range(8), 8).mapPartitionsWithIndex(slow_at_first).collect()


APPLICATIONS: Final[dict[str, tuple[Program, dict[str, str]]]] = {
    "lost output": (lost_output, {}),
    "fetch failure": (fetch_failure, {}),
    "excluded": (
        excluded,
        {
            "spark.excludeOnFailure.enabled": "true",
            "spark.excludeOnFailure.timeout": f"{EXCLUDED_SECONDS}s",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "2",
            "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "1",
            "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": "2",
            "spark.excludeOnFailure.application.maxFailedExecutorsPerNode": "1",
        },
    ),
    "barrier": (barrier, {}),
    "dynamic allocation": (
        come_and_go,
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.initialExecutors": "2",
            "spark.dynamicAllocation.maxExecutors": "2",
            "spark.dynamicAllocation.executorIdleTimeout": "2s",
        },
    ),
    "speculation": (
        speculation,
        {
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "100ms",
        },
    ),
}


def dies(index: int, rows: Iterable[Any], has_died: Path, *, at: int) -> Iterator[Any]:
    """One partition takes its executor with it, once: the parent of the parent of a worker is the JVM."""
    lasting(0.2, fails_on="", number=index)
    if index == at and not has_died.exists():
        has_died.touch()
        stat = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    yield from rows


def lasting(seconds: float, *, fails_on: str, number: int) -> int:
    """Takes a place among the tasks; fails on one executor, whose id is the name of its folder."""
    time.sleep(seconds)
    if Path.cwd().name == fails_on:
        raise RuntimeError("a bad executor, on purpose")
    return number


def meets(rows: Iterable[int]) -> Iterator[int]:
    """Waits for the other tasks of the stage."""
    BarrierTaskContext.get().barrier()
    yield from rows


def slow_at_first(index: int, rows: Iterable[int]) -> Iterator[int]:
    """The first attempt of one task takes longer than anybody waits."""
    context = TaskContext.get()
    time.sleep(60 if index == 0 and context is not None and context.attemptNumber() == 0 else 0.2)
    yield from rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

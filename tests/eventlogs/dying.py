"""Jobs that lose something: `python -m tests.eventlogs.dying FOLDER [MASTER]`; the log is in FOLDER/logs.

On a cluster of several hosts an executor dies, and a slow task is run again beside itself. Without the URL of a master
the JVM itself is killed, with a stream and a query at work.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.spark import session
from tests.eventlogs import walking
from tests.eventlogs.hard import begun, endless, of_a_case, run, sleeps, started, until_at_work, until_idle
from tests.polling import poll_until

CLUSTER: Final = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def main(folder: Path, master: str | None) -> None:
    """Loses an executor, or the JVM."""
    if master is None:
        killed(started(folder), folder)
    else:
        on_a_cluster(started(folder, **{"spark.master": master, **CLUSTER}), folder)


def on_a_cluster(spark: SparkSession, folder: Path) -> None:
    """A task that is run again beside itself, and an executor that dies with what it has written for others."""
    context = spark.sparkContext
    run(spark, "speculation", lambda _: context.parallelize(range(4), 4).map(slow_at_first).collect())
    until_idle(spark)
    pairs = context.parallelize(range(40), 4).map(lambda number: (number % 4, number)).groupByKey(2)
    died = folder / "died"
    run(spark, "lost executor", lambda _: pairs.mapPartitions(lambda rows: dies_once(rows, died)).collect())
    session.stop(spark)


def killed(spark: SparkSession, folder: Path) -> None:
    """A stream and a query are at work, and their jobs are in the log, when the JVM is killed."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").option("numPartitions", "1").load()
    slow = rate.select(F.udf(sleeps, "long")("value")).writeStream.format("noop").queryName("killed stream")
    with of_a_case(spark, "killed"):
        stream = slow.option("checkpointLocation", str(folder / "killed")).start()
        begun(spark, "killed", endless)
    until_at_work(spark, "killed", str(stream.runId))
    (log,) = (folder / "logs").iterdir()
    poll_until(
        lambda: sum(b'"SparkListenerJobStart"' in line for line in walking.lines(log)) == 2, "two jobs in the log"
    )
    gateway: Any = SparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)


def slow_at_first(number: int) -> int:
    """The first attempt of one task takes longer than anybody waits."""
    context = TaskContext.get()
    if number == 0 and context is not None and context.attemptNumber() == 0:
        time.sleep(60)
    return number


def dies_once(rows: Iterable[Any], has_died: Path) -> Iterator[Any]:
    """The first of all tasks takes its executor with it; the parent of its parent is the JVM."""
    with contextlib.suppress(FileExistsError):
        has_died.touch(exist_ok=False)
        status = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    yield from rows


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if sys.argv[2:] else None)

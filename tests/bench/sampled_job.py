"""A job of the JVM or of Python workers, measured with and without samples of its stacks.

`python -m tests.bench.sampled_job KIND TASKS`. The last line has the CPU seconds of the work of all processes, in a
warm session; of them, those of the threads that sample.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench import job
from tests.bench.measure import children

ROWS: Final = 6_000
"""Rows of a task of Python workers."""


def python(spark: SparkSession, tasks: int) -> None:
    """Calls a function of Python for each row."""

    def remainder(number: int) -> int:
        total = 0
        for index in range(300):
            total += index * number % 7
        return total

    call = F.udf(remainder, "long")
    job.discard(spark.range(0, ROWS * tasks, 1, tasks).select(call("id")))


def processes(pid: int) -> list[int]:
    """A process and all below it."""
    return [pid, *(each for child in children(pid) for each in processes(child))]


def seconds(stat: Path) -> float:
    """CPU seconds of a process or thread, by the scheduler's count in nanoseconds."""
    return int((stat / "schedstat").read_text().split()[0]) / 1e9


def used(pids: list[int]) -> tuple[float, float]:
    """CPU seconds of all threads of some processes, and of those that sample.

    In a JVM they have a name; of a worker of Python, any but the first one does.
    """
    whole = sampling = 0.0
    for pid in pids:
        threads = sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda each: int(each.name))
        for thread in threads:
            try:
                took, name = seconds(thread), (thread / "comm").read_text()
            except FileNotFoundError:  # it has just ended
                continue
            whole += took
            is_second = name.startswith("python") and int(thread.name) != pid
            sampling += took if name.startswith("JFR") or is_second else 0
    return whole, sampling


def main(kind: str, tasks: int) -> None:
    """Runs a job in a session that a smaller job has warmed up."""
    builder = (
        SparkSession.builder.appName(kind).config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    )
    builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    work = python if kind == "python" else job.ordinary
    work(spark, max(2, tasks // job.WARM_SHARE))
    gateway: Any = SparkContext._gateway
    pids = processes(gateway.proc.pid)
    started, (before, sampling) = time.monotonic(), used(pids)
    own = time.process_time()
    work(spark, tasks)
    after, sampled = used(pids)
    cost = {"wall": time.monotonic() - started, "cpu": after - before + time.process_time() - own}
    print(json.dumps(cost | {"sampling": sampled - sampling, "processes": len(pids)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

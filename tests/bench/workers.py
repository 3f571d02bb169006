"""What the settings of Python workers gain on many small tasks.

BENCH_PYTHON_TASKS (300) makes it shorter for a try. One JVM, with a session of its own for each setting in each round:
`config/spark/spark-defaults.conf` describes both.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_app.spark.jvm import stop_jvm
from tests.bench.measure import ROUNDS, children, cpu_seconds, ratio, spread

TASKS: Final = int(os.environ.get("BENCH_PYTHON_TASKS", "300"))
ROWS: Final = 10
WARM: Final = 12
"""Tasks before the measured ones; a worker is warm after the third."""
SOCKETS: Final = {"spark.python.unix.domain.socket.enabled": "true"}
FROZEN: Final = {"spark.python.worker.module": "pyspark_frozen"}
DEFAULT: Final = "default"
SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    DEFAULT: {"spark.python.unix.domain.socket.enabled": "false"},
    "Unix sockets": SOCKETS,
    "pyspark_frozen": FROZEN | {"spark.python.unix.domain.socket.enabled": "false"},
    "both": SOCKETS | FROZEN,
}
COMMON: Final = {
    "spark.master": "local[2]",
    "spark.app.name": "workers",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}


@dataclass(frozen=True)
class Cost:
    """Seconds that the tasks took: wall time, CPU time of the Python workers and of the JVM."""

    wall: float
    python: float
    jvm: float


def workers(_scratch: Path) -> list[str]:
    """Every setting against PySpark's own."""
    costs: dict[str, list[Cost]] = {name: [] for name in SETTINGS}
    for turn in range(ROUNDS):
        for name, properties in SETTINGS.items():
            costs[name].append(cost(properties))
            print(f"workers: round {turn + 1} of {ROUNDS}, {name}: {costs[name][-1]}", flush=True)
    gateway: Any = SparkContext._gateway
    stop_jvm(gateway, patience=10)
    return [
        "| setting | wall s | Python CPU s | JVM CPU s | default : setting, wall | default : setting, Python CPU |",
        "|---|---|---|---|---|---|",
        *(_line(name, runs, costs[DEFAULT]) for name, runs in costs.items()),
        "",
        f"{TASKS:,} tasks of `mapInArrow` with {ROWS} rows each, local[2], after {WARM} others; the settings in turn.",
        "The interval is that of the mean at 95 %.",
    ]


def cost(properties: Mapping[str, str]) -> Cost:
    """Runs the tasks in a session with a setting."""
    context = SparkContext(conf=SparkConf().setAll([*COMMON.items(), *properties.items()]))
    context.pythonExec = sys.executable
    gateway: Any = SparkContext._gateway
    spark, jvm = SparkSession(context), gateway.proc.pid
    run(spark, WARM)
    before = time.monotonic(), python_seconds(jvm), cpu_seconds(jvm)
    run(spark, TASKS)
    after = time.monotonic(), python_seconds(jvm), cpu_seconds(jvm)
    spark.stop()
    return Cost(*(end - begin for begin, end in zip(before, after, strict=True)))


def run(spark: SparkSession, tasks: int) -> None:
    """Passes rows through Python in so many tasks."""

    def same(batches: Iterator[Any]) -> Iterator[Any]:  # a worker that had to import this module would hold more
        yield from batches

    rows = spark.range(0, tasks * ROWS, 1, tasks)
    rows.mapInArrow(same, "id long").write.format("noop").mode("append").save()


def python_seconds(jvm: int) -> float:
    """CPU seconds of the daemon of Python and of its workers."""
    daemons = children(jvm)
    return sum(cpu_seconds(pid) for pid in [*daemons, *(worker for daemon in daemons for worker in children(daemon))])


def _line(name: str, runs: list[Cost], default: list[Cost]) -> str:
    figures = " | ".join(spread([getattr(run, part) for run in runs], ".2f") for part in ("wall", "python", "jvm"))
    ratios = [
        ratio([getattr(run, part) for run in default], [getattr(run, part) for run in runs])
        for part in ("wall", "python")
    ]
    return f"| {name} | {figures} | {' | ' if name == DEFAULT else ' | '.join(ratios)} |"

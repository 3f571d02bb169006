"""A program of somebody who knows nothing of spark-app, started in each way that Spark's users know."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from tests.e2e.stack import run_in, running_in

PROGRAM: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName(sys.argv[1]).getOrCreate()
print(spark.range(9).repartition(2).count(), spark._jvm.dev.ludovic.netlib.lapack.NativeLAPACK.getInstance())
import logging; logging.getLogger("mine").warning("rate is %d", 7)
"""
FILE: Final = "/dev/shm/job.py"
WAYS: Final[Mapping[str, tuple[str, str]]] = {
    "submitted": ("spark-master", f"spark-submit {FILE} submitted"),
    "python-on-a-worker": ("spark-worker-1", f"python {FILE} python-on-a-worker"),
    "pyspark": ("jupyter", f"sed 1,4d {FILE} | PYSPARK_DRIVER_PYTHON_OPTS=-i pyspark --name pyspark"),
}
"""The container and the command of each application, by the name of the application."""
CALLS: Final[Mapping[str, str]] = {
    "submitted": "count at shm/job.py:5",
    "python-on-a-worker": "count at shm/job.py:5",
    "pyspark": "count at <stdin>-0:1",  # Python 3.13 numbers what is typed in
}
"""What the only query of each application is called by: the action and its line."""


def run_in_every_way() -> dict[str, str]:
    """The output of each application by its name; all of them run at the same time."""
    with ExitStack() as stack:
        running = {}
        for name, (container, command) in WAYS.items():
            run_in(container, "sh", "-c", f"cat >{FILE} <<'END'\n{PROGRAM.strip()}\nEND")
            running[name] = stack.enter_context(running_in(container, "sh", "-c", f"({command}) </dev/null"))
        return {name: "\n".join(process.communicate()) for name, process in running.items()}

"""A job that runs while its leading master is killed, and what the masters say of themselves."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any, Final

from tests.e2e.stack import run_in, running_in

MASTERS: Final = ("spark-master", "spark-master-2")
TASKS: Final = 60
OUTPUT: Final = f"sum {sum(range(TASKS))}"
"""What the job prints."""
PATH: Final = "/dev/shm/job.py"
FAIL_OVER_SECONDS: Final = 60
PROGRAM: Final = f"""
import pathlib, time
from pyspark.sql import SparkSession


def slow(number):
    time.sleep(1)
    pathlib.Path("/data/ha", str(number)).touch()
    return number


context = SparkSession.builder.appName("two masters").getOrCreate().sparkContext
print("sum", context.parallelize(range({TASKS}), {TASKS}).map(slow).sum())
"""


@contextmanager
def running_job(container: str) -> Iterator[Popen[str]]:
    """A job whose driver is in a container; each of its tasks takes a second."""
    run_in(container, "sh", "-c", f"mkdir -p /data/ha && cat >{PATH} <<'END'\n{PROGRAM}\nEND")
    with running_in(container, "spark-submit", PATH) as job:
        yield job


def tasks(container: str) -> int:
    """How many tasks of the job have ended."""
    return len(run_in(container, "ls", "/data/ha").stdout.split())


def status(master: str, page: str) -> dict[str, Any]:
    """What a master says of itself and its cluster, at its page in its container; empty if it does not answer."""
    done = run_in(master, "curl", "-fsS", f"{page}/json/", check=False)
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def leader(page: str) -> str | None:
    """The master that leads with all workers; None if there is none now."""
    found = [name for name in MASTERS if status(name, page).get("status") == "ALIVE"]
    return found[0] if len(found) == 1 and status(found[0], page).get("aliveworkers") == len(MASTERS) else None

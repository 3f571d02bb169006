"""The streaming queries on the cluster, as a reader starts them; they are made to hang, and to go on."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from spark_app.execution import pipelines
from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series
from tests.e2e import backends
from tests.e2e.stack import ended, run_in, running_in
from tests.polling import poll_until

QUERIES: Final = pipelines.names("streaming")
WORKERS: Final = ("spark-worker-1", "spark-worker-2")
PYTHON: Final = "pyspark.daemon"
"""What starts Spark's Python workers, and what they are named after it."""
PROGRAM: Final = "bin/spark-app streaming"
CORES: Final = 2
"""Of the four of the cluster: one of each worker, where all are free at the start of an application."""
PATIENCE_SECONDS: Final = 600
PROGRESS_SECONDS: Final = 60
PIPELINE: Final = label(names.PIPELINE)


@dataclass(frozen=True)
class RunningStreams:
    """All streaming queries at work on records of the demo shop.

    Attributes:
        process: The command.
        began: When it began, a Unix time.
    """

    process: subprocess.Popen[str]
    began: float

    def hang(self) -> None:
        """Holds Spark's Python workers still: as if they waited for something that does not answer.

        The executors are alive, so that Spark waits for the tasks. They keep their cores, and other queries get none.
        """
        for worker in WORKERS:
            run_in(worker, "pkill", "-STOP", "--full", PYTHON)

    def go_on(self) -> None:
        """Lets the workers that are left work again; comes back when no query is stuck."""
        for worker in WORKERS:
            run_in(worker, "pkill", "-CONT", "--full", PYTHON, check=False)
        poll_until(lambda: not is_one_stuck(), "progress of all queries", seconds=PATIENCE_SECONDS)

    def stop(self) -> list[dict[str, Any]]:
        """Stops the queries; returns the records of their runs."""
        run_in("spark-master", "pkill", "-TERM", "--full", PROGRAM)
        return ended(self.process)


@contextmanager
def running_streams() -> Iterator[RunningStreams]:
    """Starts all queries, with a core of each worker; each has had a micro-batch."""
    poll_until(lambda: backends.cores_used() == 0, "the end of earlier executors")
    began = time.time()
    with running_in("spark-master", "run_streaming.sh", "--json") as process:
        try:
            poll_until(
                lambda: not_begun(began) == [] or process.poll() is not None,
                lambda: f"micro-batches of {not_begun(began)}",
                seconds=PATIENCE_SECONDS,
            )
            yield RunningStreams(process, began)
        finally:
            poll_until(lambda: is_ended(process), "the end of the queries")


def is_ended(process: subprocess.Popen[str]) -> bool:
    """Whether the queries have ended; ends them otherwise, if they have begun."""
    run_in("spark-master", "pkill", "-KILL", "--full", PROGRAM, check=False)
    return process.poll() is not None


def not_begun(since: float) -> list[str]:
    """The queries that have not ended a micro-batch since a Unix time."""
    window = f"{time.time() - since + 1:.0f}s"
    counted = f"sum by ({PIPELINE}) (increase({series(names.STREAM_BATCHES)}[{window}] anchored))"
    batches = {dict(labels)[PIPELINE]: value for labels, value in backends.PROMETHEUS.values(counted).items()}
    return [query for query in QUERIES if not batches.get(query)]


def is_one_stuck() -> bool:
    """Whether a query has made no progress for a while, or has said nothing."""
    age = backends.number(f"max({series(names.STREAM_PROGRESS_AGE)})")
    return age is None or age > PROGRESS_SECONDS

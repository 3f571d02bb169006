"""Stored data survives the end and the start of the stack."""

import time
from typing import Final

import pytest

from spark_app.doctor.backends import get
from tests.e2e import backends
from tests.e2e.notebook import notebook
from tests.e2e.signals import Day
from tests.e2e.stack import STORES, Stack, compose, docker, kafka_topics, run_in
from tests.polling import poll_until

RECOVERY_SECONDS: Final = 50
"""The start of the master, and the 15 s of `spark.deploy.recoveryTimeout`."""
FILES = "find /data -path '*warehouse*' -type f -exec sha256sum {} + | sort && ls /data/spark-events"


@pytest.mark.before_release
@pytest.mark.usefixtures("stack")
def test_restarted_master_knows_its_applications() -> None:
    """A session continues on the same application, and both workers are registered.

    The driver of another one ends with the container and does not answer: the master is healthy only when it no longer
    waits for that driver and schedules again, long before the minute that it waits by default.
    """
    with notebook() as count:
        with notebook("spark-master"):
            docker("restart", "spark-master")
            began = time.monotonic()
            poll_until(lambda: health("spark-master") == "healthy", "a healthy master", seconds=120)
        assert get(f"{backends.MASTER}/json/", "status") == "ALIVE"
        assert time.monotonic() - began < RECOVERY_SECONDS
        poll_until(backends.has_two_workers, "two workers", seconds=120)
        poll_until(
            lambda: backends.applications().get("notebook") == "RUNNING", "the application of the notebook", seconds=120
        )
        assert count() == "9"


def health(container: str) -> str:
    """The health of a container."""
    return docker("inspect", "--format", "{{.State.Health.Status}}", container)


@pytest.mark.before_release
def test_stopping_and_starting_the_stack_loses_nothing(stack: Stack, day: Day) -> None:
    """Traces, metrics, log lines, tables, event logs and Kafka topics are as before.

    In between, the observability stack runs by itself, as for jobs that run elsewhere, and then Spark beside it: the
    full stack replaces its containers.
    """
    run = day.runs["etl.daily_sales"]
    files = run_in("spark-master", "sh", "-c", FILES).stdout
    assert "_delta_log" in files
    topics = kafka_topics()
    before = stored(run["trace_id"])
    assert all(before)
    stack.down()
    stack.up_without_spark()
    assert stored(run["trace_id"]) == before
    compose("up", "--wait", file="docker-compose.yml")
    stack.up()
    assert stored(run["trace_id"]) == before
    assert kafka_topics() == topics
    assert run_in("spark-master", "sh", "-c", FILES).stdout == files


def stored(trace_id: str) -> tuple[int, int, float | None]:
    """The number of spans and log lines of a trace, and the rows of all runs so far."""
    poll_until(lambda: all(map(backends.is_up, STORES)), "the stores are up")
    rows = backends.number('sum(max_over_time(pipeline_rows_read_total{pipeline_name="etl.daily_sales"}[6h]))')
    return len(backends.JAEGER.spans(trace_id)), len(backends.ELASTICSEARCH.logs(trace_id)), rows

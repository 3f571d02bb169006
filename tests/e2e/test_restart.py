"""What is stored stays when the stack ends and starts again."""

import pytest

from tests.e2e import asked
from tests.e2e.notebook import notebook
from tests.e2e.signals import Seen
from tests.e2e.stack import OBSERVABILITY, Stack, docker, run_in
from tests.polling import poll_until


@pytest.mark.usefixtures("stack")
def test_the_master_remembers_after_a_restart() -> None:
    """A session goes on, on the same application; both workers are there again."""
    with notebook() as held:
        docker("restart", "spark-master")
        poll_until(asked.has_two_workers, "two workers", seconds=120)
        poll_until(lambda: asked.applications().get("notebook") == "RUNNING", "the notebook's application", seconds=120)
        assert held() == "9"


def test_down_and_up_lose_nothing(stack: Stack, day: Seen) -> None:
    """Traces, metrics, log lines, tables, runs, event logs and Kafka's topics are as before.

    In between, what observes is up alone, as for jobs that run elsewhere.
    """
    run = day.runs["etl.daily_sales"]
    tables = run_in("spark-master", "spark-app", "show", "daily_sales", "--json").stdout
    topics = kafka_topics()
    logs = docker("exec", "spark-master", "ls", "/data/spark-events")
    before = kept(run["trace_id"])
    assert all(before)
    stack.down()
    Stack(OBSERVABILITY).up()
    assert kept(run["trace_id"]) == before
    stack.up()
    assert kept(run["trace_id"]) == before
    assert kafka_topics() == topics
    assert docker("exec", "spark-master", "ls", "/data/spark-events") == logs
    assert run_in("spark-master", "spark-app", "show", "daily_sales", "--json").stdout == tables


def kept(trace_id: str) -> tuple[int, int, float | None]:
    """Spans and log lines of a trace, and the rows of all runs so far."""
    poll_until(lambda: all(map(asked.is_up, ("jaeger", "prometheus", "elasticsearch"))), "the stores are up")
    rows = asked.number('sum(max_over_time(pipeline_rows_read_total{pipeline_name="etl.daily_sales"}[6h]))')
    return len(asked.JAEGER.spans(trace_id)), len(asked.ELASTICSEARCH.logs(trace_id)), rows


def kafka_topics() -> str:
    """The topics of the broker."""
    return run_in("kafka", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--list").stdout

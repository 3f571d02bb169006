"""What is stored stays when the stack ends and starts again."""

from tests.e2e import asked
from tests.e2e.signals import Seen
from tests.e2e.stack import Stack, docker, run_in
from tests.polling import poll_until


def test_down_and_up_lose_nothing(stack: Stack, day: Seen) -> None:
    """Traces, metrics, log lines, tables, runs, event logs and Kafka's topics are as before."""
    run = day.runs["etl.daily_sales"]
    series = 'sum(increase(pipeline_runs_total{pipeline_run_outcome="succeeded"}[6h]))'
    read = 'max_over_time(pipeline_rows_read_total{pipeline_name="etl.daily_sales"}[6h])'
    tables = run_in("spark-master", "spark-app", "show", "daily_sales", "--json").stdout
    topics = kafka_topics()
    logs = docker("exec", "spark-master", "ls", "/data/spark-events")
    lines, spans, rows = (
        len(asked.ELASTICSEARCH.logs(run["trace_id"])),
        len(asked.JAEGER.spans(run["trace_id"])),
        asked.number(read),
    )
    assert lines
    assert spans
    assert rows
    stack.down()
    stack.up()
    poll_until(lambda: asked.is_up("jaeger"), "Jaeger is up")
    assert len(asked.JAEGER.spans(run["trace_id"])) == spans
    assert len(asked.ELASTICSEARCH.logs(run["trace_id"])) == lines
    assert (asked.number(read) or 0) >= rows
    assert asked.number(series)
    assert kafka_topics() == topics
    assert docker("exec", "spark-master", "ls", "/data/spark-events") == logs
    assert run_in("spark-master", "spark-app", "show", "daily_sales", "--json").stdout == tables


def kafka_topics() -> str:
    """The topics of the broker."""
    return run_in("kafka", "/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--list").stdout

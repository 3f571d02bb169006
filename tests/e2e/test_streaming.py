"""Streaming queries on the cluster, fed by Kafka: what each leaves in the back ends."""

import json
import re
import time
from typing import Any, Final
from urllib.parse import quote_plus

import pytest

from spark_app.vocabulary import names
from spark_app.vocabulary.prometheus_names import label, series
from tests.e2e import backends
from tests.e2e.signals import Harmed, Streams
from tests.e2e.stack import run_in
from tests.e2e.streams import QUERIES
from tests.polling import poll_until

APPLICATION: Final = "spark-app streaming"
REPLIES: Final = "predictions"
ANSWERED: Final = (names.ML_PREDICTIONS, names.ML_ERRORS)
RECORDS: Final = """
import json
from kafka import KafkaConsumer
consumer = KafkaConsumer(
    "prediction_requests", "predictions", bootstrap_servers=["kafka:19092"], auto_offset_reset="earliest",
    consumer_timeout_ms=20_000,
)
for record in consumer:
    header = dict(record.headers).get("traceparent", b"").decode()
    place = [record.topic, record.partition, record.offset]
    print(json.dumps([*place, record.key.decode(), record.value.decode("utf-8", "replace"), header]))
"""
"""Prints what is in the topics of the requests and the replies, one JSON array a line."""
REQUEST_ID: Final = re.compile(r'"request_id": ?"([^"]+)"')
every_query = pytest.mark.parametrize("query", QUERIES)


def test_queries_that_hang_raise_an_alert(harmed: Harmed) -> None:
    """Nobody was told that they were about to: Prometheus sees that they make no progress."""
    annotations = harmed.alerts["StreamQueryStuck"]
    assert re.fullmatch(rf"streaming\.\w+ of {APPLICATION} is stuck", annotations["summary"])
    assert f"service={quote_plus(APPLICATION)}&operation=batch%20streaming." in annotations["trace_url"]


@every_query
def test_a_query_reads_kafka_until_it_is_stopped(streams: Streams, query: str) -> None:
    """Its run succeeds and has read records, though it hung and lost a worker on its way."""
    run = streams.runs[query]
    assert (run["outcome"], run["counts"]["read"] > 0) == ("succeeded", True)


@every_query
def test_batches_are_spans_that_link_to_producers(streams: Streams, query: str) -> None:
    """Each the root of a trace in which no parent is missing; links lead to its run, and to traces of records."""
    name = f"batch {query}"

    def linked() -> list[dict[str, Any]]:
        spans = backends.spans_of(APPLICATION, name, since=streams.began)
        return [span for span in spans if any(each["refType"] == "FOLLOWS_FROM" for each in span["references"])]

    poll_until(lambda: bool(linked()), f"spans {name} with links in Jaeger")
    span = linked()[0]
    trace = backends.JAEGER.spans(span["traceID"])
    ids = {each["spanID"] for each in trace}
    assert [each["operationName"] for each in trace if not set(backends.parents(each)) <= ids] == []
    assert backends.parents(span) == []
    assert streams.runs[query]["trace_id"] in {each["traceID"] for each in span["references"]}


@every_query
def test_rows_read_are_those_of_the_record(streams: Streams, query: str) -> None:
    """The counter in Prometheus grows by what the run has read."""
    read = streams.runs[query]["counts"]["read"]
    window = f"{time.time() - streams.began:.0f}s"
    selector = f'{series(names.READ)}{{{label(names.PIPELINE)}="{query}"}}'
    grown = f"sum(increase({selector}[{window}] anchored))"
    poll_until(lambda: backends.number(grown) == read, lambda: f"{query} read {read}, metric {backends.number(grown)}")


@every_query
def test_log_lines_have_the_trace_id(streams: Streams, query: str) -> None:
    """Of the driver at least: a query may have no task that says something."""
    trace_id = streams.runs[query]["trace_id"]
    poll_until(lambda: "spark-app" in backends.log_services(trace_id), f"log lines with trace id {trace_id}")


@pytest.fixture(scope="module")
def records(streams: Streams) -> dict[str, list[list[Any]]]:
    """The records of the topics of requests and replies: partition, offset, key, value, traceparent."""
    assert streams.runs
    lines = run_in("spark-master", "python", "-c", RECORDS).stdout.splitlines()
    read = sorted(json.loads(line) for line in lines)
    return {topic: [record[1:] for record in read if record[0] == topic] for topic in ("prediction_requests", REPLIES)}


def test_no_request_is_passed_over(records: dict[str, list[list[Any]]]) -> None:
    """In each partition all have replies but the newest, which nobody had read when the queries stopped."""
    answered = {key for _, _, key, _, _ in records[REPLIES]}
    partitions: dict[int, list[bool]] = {}
    for partition, offset, _, value, _ in records["prediction_requests"]:
        found = {f"prediction_requests-{partition}-{offset}", *REQUEST_ID.findall(value)}
        partitions.setdefault(partition, []).append(bool(found & answered))
    assert partitions
    for has_reply in partitions.values():
        assert has_reply[0]
        assert has_reply == sorted(has_reply, reverse=True)


def test_a_reply_names_the_version_in_the_trace_of_its_request(records: dict[str, list[list[Any]]]) -> None:
    """Each has a probability or an error."""
    replies = [json.loads(value) for _, _, _, value, _ in records[REPLIES]]
    assert {reply["model_version"] for reply in replies} == {1}
    assert all(("probability" in reply) != ("error" in reply) for reply in replies)
    contexts = {context for *_, context in records[REPLIES]}
    assert contexts <= {context for *_, context in records["prediction_requests"]}
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", context) for context in contexts)


def test_scored_requests_and_errors_are_the_replies(streams: Streams, records: dict[str, list[list[Any]]]) -> None:
    """The counters in Prometheus; a batch that was repeated replied twice. The version served is that in production."""
    of_query, window = f'{{{label(names.PIPELINE)}="streaming.predictions"}}', f"{time.time() - streams.began:.0f}s"
    grown = " + ".join(f"sum(increase({series(metric)}{of_query}[{window}] anchored))" for metric in ANSWERED)
    keys = {key for _, _, key, _, _ in records[REPLIES]}
    least, most = len(keys), len(records[REPLIES])
    poll_until(
        lambda: least <= (backends.number(grown) or 0) <= most,
        lambda: f"{least} to {most} replies, metrics {backends.number(grown)}",
    )
    served = f"max(last_over_time({series(names.ML_SERVED)}[1d]))"
    assert backends.number(served) == backends.number(f"max(last_over_time({series(names.ML_VERSION)}[1d]))") == 1

"""The span of a micro-batch says what Spark reported, and links to the spans that sent its records."""

import json
from typing import Any, Final

import pytest

from spark_app.eventlog.batch_spans import MAX_LINKS
from spark_app.eventlog.spans import SparkSpan
from tests.unit.eventlog.log import Line, job, job_ended, read, started

EVENT: Final = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
TIMES: Final = {"id": "q", "runId": "r", "batchId": 7, "timestamp": "1970-01-01T00:00:02.000Z", "batchDuration": 1500}
OF_BATCH: Final = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7", "spark.jobGroup.id": "r"}
KAFKA: Final = {
    "description": "KafkaV2[Subscribe[clicks]]",
    "endOffset": json.dumps({"clicks": {"0": 10, "1": 20}}),
    "latestOffset": json.dumps({"clicks": {"0": 13, "1": 20}}),
    "numInputRows": 9,
}


def context(number: int) -> str:
    """The `traceparent` of a producer."""
    return f"00-{number + 1:032x}-{number + 1:016x}-01"


def observed(traceparents: Any, traced: Any) -> Line:
    """What `DataFrame.observe` has computed, as Spark logs it."""
    columns: list[Line] = [{"name": name, "type": "string"} for name in ("traceparents", "traced")]
    return {"values": [traceparents, traced], "schema": {"type": "struct", "fields": columns}}


def batch(**progress: Any) -> SparkSpan:
    """The span of a batch."""
    line = {"Event": EVENT, "progress": {**TIMES, "sources": [], **progress}}
    _, spans = read([started(), job(0, [], **OF_BATCH), job_ended(0), line])
    return spans["batch 7"]


def linked(observations: Line) -> tuple[list[int], Any, Any]:
    """The spans of producers that a batch links to, the records with a context, and those without a link."""
    span = batch(observedMetrics=observations)
    keys = ("spark.streaming.batch.records.traced", "spark.streaming.batch.links.left_out")
    assert span.attributes.get(keys[1], 0) == span.links_left_out
    return [link.span_id for link in span.links[1:]], span.attributes.get(keys[0]), span.attributes.get(keys[1])


def test_a_batch_says_what_spark_reported_of_it() -> None:
    """Rows, phases, watermark, state and lag; its times are those of the trigger."""
    operators = [
        {"numRowsTotal": 5, "memoryUsedBytes": 100, "commitTimeMs": 7, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 6, "memoryUsedBytes": 200, "commitTimeMs": 8, "numRowsDroppedByWatermark": 0},
    ]
    span = batch(
        sources=[KAFKA],
        sink={"description": "s", "numOutputRows": 4},
        stateOperators=operators,
        durationMs={"addBatch": 900, "queryPlanning": 50, "triggerExecution": 1500, "other": 3},
        eventTime={"watermark": "2024-01-01T00:10:00.000Z"},
    )
    assert (span.started, span.ended) == (2000, 3500)
    attributes = {key.removeprefix("spark.streaming."): value for key, value in span.attributes.items()}
    assert attributes == {
        "query.id": "q", "query.run_id": "r", "batch.id": 7, "batch.rows": 9, "batch.rows.written": 4,
        "batch.rows.late": 2, "batch.duration.addBatch": 900, "batch.duration.queryPlanning": 50,
        "watermark": "2024-01-01T00:10:00.000Z", "state.rows": 11, "state.memory_bytes": 300, "state.commit_time": 15,
        "lag.records": 3, "messaging.system": "kafka", "messaging.operation.type": "process",
        "messaging.destination.name": "clicks", "messaging.batch.message_count": 9,
    }  # fmt: skip


def test_what_spark_does_not_know_is_absent() -> None:
    """Neither a sink that does not count, nor a query without state, nor files have a number."""
    span = batch(sink={"description": "s", "numOutputRows": -1}, sources=[{"endOffset": '{"logOffset":0}'}])
    assert set(span.attributes) == {f"spark.streaming.{name}" for name in ("query.id", "query.run_id", "batch.id")}


@pytest.mark.parametrize(("sink", "rows", "expected"), [(-1, 7, 7), (5, 7, 5), (-1, -7, None), (-1, "7", None)])
def test_rows_that_a_sink_does_not_count_may_be_observed(sink: int, rows: Any, expected: int | None) -> None:
    """Delta tables count none; a query of this project observes what it writes."""
    written = {"values": [rows], "schema": {"fields": [{"name": "rows"}]}}
    span = batch(sink={"description": "Delta", "numOutputRows": sink}, observedMetrics={"written": written})
    assert span.attributes.get("spark.streaming.batch.rows.written") == expected


@pytest.mark.parametrize(("checked", "expected"), [(10, 3), (0, None), ("no number", None)])
def test_violations_of_expectations_mark_a_batch(checked: Any, expected: int | None) -> None:
    """Of all expectations together; a batch of which no row was checked has kept none."""
    fields = [{"name": name} for name in ("checked", "user_id.pattern", "event_type.allowed")]
    judged = {"values": [checked, 2, 1], "schema": {"fields": fields}}
    span = batch(observedMetrics={"expectations events": judged, "other": judged})
    assert span.attributes.get("spark.streaming.batch.violations") == expected


def test_a_batch_without_expectations_has_no_count_of_violations() -> None:
    """It would look as if all were kept."""
    assert "spark.streaming.batch.violations" not in batch(sources=[KAFKA]).attributes


@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
def test_a_number_of_no_batch_is_absent(number: int) -> None:
    """OTLP could not carry it, and would refuse the spans beside it."""
    span = batch(sources=[{"numInputRows": number}], stateOperators=[{"numRowsTotal": number}])
    assert {"spark.streaming.batch.rows", "spark.streaming.state.rows"}.isdisjoint(span.attributes)


def test_messages_of_several_topics_have_no_destination() -> None:
    """As OpenTelemetry has it; rows that are not all messages are not counted as such."""
    other = {**KAFKA, "endOffset": json.dumps({"views": {"0": 1}}), "latestOffset": None}
    assert "messaging.destination.name" not in batch(sources=[KAFKA, other]).attributes
    assert "messaging.system" not in batch(sources=[KAFKA, {"endOffset": None}]).attributes


def test_a_batch_links_to_each_producer_once() -> None:
    """Never as its parent: a batch has many producers."""
    span = batch(observedMetrics={"producers": observed([context(1), context(2), context(1)], 3)})
    assert [(link.trace_id, link.span_id, link.flags) for link in span.links[1:]] == [(2, 2, 1), (3, 3, 1)]
    assert span.ids.trace_id not in {2, 3}
    assert span.links_left_out == 0


def test_records_outside_of_the_sample_are_counted() -> None:
    """All records with a context, but for those whose contexts are linked."""
    assert linked({"producers": observed([context(1), context(2)], 1000)}) == ([2, 3], 1000, 998)


def test_a_hostile_context_is_dropped_and_counted() -> None:
    """Text of a record is nobody's to trust: what W3C does not allow is no link."""
    hostile = ["00-" + "0" * 32 + "-" + "b" * 16 + "-01", "<script>", "", None, 7, {"a": 1}, context(1).upper() + "x"]
    assert linked({"producers": observed([*hostile, context(1)], 8)}) == ([2], 8, 7)


@pytest.mark.parametrize("traced", [None, "many", -1, True, 2**70])
def test_a_count_that_is_none_is_the_size_of_the_sample(traced: Any) -> None:
    """As of a program that observes contexts without their number."""
    assert linked({"mine": observed([context(1), "x"], traced)}) == ([2], 2, 1)


@pytest.mark.parametrize("texts", [None, "text", 5, {"a": "b"}])
def test_a_sample_that_is_none_links_to_nothing(texts: Any) -> None:
    """The count alone is exported."""
    assert linked({"producers": observed(texts, 5)}) == ([], 5, 5)


def test_links_are_capped_over_all_observations() -> None:
    """Two topics are observed on their own."""
    one, other = ([context(number + start) for number in range(MAX_LINKS)] for start in (0, 1000))
    ids, traced, left_out = linked({"input a": observed(one, MAX_LINKS), "input b": observed(other, MAX_LINKS)})
    assert (len(ids), traced, left_out) == (MAX_LINKS, 2 * MAX_LINKS, MAX_LINKS)


def test_other_observations_are_no_links() -> None:
    """A batch without contexts says nothing of them."""
    row = {"values": [3], "schema": {"fields": [{"name": "read"}]}}
    assert linked({"rows": row, "broken": {"values": [1]}}) == ([], None, None)

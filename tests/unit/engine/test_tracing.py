"""What is observed of the producers of records, and what context the records of a batch carry."""

from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from spark_app.engine import tracing
from spark_app.eventlog import span_ids
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.streams import BatchKey
from spark_app.warehouse.schemas import RECORD

KEY: Final = BatchKey("0d4e", "77aa", 3)
Headers = list[tuple[str, bytes]] | None


def context(number: int) -> str:
    """The `traceparent` of a producer."""
    return f"00-{number + 1:032x}-{number + 1:016x}-01"


def traced(number: int) -> Headers:
    """The headers of its record; others come first."""
    return [("source", b"web"), ("traceparent", context(number).encode())]


def records(spark: SparkSession, headers: list[Headers]) -> DataFrame:
    """A record for each list of headers."""
    rows = [(b"k", b"{}", each, "t", number % 2, number, None) for number, each in enumerate(headers)]
    return spark.createDataFrame(rows, RECORD)


def observed(spark: SparkSession, headers: list[Headers]) -> dict[str, Any]:
    """What is observed of records with these headers."""
    observation = Observation("producers")
    tracing.producers(records(spark, headers), observation).collect()
    return observation.get


def test_the_contexts_of_few_records_are_all_kept(spark: SparkSession) -> None:
    """Of each record its own, whatever headers it has beside it."""
    found = observed(spark, [traced(1), traced(2), traced(2)])
    assert found["traced"] == 3
    assert sorted(found["traceparents"]) == [context(1), context(2), context(2)]


def test_a_sample_is_bounded_and_random(spark: SparkSession) -> None:
    """It does not grow with the records, and is not of the first of them only; the count is exact."""
    found = observed(spark, [traced(number) for number in range(2000)])
    assert (found["traced"], len(set(found["traceparents"]))) == (2000, tracing.SAMPLED)
    assert set(found["traceparents"]) < {context(number) for number in range(2000)}
    assert any(text > context(1000) for text in found["traceparents"])


def test_records_without_a_context_are_not_counted(spark: SparkSession) -> None:
    """Neither lines of files, which have no headers, nor records with other headers."""
    found = observed(spark, [None, [], [("source", b"web")], traced(1)])
    assert (found["traced"], found["traceparents"]) == (1, [context(1)])
    assert not observed(spark, [None])["traceparents"]


def test_a_header_of_any_size_does_not_grow_the_sample(spark: SparkSession) -> None:
    """What cannot be a context is counted, and not kept."""
    found = observed(spark, [[("traceparent", b"x" * 1_000_000)], [("traceparent", b"\xff\x00")], traced(1)])
    assert (found["traced"], found["traceparents"]) == (3, [context(1)])


def test_observing_changes_no_record(spark: SparkSession) -> None:
    """The columns, their types and the rows are those of before."""
    before = records(spark, [traced(1), None])
    after = tracing.producers(before)
    assert after.schema == before.schema
    assert after.collect() == before.collect()


def test_further_metrics_share_the_observation(spark: SparkSession) -> None:
    """Each observation is a pass over the rows."""
    observation = Observation("input")
    tracing.producers(records(spark, [None] * 3), observation, F.count("*").alias("records")).collect()
    assert observation.get["records"] == 3


def test_an_outgoing_record_names_one_context(spark: SparkSession) -> None:
    """That of its batch in place of the one that it came with; other headers stay."""
    sent = tracing.with_traceparent(records(spark, [traced(1), None]), context(9)).orderBy("offset").collect()
    named = [[(header.key, bytes(header.value).decode()) for header in row.headers] for row in sent]
    assert named == [[("source", "web"), ("traceparent", context(9))], [("traceparent", context(9))]]


def test_the_context_of_a_batch_is_that_of_its_span() -> None:
    """A running query derives the ids that every reader of its log does, with attempts too."""
    for attempt in (None, "2"):
        app = Application("app-1")
        app.attempt = attempt
        text = tracing.batch_traceparent("app-1", *KEY, attempt=attempt)
        ids = span_ids.of_batch(app, KEY)
        assert span_ids.context_of(text) == (ids.trace_id, ids.span_id, 1)

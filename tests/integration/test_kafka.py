import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.engine import tracing
from spark_app.errors import ConfigError, InputError, SparkAppError
from spark_app.settings import Kafka
from spark_app.spark.kafka import sink_options, source_options
from spark_app.spark.stream_errors import FailedQuery, StreamFailure, stream_failure
from tests.kafka import USER, Broker

HURRIED = {
    "kafka.default.api.timeout.ms": "3000",
    "kafka.request.timeout.ms": "2000",
    "kafka.delivery.timeout.ms": "3000",
    "kafka.max.block.ms": "3000",
    "fetchOffset.numRetries": "1",
}
"""Options with which a client gives up on a broker after seconds."""


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of one partition with the records 0 to 4."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    broker.create(name)
    broker.send(name, numbers(5))
    return name


def numbers(count: int) -> list[bytes]:
    """Values of records."""
    return [b"%d" % number for number in range(count)]


def hurried(kafka: Kafka, **changes: Any) -> Kafka:
    """The settings with changes, of a client that gives up soon."""
    options = {name: SecretStr(value) for name, value in HURRIED.items()}
    return kafka.model_copy(update={"options": options, **changes})


def records(spark: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    """The stream of a topic."""
    return spark.readStream.format("kafka").options(**source_options(kafka)).option("subscribe", topic).load()


def started(rows: DataFrame, checkpoint: Path, **options: str) -> StreamingQuery:
    """A query that reads all that is there and ends."""
    writer = rows.writeStream.outputMode("update").format("noop").options(**options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def drained(rows: DataFrame, checkpoint: Path) -> int:
    """How many records a query reads until nothing is left."""
    query = started(rows, checkpoint)
    query.awaitTermination()
    return sum(json.loads(each.json)["numInputRows"] for each in query.recentProgress)


def failed(start: Callable[[], StreamingQuery], kafka: Kafka, *topics: str, checkpoint: Path) -> StreamFailure:
    """What the end of a query means."""
    with pytest.raises(PySparkException) as raised:
        start().awaitTermination()
    failure = stream_failure(raised.value, FailedQuery("streaming.x", kafka.servers, topics, str(checkpoint)))
    assert failure is not None, raised.value
    assert "\n" not in str(failure.error)
    return failure


def assert_said(failure: StreamFailure, kind: type[SparkAppError], words: Sequence[str], *, is_transient: bool) -> None:
    """The line has the words in this order, and is of this kind."""
    line = str(failure.error)
    places = [line.find(word) for word in words]
    assert -1 not in places, line
    assert places == sorted(places), line
    assert (type(failure.error), failure.is_transient) == (kind, is_transient), line


@pytest.mark.parametrize("kind", ["kafka", "kafka_with_password", "kafka_with_certificate"])
def test_a_record_comes_and_goes_whole(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, kind: str
) -> None:
    """Key, value and headers are the same behind Spark, in plain text, with SCRAM over TLS, and with mTLS."""
    kafka: Kafka = getattr(broker, kind)
    broker.send(topic, [b"\xff\x00"], key=b"k", headers=[("traceparent", b"00-1"), ("twice", b"a"), ("twice", b"b")])
    broker.create(f"{topic}-out")
    rows = records(spark, kafka, topic).select("key", "value", "headers")
    writer = rows.writeStream.format("kafka").options(**sink_options(kafka)).option("topic", f"{topic}-out")
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    sent, arrived = (
        [(record.key, record.value, record.headers) for record in broker.records(name)]
        for name in (topic, f"{topic}-out")
    )
    assert len(sent) == 6
    assert arrived == sent


def test_the_producers_of_records_are_observed(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """In the progress of the query, which the event log has too; records without a context are not counted."""
    contexts = [f"00-{number:032x}-{number:016x}-01" for number in range(1, 4)]
    for context in contexts:
        broker.send(topic, [b"x"], headers=[("other", b"a"), ("traceparent", context.encode())])
    query = started(tracing.producers(records(spark, broker.kafka, topic)), tmp_path)
    query.awaitTermination()
    (progress,) = [json.loads(each.json) for each in query.recentProgress if each.numInputRows]
    observed = progress["observedMetrics"]["producers"]
    assert (progress["numInputRows"], observed["traced"]) == (8, 3)
    assert sorted(observed["traceparents"]) == contexts


def test_the_plan_of_a_write_hides_the_login(spark: SparkSession, broker: Broker, topic: str) -> None:
    """The event log and the web pages show the options of what a micro-batch writes to Kafka."""
    values = spark.range(1).selectExpr("cast(id as string) as value")
    values.write.format("kafka").options(**sink_options(broker.kafka_with_password)).option("topic", topic).save()
    executions: Any = spark._jsparkSession.sharedState().statusStore().executionsList()
    plan = executions.last().physicalPlanDescription()
    assert "kafka.sasl.jaas.config=*********(redacted)" in plan
    assert USER not in plan.replace("kafka.sasl.username", "")
    assert "sesame" not in plan


def test_a_missing_topic_is_named(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """Of a source, and of a sink."""
    kafka = hurried(broker.kafka)
    failure = failed(lambda: started(records(spark, kafka, "none"), tmp_path / "a"), kafka, "none", checkpoint=tmp_path)
    words = ["streaming.x: Kafka at", broker.servers, "has no topic", "none", "create it"]
    assert_said(failure, InputError, words, is_transient=True)

    def sink() -> StreamingQuery:
        writer = records(spark, kafka, topic).select("value").writeStream.format("kafka").option("topic", "nowhere")
        writer = writer.options(**sink_options(kafka)).option("checkpointLocation", str(tmp_path / "b"))
        return writer.trigger(availableNow=True).start()

    words = ["streaming.x: Kafka at", broker.servers, "has no topic nowhere; create it"]
    assert_said(failed(sink, kafka, topic, checkpoint=tmp_path), InputError, words, is_transient=True)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (
            "kafka_with_password",
            {"password": SecretStr("sesame2")},
            ["refuses the login", "invalid credentials", "check", "SPARK_APP_KAFKA__PASSWORD"],
        ),
        (
            "kafka_with_password",
            {"truststore": None},
            ["no TLS connection", "unable to find valid", "kafka.truststore"],
        ),
        (
            "kafka_with_certificate",
            {"keystore": None, "keystore_password": None},
            ["refuses the certificate of the client (bad_certificate)", "kafka.keystore"],
        ),
        (
            "kafka_with_certificate",
            {"truststore": "/none.pem"},
            ["cannot use the settings of Kafka", "NoSuchFile", "/none.pem", "correct kafka in config/app.yml"],
        ),
        (
            "kafka_with_certificate",
            {"keystore_password": SecretStr("sesame2")},
            ["cannot use the settings of Kafka", "correct kafka in config/app.yml"],
        ),
    ],
)
def test_refused_security_names_the_setting(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    kind: str,
    changes: dict[str, Any],
    words: list[str],
) -> None:
    """No new start helps: somebody has to change a setting."""
    kafka = hurried(getattr(broker, kind), **changes)
    failure = failed(lambda: started(records(spark, kafka, topic), tmp_path), kafka, topic, checkpoint=tmp_path)
    assert_said(failure, ConfigError, words, is_transient=False)
    assert "sesame" not in str(failure.error)


def test_lost_records_end_the_query_before_it_goes_on_without_them(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """The line tells which are gone, and how to go on without them, which then works."""
    kafka = hurried(broker.kafka)
    assert drained(records(spark, kafka, topic), tmp_path) == 5
    broker.send(topic, numbers(5))
    broker.forget(topic, before=8)
    failure = failed(lambda: started(records(spark, kafka, topic), tmp_path), kafka, topic, checkpoint=tmp_path)
    words = ["has deleted records of", f"{topic}-0", "of offsets 5 to 10", """OPTIONS='{"failOnDataLoss": "false"}'"""]
    assert_said(failure, InputError, words, is_transient=False)
    careless = kafka.model_copy(update={"options": {"failOnDataLoss": SecretStr("false")}})
    assert drained(records(spark, careless, topic), tmp_path) == 2


def test_another_topic_does_not_fit_the_checkpoint(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Neither one of another name, nor one that was created again."""
    kafka, renamed, again = hurried(broker.kafka), tmp_path / "a", tmp_path / "b"
    drained(records(spark, kafka, topic), renamed)
    drained(records(spark, kafka, topic), again)
    broker.create(f"{topic}-2")
    failure = failed(lambda: started(records(spark, kafka, f"{topic}-2"), renamed), kafka, checkpoint=renamed)
    words = ["has no partition", f"{topic}-0", str(renamed), "reads another topic", "streaming reset x"]
    assert_said(failure, ConfigError, words, is_transient=False)
    broker.delete(topic)
    broker.create(topic)
    failure = failed(lambda: started(records(spark, kafka, topic), again), kafka, checkpoint=again)
    words = [f"has {topic}-0 up to offset 0", "is at 5", "created again", "streaming reset x"]
    assert_said(failure, InputError, words, is_transient=False)


def test_another_source_does_not_fit_the_checkpoint(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Whoever has tried the queries with files, and then configures Kafka, is told; and the other way round."""
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.jsonl").write_bytes(b"1\n")
    files = spark.readStream.format("text").load(str(tmp_path / "landing"))
    from_kafka = records(spark, broker.kafka, topic).select("value")
    for name, first, then in (("a", files, from_kafka), ("b", from_kafka, files)):
        checkpoint = tmp_path / name
        assert drained(first, checkpoint) > 0
        failure = failed(partial(started, then, checkpoint), broker.kafka, topic, checkpoint=checkpoint)
        words = ["its checkpoint", str(checkpoint), "does not fit it:", "streaming reset x"]
        assert_said(failure, ConfigError, words, is_transient=False)


def test_a_damaged_checkpoint_is_named(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    """State that is gone, or half of a file of offsets: the query does not go on without them."""
    drained(records(spark, broker.kafka, topic).groupBy("value").count(), tmp_path)
    broker.send(topic, numbers(1))
    for file in [*tmp_path.glob("state/0/*/1.*"), *tmp_path.glob("state/0/*/.1.*")]:
        file.unlink()
    counts = records(spark, broker.kafka, topic).groupBy("value").count()
    failure = failed(lambda: started(counts, tmp_path), broker.kafka, topic, checkpoint=tmp_path)
    words = ["its checkpoint", str(tmp_path), "is damaged:", "restore it from a copy", "streaming reset x"]
    assert_said(failure, InputError, words, is_transient=False)
    (tmp_path / "offsets" / "1").write_bytes(b"")
    (tmp_path / "offsets" / ".1.crc").unlink()
    failure = failed(lambda: started(counts, tmp_path), broker.kafka, topic, checkpoint=tmp_path)
    assert_said(failure, InputError, words, is_transient=False)


def test_changed_state_does_not_fit_the_checkpoint(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Another key, another stateful operator, another number of sources, missing state, missing metadata."""
    kafka = broker.kafka

    def by_value() -> DataFrame:
        return records(spark, kafka, topic).groupBy("value").count()

    changed: list[Callable[[], DataFrame]] = [
        lambda: records(spark, kafka, topic).groupBy("key", "value").agg(F.max("offset")),
        lambda: records(spark, kafka, topic).dropDuplicates(["value"]),
        lambda: records(spark, kafka, topic).union(records(spark, kafka, topic)).groupBy("value").count(),
    ]
    drained(by_value(), tmp_path)
    broker.send(topic, numbers(1))
    words = ["its checkpoint", str(tmp_path), "does not fit it:", "streaming reset x"]
    for rows in changed:
        failure = failed(lambda rows=rows: started(rows(), tmp_path), kafka, topic, checkpoint=tmp_path)  # type: ignore[misc]
        assert_said(failure, ConfigError, words, is_transient=False)
    (tmp_path / "state").rename(tmp_path / "state-of-then")
    failure = failed(lambda: started(by_value(), tmp_path), kafka, topic, checkpoint=tmp_path)
    assert_said(failure, ConfigError, words, is_transient=False)
    (tmp_path / "metadata").unlink()
    failure = failed(lambda: started(by_value(), tmp_path), kafka, topic, checkpoint=tmp_path)
    assert_said(failure, ConfigError, words, is_transient=False)


def test_another_number_of_shuffle_partitions_changes_nothing(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Spark keeps that of the checkpoint: the query goes on, and its state is whole."""
    counts = records(spark, broker.kafka, topic).groupBy("value").count()
    drained(counts, tmp_path)
    broker.send(topic, numbers(1))
    other = spark.newSession()
    other.conf.set("spark.sql.shuffle.partitions", "5")
    assert drained(records(other, broker.kafka, topic).groupBy("value").count(), tmp_path) == 1
    assert len([path for path in (tmp_path / "state" / "0").iterdir() if path.name.isdigit()]) == 2


def test_a_broker_that_is_away_is_waited_for_and_nothing_is_lost(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Away while a query runs, when it starts, and for a sink: a new start may help, and goes on where it was."""
    kafka = hurried(broker.kafka)
    words = ["no broker of Kafka at", broker.servers, "answers", "start Kafka, or check kafka.servers"]
    writer = records(spark, kafka, topic).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "a"))
    query = writer.start()
    query.processAllAvailable()
    broker.kill()
    try:
        failure = failed(lambda: query, kafka, topic, checkpoint=tmp_path)
        assert_said(failure, InputError, words, is_transient=True)
        failure = failed(lambda: started(records(spark, kafka, topic), tmp_path / "a"), kafka, checkpoint=tmp_path)
        assert_said(failure, InputError, words, is_transient=True)
        rate = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
        sink = rate.writeStream.format("kafka").options(**sink_options(kafka)).option("topic", topic)
        failure = failed(sink.option("checkpointLocation", str(tmp_path / "b")).start, kafka, checkpoint=tmp_path)
        assert_said(failure, InputError, words, is_transient=True)
    finally:
        broker.start()
    broker.send(topic, numbers(3))
    assert drained(records(spark, kafka, topic), tmp_path / "a") == 3


def test_an_unknown_address_is_named(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """In the stack a broker that is away has no address."""
    kafka = hurried(broker.kafka, servers="kafka.invalid:9092")
    failure = failed(lambda: started(records(spark, kafka, "x"), tmp_path), kafka, checkpoint=tmp_path)
    words = ["the address of Kafka, kafka.invalid:9092, is unknown", "start Kafka, or correct kafka.servers"]
    assert_said(failure, InputError, words, is_transient=True)

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from app.ml.refunds import refunded
from app.schemas import PREDICTION_REQUEST
from app.streaming import dead_letters, predictions
from app.topics import PREDICTION_REQUESTS
from spark_app.engine.stream import BatchContext
from spark_app.errors import InputError, NotReadyError, UsageError
from spark_app.models import reference
from spark_app.models.history import History
from spark_app.models.serving import Serving
from spark_app.warehouse.schemas import RECORD
from tests import models, shop_rows
from tests.polling import poll_until
from tests.shop_rows import DAY, FIRST
from tests.unit.streaming.drained import NOON, Drained, written

REPLY: Final = (
    "request_id string, transaction_id string, is_flagged boolean, probability double, model_version bigint, "
    "history_until timestamp, is_stale boolean, latency_ms bigint, error string, dead_letter_id string, "
    "headers array<struct<key: string, value: binary>>"
)
ASKED: Final = {"customer_id": "c-0000001", "amount": "12.50", "created_at": "2024-01-01T12:00:00.000Z"}
ANSWERS: Final = predictions.PREDICTIONS
OLD: Final = ("0001", "1970", "2014")
"""Years of requests in records of 2024."""


def request(number: int, **changes: Any) -> dict[str, Any]:
    """The value of a request with only what it must have, but for the changes."""
    return {"request_id": f"r-{number}"} | ASKED | changes


def replies(query: Drained) -> list[dict[str, Any]]:
    """The values of all replies, in the order of their requests."""
    found = [json.loads(line) for line in query.lines("predictions")]
    return sorted(found, key=lambda reply: reply.get("request_id", ""))


@pytest.fixture
def query(tmp_path: Path, spark: SparkSession) -> Drained:
    """The query, beside a model in production: version 1 gives each transaction the probability 0.25."""
    query = Drained(tmp_path, spark, predictions)
    models.promote(query.home, 1, 0.25)
    return query


def test_a_request_has_what_is_known_of_a_transaction() -> None:
    """Features are computed from nothing else."""
    assert set(PREDICTION_REQUEST.names) == {"request_id", *refunded.examples.known}
    assert [name for name in PREDICTION_REQUESTS.required if name != "request_id"] == [*ASKED]


def test_a_request_that_cannot_be_scored_is_the_dead_letter_of_its_record(spark: SparkSession) -> None:
    """Both queries judge by the same rules, and name a record alike."""
    values = [written(request(1)), written(request(2, amount="0")), written(request(3, customer_id=None)), b"broken"]
    values += [written(request(5 + place, created_at=f"{year}-01-02T00:00:00Z")) for place, year in enumerate(OLD)]
    values += [written(request(8, quantity=-5)), written(request(9, created_at="2099-01-02T00:00:00Z"))]
    rows = [(b"k", value, [("a", b"b")], "prediction_requests", 2, offset, NOON) for offset, value in enumerate(values)]
    parsed = ANSWERS.parsed_requests(spark.createDataFrame(rows, RECORD), PREDICTION_REQUESTS)
    found = parsed.select("request.*").collect()
    assert [(row.request_id, row.reason, row.dead_letter_id) for row in found] == [
        ("r-1", None, None),
        ("r-2", "an amount that is not positive", "prediction_requests-2-1"),
        ("r-3", "no customer_id", "prediction_requests-2-2"),
        (None, "not one JSON object", "prediction_requests-2-3"),
        ("r-5", "an instant before 1970", "prediction_requests-2-4"),
        ("r-6", "more than 10 years old", "prediction_requests-2-5"),
        ("r-7", None, None),
        ("r-8", "a quantity below 1", "prediction_requests-2-7"),
        ("r-9", "created_at later than its record", "prediction_requests-2-8"),
    ]
    assert [(header.key, bytes(header.value)) for header in found[0].headers] == [("a", b"b")]


def test_every_request_is_answered(query: Drained, tmp_path: Path) -> None:
    """With a prediction, or with an error, and then it is a dead letter; the version is named, and all is measured."""
    query.deliver("prediction_requests", request(1), request(2, amount="-3"), b"broken", request(4, transaction_id="t"))
    query.drain()
    scored = {"is_flagged": False, "probability": 0.25, "model_version": 1, "is_stale": True}
    found = replies(query)
    letters = {reply["error"]: reply.pop("dead_letter_id") for reply in found if "error" in reply}
    assert all(0 <= reply.pop("latency_ms") < 600_000 for reply in found)
    assert found == [
        {"model_version": 1, "error": "not one JSON object"},
        {"request_id": "r-1"} | scored,
        {"request_id": "r-2", "model_version": 1, "error": "an amount that is not positive"},
        {"request_id": "r-4", "transaction_id": "t"} | scored,
    ]
    keeping = Drained(tmp_path / "letters", query.home.spark, dead_letters, home=query.home)
    keeping.drain()
    assert dict(keeping.rows("dead_letters", "reason", "dead_letter_id")) == letters
    assert_is_measured(query)


def assert_is_measured(query: Drained) -> None:
    """How many were scored and how many not, how probable, how fast, and by which version."""
    query.context.telemetry.export_metrics()
    values, pipeline = query.memory.values, "streaming.predictions"
    assert values("ml.scoring.errors") == {(pipeline,): 2}
    assert values("ml.scoring.stale") == {(pipeline,): 2}
    assert values("ml.predictions") == {("true", pipeline): 0, ("false", pipeline): 2}
    assert values("ml.prediction.probability") == {(each, pipeline): 0.25 for each in ("0.5", "0.9", "0.99")}
    assert values("ml.model.served.version") == {("ml.refunds", pipeline): 1}
    latencies = values("ml.scoring.latency")
    assert 0 <= latencies["0.5", pipeline] <= latencies["0.99", pipeline] < 600


def test_a_promoted_version_answers_without_a_restart(query: Drained) -> None:
    """From the next micro-batch on. What is promoted while a batch is at work answers none of its requests."""
    serving = Serving(refunded.name, refunded.inputs)
    query.context.is_draining = False
    served = serving.served(query.context.warehouse)
    assert serving.served(query.context.warehouse).model is served.model, "loading takes seconds"
    running = query.start()
    try:
        answered(query, running, 1)
        models.promote(query.home, 2, 0.75)
        answered(query, running, 2)
    finally:
        running.stop()
    found = [(reply["model_version"], reply["probability"], reply["is_flagged"]) for reply in replies(query)]
    assert found == [(1, 0.25, False), (2, 0.75, True)]
    values = [written(request(number)) for number in range(3, 9)] + [b"broken"]
    rows = [(b"k", value, None, "prediction_requests", 0, offset, NOON) for offset, value in enumerate(values)]
    asked = ANSWERS.parsed_requests(query.home.spark.createDataFrame(rows, RECORD).repartition(4), PREDICTION_REQUESTS)
    batch = BatchContext(query.home.spark, query.context.warehouse, query.context, "q", 0)
    ANSWERS.reply(batch, asked, served, History(refunded.inputs.reads))
    mixed = [reply for reply in replies(query) if reply.get("request_id") not in ("r-1", "r-2")]
    assert [reply["model_version"] for reply in mixed] == [1] * 7
    assert serving.served(query.context.warehouse).version.number == 2


def answered(query: Drained, running: StreamingQuery, number: int) -> None:
    """Sends the request of a number; comes back when there are so many replies."""
    query.deliver("prediction_requests", request(number))
    poll_until(lambda: len(replies(query)) == number, lambda: f"reply {number}; {running.exception()}", seconds=120)


def test_a_reply_says_until_when_the_tables_knew_the_customer(query: Drained) -> None:
    """A request of the day after the newest one has all; one of the day after that is stale, and so is one before any.

    What was published meanwhile counts from the next micro-batch on.
    """
    spark, days = query.home.spark, [FIRST, FIRST + DAY]
    query.home.warehouse.create(shop_rows.sold(spark, *days, rows=300), "transactions", "sales")
    query.home.warehouse.create(shop_rows.refunded(spark, *days, rows=300), "refund_events", "refunds")
    hours = {number: f"2024-01-0{number}T08:00:00.000Z" for number in (1, 2, 3, 4)}
    query.deliver("prediction_requests", *(request(number, created_at=at) for number, at in hours.items()))
    query.drain()
    found = [(reply.get("history_until"), reply["is_stale"]) for reply in replies(query)]
    assert found == [
        (None, True), ("2024-01-02T00:00:00.000Z", False), ("2024-01-03T00:00:00.000Z", False),
        ("2024-01-03T00:00:00.000Z", True),
    ]  # fmt: skip
    query.context.telemetry.export_metrics()
    assert query.memory.values("ml.scoring.stale") == {("streaming.predictions",): 2}
    query.home.warehouse.append(shop_rows.sold(spark, FIRST + 2 * DAY, rows=300), "transactions")
    query.home.warehouse.append(shop_rows.refunded(spark, FIRST + 2 * DAY, rows=300), "refund_events")
    query.deliver("prediction_requests", request(5, created_at=hours[4]))
    query.drain()
    assert replies(query)[-1]["history_until"] == "2024-01-04T00:00:00.000Z"


def test_a_version_of_other_features_answers_nothing(query: Drained) -> None:
    """The query ends with one sentence, and the requests stay where they are."""
    shutil.rmtree(Path(models.promote(query.home, 2, 0.75).artifact) / reference.FOLDER)
    query.deliver("prediction_requests", request(1))
    with pytest.raises(InputError, match=r"^version 2 of ml\.refunds was trained on other features than this program"):
        query.drain()
    assert replies(query) == []


def test_a_micro_batch_that_fails_leaves_nothing_persisted(query: Drained, spark: SparkSession) -> None:
    """The query starts again in the same session."""
    rows = spark.createDataFrame([(b"k", written(request(1)), None, "prediction_requests", 0, 0, NOON)], RECORD)
    batch = BatchContext(spark, query.context.warehouse, query.context, "q", 0)
    served = Serving(refunded.name, refunded.inputs).served(query.context.warehouse)
    with pytest.raises(UsageError):
        ANSWERS.reply(batch, ANSWERS.parsed_requests(rows, PREDICTION_REQUESTS), served, History(["no table"]))
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_nothing_starts_before_a_model_is_in_production(tmp_path: Path, spark: SparkSession) -> None:
    """One line says what to do."""
    with pytest.raises(NotReadyError, match=r"^no version of ml\.refunds is in production: run `spark-app ml`$"):
        Drained(tmp_path, spark, predictions).start()


def test_a_reply_has_the_key_and_the_headers_of_its_request(spark: SparkSession) -> None:
    """One to a request whose id cannot be read has that of the dead letter."""
    trace = [("traceparent", b"00-1-2-01")]
    rows = [
        ("r-1", "t-1", True, 0.5, 1, NOON, False, 20, None, None, trace),
        (None, None, None, None, 1, None, None, 20, "no request_id", "prediction_requests-2-1", None),
    ]
    found = ANSWERS.messages(spark.createDataFrame(rows, REPLY)).collect()
    assert [bytes(row.key) for row in found] == [b"r-1", b"prediction_requests-2-1"]
    assert [(header.key, bytes(header.value)) for header in found[0].headers] == trace
    assert json.loads(bytes(found[0].value))["history_until"] == "2024-01-01T12:00:00.000Z"
    assert json.loads(bytes(found[1].value))["error"] == "no request_id"

"""Will this transaction be refunded? Answers requests with the version of `ml.refunds` in production.

Reads: the topic prediction_requests; transactions, refund_events, and the model registry.
Writes: the topic predictions, a reply to each request at least once; its key is that of the request.

A reply says until when the tables knew what had happened: its model was judged with the whole days before a request.
"""

import datetime
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from app import features
from app.schemas import CUSTOMER_EVENTS, JUDGED_REQUEST, PREDICTION, REPLY
from app.topics import PREDICTION_REQUESTS, PREDICTIONS
from spark_app.models import scoring
from spark_app.models.history import History
from spark_app.models.inputs import FeatureSource
from spark_app.models.serving import Served, Serving
from spark_app.pipeline import records, stream
from spark_app.pipeline.stream import BatchContext, StreamContext
from spark_app.pipeline.topics import Topic
from spark_app.telemetry import names

TOPICS: Final = (PREDICTION_REQUESTS.name,)
READS: Final = ("transactions", "refund_events")
WRITES: Final = ()
MODEL: Final = "ml.refunds"
KEPT: Final = ("request_id", "problem", "dead_letter_id", "headers", "timestamp")
"""Columns of a request that its reply needs, and its features do not."""


class Config(stream.StreamConfig):
    """What an operator tunes: see `config/streaming/predictions.yml`."""


def requests(read: DataFrame, topic: Topic = PREDICTION_REQUESTS) -> DataFrame:
    """One row per request; of one that cannot be scored, why, and which dead letter it is.

    Columns in: those of `RECORD`.
    Columns out: those of `JUDGED_REQUEST`.
    """
    parsed = records.judged(records.parsed(read, topic))
    letter = F.when(F.col("problem").isNotNull(), records.identity())
    return parsed.withColumn("dead_letter_id", letter).select("row.*", *JUDGED_REQUEST.names[-4:])


def messages(replies: DataFrame) -> DataFrame:
    """One record per reply, with the headers of its request: it belongs to the same trace.

    Columns in: those of `REPLY`.
    Columns out: key, value, headers.
    """
    key = F.coalesce("request_id", "dead_letter_id").cast("binary").alias("key")
    value = F.to_json(F.struct(*PREDICTION.names)).cast("binary").alias("value")
    return replies.select(key, value, "headers")


def reply(batch: BatchContext, asked: DataFrame, served: Served, history: History) -> None:
    """Answers the requests of one micro-batch, all by the same version; a repeated batch answers with equal keys."""
    asked = asked.persist()
    answered = _replies(batch, asked, served, history).persist()
    try:
        batch.publish(messages(answered), PREDICTIONS, keeps_context=True)
        _measure(batch, answered, served)
    finally:
        answered.unpersist()
        asked.unpersist()


def _replies(batch: BatchContext, asked: DataFrame, served: Served, history: History) -> DataFrame:
    """One row per request: those that cannot be scored, and the others with their scores.

    Columns in: those of `JUDGED_REQUEST`.
    Columns out: those of `REPLY`.
    """
    scorable, refused = asked.where("problem IS NULL"), asked.where("problem IS NOT NULL")
    day = F.to_date("created_at").alias("day")
    days = sorted(row.day for row in scorable.select(day).distinct().collect())
    reaches = _reaches(batch, history, days)
    transactions, refund_events = (batch.warehouse.table(name) for name in READS)
    events = _events(transactions, refund_events, scorable, days)
    known = features.features(scorable, events, keep=KEPT)
    scored = scoring.scored(served.model, known, served.version, keep=[*features.KEYS, *KEPT]).withColumn("day", day)
    scored = scored.join(F.broadcast(reaches), "day")
    answered = scored.unionByName(refused, allowMissingColumns=True)
    version = F.lit(served.version.number).cast("long")
    answered = answered.withColumns({"model_version": version, "error": F.col("problem"), "now": _now_ms()})
    latency = F.col("now") - F.unix_millis("timestamp")
    latency = F.when(latency >= 0, latency)  # the clock of a producer may be ahead
    return answered.withColumn("latency_ms", latency).select(*REPLY.names)


def _reaches(batch: BatchContext, history: History, days: Sequence[datetime.date]) -> DataFrame:
    found = batch.spark.createDataFrame(history.reach(batch.warehouse, days), "day date, until date, is_stale boolean")
    return found.select("day", F.col("until").cast("timestamp").alias("history_until"), "is_stale")


def inputs(
    transactions: DataFrame, refund_events: DataFrame, *, first: datetime.date, last: datetime.date
) -> DataFrame:
    """One row per transaction of days: the features with which a request about it is scored.

    Columns in: those of `TRANSACTIONS`; refund_events: those of `REFUND_EVENTS`.
    Columns out: those of `features.SCHEMA`.
    """
    asked = transactions.where(F.col("processed_date").between(first, last))
    return features.features(asked, _events(transactions, refund_events, asked, [first, last]))


SOURCE: Final = FeatureSource(features.EXAMPLES, READS, inputs)


def _events(
    transactions: DataFrame, refund_events: DataFrame, asked: DataFrame, days: Sequence[datetime.date]
) -> DataFrame:
    """What happened to the customers of transactions of days, as far as the tables know it by now.

    Columns in: those of `TRANSACTIONS`; refund_events: those of `REFUND_EVENTS`; asked: those of `KNOWN`.
    Columns out: those of `CUSTOMER_EVENTS`.
    """
    if not days:  # nobody asks
        return asked.sparkSession.createDataFrame([], CUSTOMER_EVENTS)
    events = features.customer_events(*features.in_window(transactions, refund_events, min(days), max(days)))
    return events.join(F.broadcast(asked.select("customer_id").distinct()), "customer_id", "left_semi")


def _now_ms() -> Column:
    """The Unix time when a row is computed; Spark's own functions give that of the start of the query."""
    return F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis")).cast("long")


def _measure(batch: BatchContext, answered: DataFrame, served: Served) -> None:
    """Measures what was answered, and by which version."""
    run, shares = batch.stream.run, list(names.QUANTILES)
    found = answered.agg(
        F.count("error").alias("errors"),
        F.count_if("is_flagged").alias("flagged"),
        F.count_if(~F.col("is_flagged")).alias("others"),
        F.count_if("is_stale").alias("stale"),
        F.percentile_approx("probability", shares).alias("probabilities"),
        F.percentile_approx("latency_ms", shares).alias("latencies"),
    ).collect()[0]
    run.measure(names.ML_ERRORS, found.errors)
    run.measure(names.ML_STALE, found.stale)
    for text, number in (("true", found.flagged), ("false", found.others)):
        run.measure(names.ML_PREDICTIONS, number, {names.IS_FLAGGED: text})
    for place, quantile in enumerate(map(str, names.QUANTILES)):
        if found.probabilities is not None:
            run.measure(names.ML_PROBABILITY, found.probabilities[place], {names.QUANTILE: quantile})
        if found.latencies is not None:
            run.measure(names.ML_LATENCY, found.latencies[place] / 1000, {names.QUANTILE: quantile})
    run.measure(names.ML_SERVED, served.version.number, {names.MODEL: served.version.model})


def query(context: StreamContext, config: Config) -> DataStreamWriter:
    """Answers each request; each micro-batch asks anew which version is in production.

    Raises:
        NotReadyError: None is in production yet.
        InputError: The one in production was trained on other features than those of requests.
    """
    context.sink = PREDICTIONS
    serving, history = Serving(MODEL, SOURCE), History(READS)
    serving.served(context.warehouse)
    _announce(context)
    rows = requests(context.read(PREDICTION_REQUESTS.name, config), context.bounded(PREDICTION_REQUESTS)).observe(
        "written", F.count(F.lit(1)).alias("rows")
    )
    return context.for_each_batch(
        rows, lambda batch, asked: reply(batch, asked, serving.served(batch.warehouse), history), config
    )


def _announce(context: StreamContext) -> None:
    """Starts counters at 0: the first value of a series is no increase."""
    context.run.measure(names.ML_ERRORS, 0)
    context.run.measure(names.ML_STALE, 0)
    for text in ("true", "false"):
        context.run.measure(names.ML_PREDICTIONS, 0, {names.IS_FLAGGED: text})

"""The query that answers requests about examples with the version of a model in production.

Each request has a reply, at least once, whose key is that of the request. A reply says until when the tables knew what
had happened: the model was judged with the whole days before an example.
"""

import datetime
import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.declarations.pipeline import Pipeline
from spark_app.engine import records
from spark_app.engine.code_location import CodeLocation
from spark_app.engine.model import Model
from spark_app.engine.stream import BatchContext, StreamContext
from spark_app.engine.stream_config import StreamConfig
from spark_app.engine.topics import Topic
from spark_app.models.history import History, Reach
from spark_app.models.serving import Served, Serving
from spark_app.runs.model_card import PREDICTION
from spark_app.settings import Interval
from spark_app.spark import call_sites
from spark_app.spark.persisted import persisted
from spark_app.vocabulary import names

REQUEST: Final = "request"
"""The column with what a reply needs of a request, and its features do not."""
HISTORY_TYPE: Final = "map<string, struct<until: date, is_stale: boolean>>"
"""By a day how far the tables reach for its requests."""
REPLY_COLUMNS: Final = (
    "is_flagged",  # whether the probability reaches the threshold of the version
    PREDICTION,
    "model_version",
    "history_until",  # until when the tables knew what had happened, at most the start of the day of the request
    "is_stale",  # whether that is not the start of the day: the model knew less than when it was judged
    "latency_ms",  # from the timestamp of the request to the reply; null if that is ahead
    "error",  # why there is no probability
    "dead_letter_id",  # the key of the dead letter that a request with an error is
)
"""What a reply says, after the keys of the request and of the example."""


class AnswersConfig(StreamConfig):
    """What an operator tunes of a query that answers requests, which wait for its trigger."""

    trigger: Interval = "1 second"
    records_per_trigger: int = Field(default=20_000, gt=0)


class Answers(Pipeline):
    """The streaming query that answers requests about the examples of a model; its name is that of its replies' topic.

    Attributes:
        model: The model.
        requests: The topic of the requests.
    """

    kind = "query"

    def __init__(self, model: Model, requests: Topic, replies: str, location: CodeLocation) -> None:
        """Nothing is asked yet."""
        super().__init__(
            name=replies,
            location=location,
            config=AnswersConfig,
            topics=(requests.name,),
            reads=tuple(model.inputs.reads),
            models=(model.name,),
            sends=(replies,),
        )
        self.model, self.requests = model, requests

    def query(self, context: StreamContext, config: StreamConfig) -> DataStreamWriter:
        """Answers each request; each micro-batch asks anew which version is in production.

        Raises:
            NotReadyError: None is in production yet.
            InputError: The one in production was trained on other features than those of requests.
        """
        context.sink = self.name
        serving, history = Serving(self.model.name, self.model.inputs), History(self.reads)
        serving.served(context.warehouse)
        context.at_end.callback(history.unpersist)
        _announce(context)
        asked = self.parsed_requests(context.read(self.requests.name, config), context.bounded(self.requests))
        return context.for_each_batch(
            asked.observe("written", F.count(F.lit(1)).alias("rows")),
            lambda batch, rows: self.reply(batch, rows, serving.served(batch.warehouse), history),
            config,
        )

    @property
    def keys(self) -> list[str]:
        """The keys that a reply has of its request: its own, and that of the example if it says it."""
        given = [self.requests.key, self.model.examples.key]
        return [name for name in dict.fromkeys(given) if name in self.requests.schema.names]

    def parsed_requests(self, read: DataFrame, topic: Topic) -> DataFrame:
        """One row per request; of one that cannot be scored, why, and which dead letter it is.

        Columns in: those of `RECORD`.
        Columns out: those of the topic; request, a struct of reason, dead_letter_id, headers and timestamp.
        """
        parsed = records.count_malformed(records.parsed(read, topic))
        reason = F.col("reason")
        letter = F.when(reason.isNotNull(), records.identity()).alias("dead_letter_id")
        keys = [F.col(f"row.{name}") for name in self.keys]
        return parsed.select("row.*", F.struct(*keys, reason, letter, "headers", "timestamp").alias(REQUEST))

    def messages(self, replies: DataFrame) -> DataFrame:
        """One record per reply, with the headers of its request: it belongs to the same trace.

        Columns in: keys, what a reply says, headers.
        Columns out: key, value, headers.
        """
        key = F.coalesce(F.col(self.requests.key).cast("string"), F.col("dead_letter_id")).cast("binary").alias("key")
        value = F.to_json(F.struct(*self.keys, *REPLY_COLUMNS)).cast("binary").alias("value")
        return replies.select(key, value, "headers")

    def reply(self, batch: BatchContext, asked: DataFrame, served: Served, history: History) -> None:
        """Answers the requests of one micro-batch, all by the same version; a repeated batch has equal keys."""
        work = call_sites.work_of("answers", self.location.file, self.location.line)
        with work, persisted(asked) as kept, persisted(self._replies(batch, kept, served, history)) as replies:
            batch.publish(self.messages(replies), self.name, keeps_context=True)
            _measure(batch, replies, served)

    def _replies(self, batch: BatchContext, asked: DataFrame, served: Served, history: History) -> DataFrame:
        """One row per request: those that cannot be scored, and the others with their scores."""
        reason, day = F.col(f"{REQUEST}.reason"), F.to_date(self.model.examples.at)
        scored = self._scored(batch, asked.where(reason.isNull()), day, served, history)
        refused = asked.where(reason.isNotNull()).select(REQUEST)
        now, sent = _now_ms(), F.unix_millis(f"{REQUEST}.timestamp")
        said = {"model_version": F.lit(served.version.number).cast("long"), "error": reason, "now": now}
        answered = scored.unionByName(refused, allowMissingColumns=True).withColumns(said)
        latency = F.when(F.col("now") >= sent, F.col("now") - sent)  # the clock of a producer may be ahead
        request = [f"{REQUEST}.{name}" for name in (*self.keys, "dead_letter_id", "headers")]
        return answered.select(*request, *REPLY_COLUMNS[:5], latency.alias("latency_ms"), "error")

    def _scored(
        self, batch: BatchContext, asked: DataFrame, day: Column, served: Served, history: History
    ) -> DataFrame:
        """One row per request that can be scored: its probability, and how far the tables reach."""
        from spark_app.models import scoring  # Spark ML takes a second to import, which most commands need not

        inputs, days = self.model.inputs, _days(asked, day)
        history.look(batch.warehouse)
        known = inputs.of_requests(asked, history.rows(inputs.span(days)), batch.warehouse.tables, days, keep=[REQUEST])
        scored = scoring.scored(served.model, known, served.version, keep=[self.model.examples.at, REQUEST])
        return scored.withColumns(_reach(history.reach(days), day))


def _days(asked: DataFrame, day: Column) -> list[datetime.date]:
    """The days that are asked about, in order; Spark would take longer to find them than to hand over all."""
    return sorted(asked.select(day.alias("day")).toArrow().column("day").unique().to_pylist())


def _reach(reaches: Sequence[Reach], day: Column) -> dict[str, Column]:
    """How far the tables reach for the day of a request; a constant, since a join would be a job."""
    known = {f"{reach.day}": {"until": reach.until, "is_stale": reach.is_stale} for reach in reaches}
    reach = F.from_json(F.lit(json.dumps(known, default=str)), HISTORY_TYPE)[day.cast("string")]
    return {"history_until": reach["until"].cast("timestamp"), "is_stale": reach["is_stale"]}


def _now_ms() -> Column:
    """The Unix time when a row is computed; Spark's own functions give that of the start of the query."""
    return F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis")).cast("long")


def _measure(batch: BatchContext, replies: DataFrame, served: Served) -> None:
    """Measures what was answered, and by which version.

    All rows of a few columns come to the driver: to aggregate them in Spark is a shuffle, which takes longer.
    """
    telemetry, is_error = batch.stream.telemetry, F.col("error").isNotNull().alias("is_error")
    found = replies.select(is_error, "is_flagged", "is_stale", PREDICTION, "latency_ms").toArrow()
    flagged = _true(found["is_flagged"])
    telemetry.measure(names.ML_ERRORS, _true(found["is_error"]))
    telemetry.measure(names.ML_STALE, _true(found["is_stale"]))
    others = len(found) - found["is_flagged"].null_count - flagged
    for text, number in (("true", flagged), ("false", others)):
        telemetry.measure(names.ML_PREDICTIONS, number, {names.IS_FLAGGED: text})
    for quantile, probability in _quantiles(found[PREDICTION]).items():
        telemetry.measure(names.ML_PROBABILITY, probability, {names.QUANTILE: quantile})
    for quantile, latency in _quantiles(found["latency_ms"]).items():
        telemetry.measure(names.ML_LATENCY, latency / 1000, {names.QUANTILE: quantile})
    telemetry.measure(names.ML_SERVED, served.version.number, {names.MODEL: served.version.model})


def _true(column: Any) -> int:
    """How many values of a column of Arrow are true."""
    import pyarrow.compute  # it takes a while to import, and only this query needs it

    return pyarrow.compute.sum(column).as_py() or 0


def _quantiles(column: Any) -> dict[str, float]:
    """Quantiles of a column of Arrow by their names; none of a column without values."""
    import pyarrow.compute

    if len(column) == column.null_count:
        return {}
    values = pyarrow.compute.quantile(column, list(names.QUANTILES), interpolation="nearest").to_pylist()
    return dict(zip(map(str, names.QUANTILES), values, strict=True))


def _announce(context: StreamContext) -> None:
    """Starts counters at 0: the first value of a series is no increase."""
    context.telemetry.measure(names.ML_ERRORS, 0)
    context.telemetry.measure(names.ML_STALE, 0)
    for text in ("true", "false"):
        context.telemetry.measure(names.ML_PREDICTIONS, 0, {names.IS_FLAGGED: text})

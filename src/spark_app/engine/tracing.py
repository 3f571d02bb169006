"""The trace contexts of records: those that a micro-batch reads are sampled, and those that it sends carry its own.

A batch has many producers, so its span links to theirs and is the child of none (OpenTelemetry's conventions for
messaging). A running query derives the id of the span that the event log will have.
"""

from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from spark_app.eventlog import span_ids
from spark_app.eventlog.model.streams import BatchKey
from spark_app.vocabulary.names import TRACEPARENT
from spark_app.vocabulary.spark_names import JOB_GROUP, STREAM_QUERY_ID

LENGTH: Final = 55
"""Characters of a `traceparent` of version 00; a longer text is not kept, so that a sample stays small."""
SAMPLED: Final = 16
"""Records whose contexts an observation keeps; `max_by` with a number of values is in Spark from 4.2 on."""
_CONTEXT: Final = "_traceparent"
_ORDER: Final = "_sample_order"


def producers(records: DataFrame, observation: str | Observation = "producers", *others: Column) -> DataFrame:
    """The same records, with an observation of a random sample of the contexts of their producers.

    The observation has `traceparents`, the well-formed contexts of at most `SAMPLED` records, and `traced`, the number
    of records with a `traceparent` header. Both count a record once for each time that an action reads it, as Spark's
    `numInputRows` does. The header is looked up by functions that Spark compiles: `filter` would take twice the time.

    Columns in: those of `RECORD`.
    Columns out: those of `RECORD`.

    Args:
        records: The records.
        observation: Its name, in a streaming query; of a batch frame, the object that gets the metrics.
        others: Further metrics of the same observation: each observation is a pass over the rows.
    """
    position = F.array_position(F.col("headers.key"), TRACEPARENT).cast("int")
    header = F.get("headers", position - 1)["value"]
    is_kept = F.length(_CONTEXT) == LENGTH
    order = F.when(is_kept, F.xxhash64("offset", "partition"))
    with_context = records.withColumn(_CONTEXT, header).withColumn(_ORDER, order)
    sample = F.max_by(F.col(_CONTEXT).cast("string"), F.col(_ORDER), SAMPLED)
    traced = F.count(_CONTEXT)
    metrics = (sample.alias("traceparents"), traced.alias("traced"), *others)
    return with_context.observe(observation, *metrics).drop(_CONTEXT, _ORDER)


def with_traceparent(records: DataFrame, traceparent: str) -> DataFrame:
    """The same records, whose header names this context and no other.

    Columns in: key, value, headers, as in `RECORD`.
    Columns out: the same.
    """
    kept = F.filter("headers", lambda header: header["key"] != TRACEPARENT)
    own = F.struct(F.lit(TRACEPARENT).alias("key"), F.lit(traceparent).cast("binary").alias("value"))
    return records.withColumn("headers", F.concat(F.coalesce(kept, F.array()), F.array(own)))


def traceparent_of_batch(spark: SparkSession, batch_id: int) -> str:
    """The context of the micro-batch that this thread works for, in the function of a `foreachBatch`.

    Args:
        spark: The session of the batch.
        batch_id: The number of the batch.
    """
    context = spark.sparkContext
    java: Any = context._jsc
    attempt = java.sc().applicationAttemptId()
    known = str(attempt.get()) if attempt.isDefined() else None
    query_id, run_id = (str(context.getLocalProperty(key)) for key in (STREAM_QUERY_ID, JOB_GROUP))
    return batch_traceparent(context.applicationId, query_id, run_id, batch_id, attempt=known)


def batch_traceparent(
    application_id: str, query_id: str, run_id: str, batch_id: int, *, attempt: str | None = None
) -> str:
    """The context of the span that the event log has of a micro-batch, the root of a trace.

    Args:
        application_id: Spark's id of the application.
        query_id: The id of the streaming query.
        run_id: The id of its run.
        batch_id: The number of the batch.
        attempt: Which attempt of the application, where the cluster manager counts them.
    """
    ids = span_ids.batch_ids(application_id, attempt, BatchKey(query_id, run_id, batch_id))
    return f"00-{ids.trace_id:032x}-{ids.span_id:016x}-01"

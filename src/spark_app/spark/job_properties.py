"""Tells Spark whose work it does: properties and settings that hold for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_app.vocabulary.names import TRACEPARENT
from spark_app.vocabulary.spark_names import JOB_DESCRIPTION, MDC_STEP_TRACE_ID, MDC_TRACE_ID, STEP_TAG, STREAM_TRIGGER

_JOB_TAGS: Final = "spark.job.tags"
"""The property in which Spark keeps the tags of a thread (`SparkContext.SPARK_JOB_TAGS`), joined by commas."""


@contextmanager
def step_properties(
    spark: SparkSession, description: str, *, traceparent: str | None, trace_id: str | None
) -> Iterator[None]:
    """Jobs, and the lines of their logs, lead to the trace of a step, and then to that of the step around it.

    What is None is not known, and stays as it is. A tag does so for queries that run no job; tags of the program itself
    stay.
    """
    context = spark.sparkContext
    properties = {TRACEPARENT: traceparent, MDC_TRACE_ID: trace_id, JOB_DESCRIPTION: description}
    before = {key: context.getLocalProperty(key) for key in properties}
    _set_properties(spark, {key: value for key, value in properties.items() if value is not None})
    tags = _step_tags(spark)
    if traceparent is not None:
        _replace_tags(spark, tags, {f"{STEP_TAG}{traceparent}"})
    try:
        yield
    finally:
        _set_properties(spark, before)
        _replace_tags(spark, _step_tags(spark), tags)


def _set_properties(spark: SparkSession, properties: Mapping[str, str | None]) -> None:
    for key, value in properties.items():
        spark.sparkContext.setLocalProperty(key, value)  # type: ignore[arg-type]
    if MDC_TRACE_ID in properties:
        _mark_driver_lines(spark, properties[MDC_TRACE_ID])


def _step_tags(spark: SparkSession) -> set[str]:
    """The tags of steps; `SparkContext.getJobTags` makes some ninety calls of Java to read the same property."""
    tags = spark.sparkContext.getLocalProperty(_JOB_TAGS) or ""
    return {tag for tag in tags.split(",") if tag.startswith(STEP_TAG)}


def _replace_tags(spark: SparkSession, old: set[str], new: set[str]) -> None:
    for tag in old:
        spark.sparkContext.removeJobTag(tag)
    for tag in new:
        spark.sparkContext.addJobTag(tag)


@contextmanager
def batch_properties(spark: SparkSession, trace_id: str) -> Iterator[None]:
    """Lines of the logs of a micro-batch lead to its own trace, and name that of its step beside it."""
    context = spark.sparkContext
    of_step = context.getLocalProperty(MDC_TRACE_ID)
    _set_traces(spark, trace_id, of_step)
    try:
        yield
    finally:
        _set_traces(spark, of_step, None)


def _set_traces(spark: SparkSession, trace_id: str | None, of_step: str | None) -> None:
    for key, value in ((MDC_TRACE_ID, trace_id), (MDC_STEP_TRACE_ID, of_step)):
        spark.sparkContext.setLocalProperty(key, value)  # type: ignore[arg-type]
        _mark_driver_lines(spark, value, key=key)


def own_properties(spark: SparkSession) -> None:
    """What this thread sets from now on, no other thread sees.

    PySpark gives the threads of a pool that it wraps, as those of `CrossValidator`, one object with their properties:
    what one of them sets would go to the jobs of the others, too.
    """
    java: Any = spark.sparkContext._jsc
    java.sc().setLocalProperties(java.sc().getLocalProperties().clone())


def set_trigger(spark: SparkSession, interval: str | None) -> None:
    """The streaming query that this thread starts next has this interval between its triggers, or none.

    No event of Spark has it; its jobs inherit this property.
    """
    spark.sparkContext.setLocalProperty(STREAM_TRIGGER, interval)  # type: ignore[arg-type]


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """A property of the session has a value, and then the one that it had before.

    Unsetting it would put Spark's default in the place of a value that the session was started with.
    """
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


def _mark_driver_lines(spark: SparkSession, trace_id: str | None, *, key: str = MDC_TRACE_ID) -> None:
    """Executors mark the lines of their tasks by themselves; the driver's thread that serves this one needs it set."""
    jvm: Any = spark.sparkContext._jvm
    if trace_id is None:
        jvm.org.slf4j.MDC.remove(key)
    else:
        jvm.org.slf4j.MDC.put(key, trace_id)

from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import SparkSession

from spark_app.spark import job_properties
from spark_app.vocabulary.names import TRACEPARENT
from spark_app.vocabulary.spark_names import MDC_TRACE_ID, STEP_TAG

PARTITIONS = "spark.sql.shuffle.partitions"


def test_a_setting_returns_to_the_value_that_the_session_had(spark: SparkSession) -> None:
    """Not to Spark's default: a session was started with another one."""
    before = spark.conf.get(PARTITIONS)
    assert before == "2"
    with job_properties.setting(spark, PARTITIONS, "7"):
        assert spark.conf.get(PARTITIONS) == "7"
    assert spark.conf.get(PARTITIONS) == before


def test_a_setting_that_was_not_there_is_unset(spark: SparkSession) -> None:
    """The session then has no value of it."""
    with job_properties.setting(spark, "spark.databricks.delta.commitInfo.userMetadata", "tag"):
        pass
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None


def test_a_step_within_a_step_gives_back_what_was_there(spark: SparkSession) -> None:
    """Jobs and log lines lead to the outer step again, and after it to what the program itself had set."""
    context = spark.sparkContext
    mdc: Any = context._jvm.org.slf4j.MDC  # type: ignore[union-attr]

    def current() -> tuple[Any, ...]:
        keys = (TRACEPARENT, MDC_TRACE_ID, "spark.job.description")
        return (*map(context.getLocalProperty, keys), mdc.get(MDC_TRACE_ID), {*context.getJobTags()})

    def step(name: str) -> AbstractContextManager[None]:
        return job_properties.step_properties(spark, name, traceparent=f"trace {name}", trace_id=name)

    context.setJobDescription("my own")
    context.addJobTag("mine")
    try:
        before = current()
        with step("outer"):
            outer = current()
            with step("inner"):
                tags = {"mine", f"{STEP_TAG}trace inner"}
                assert current() == ("trace inner", "inner", "inner", "inner", tags)
            assert current() == outer
        assert current() == before
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        context.removeJobTag("mine")

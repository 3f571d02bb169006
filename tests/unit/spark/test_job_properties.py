from pyspark.sql import SparkSession

from app.spark import job_properties

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

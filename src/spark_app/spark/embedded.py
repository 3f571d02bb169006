"""A Spark of one core in this process, whatever master is configured: for a command of seconds that plans queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from spark_app.settings import Settings
from spark_app.spark import session
from spark_app.spark.session import StartingJvm

PROPERTIES: Final = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for a program of seconds: it compiles little, and collects garbage with one thread."""


def starting(settings: Settings) -> StartingJvm:
    """Its JVM, which starts while Python loads what a command needs."""
    return StartingJvm(settings, extra=PROPERTIES, collector=LIGHT)


@contextmanager
def started(settings: Settings, name: str, jvm: StartingJvm) -> Iterator[SparkSession]:
    """A session in it, which leaves no event log.

    Args:
        settings: The configuration.
        name: The `spark.app.name`.
        jvm: The JVM that was started for it.
    """
    spark = session.start(settings, name=name, log_file=jvm.log_file, extra=PROPERTIES, jvm=jvm, collector=LIGHT)
    try:
        yield spark
    finally:
        session.stop(spark)

"""Advice names a setting with its value, or with Spark's default."""

import re
from typing import Any

from pyspark.sql import SparkSession

from spark_app.eventlog.diagnoses.settings_advice import DEFAULTS, PARALLELISM


def test_the_defaults_are_those_of_spark(spark: SparkSession) -> None:
    """A log has only what a program has set, and whoever reads it may have no Spark."""
    jvm: Any = spark._jvm
    entries = jvm.org.apache.spark.internal.config.ConfigEntry
    expected = {name: value for name, value in DEFAULTS.items() if name != PARALLELISM}  # it depends on the master
    defaults = {name: entries.findEntry(name).defaultValueString() for name in expected}
    assert {name: re.sub("000ms$", "s", value) for name, value in defaults.items()} == expected

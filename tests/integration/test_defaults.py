"""What the report takes for Spark's defaults."""

import re
from typing import Any

from pyspark.sql import SparkSession

from app.report.sections.defaults import DEFAULTS, is_default


def test_each_default_is_what_spark_itself_says(spark: SparkSession) -> None:
    """By its own entries, of which some fall back on others."""
    jvm: Any = spark.sparkContext._jvm
    entries = jvm.org.apache.spark.internal.config.ConfigEntry

    def said(key: str) -> str:
        entry = entries.findEntry(key)
        text = "no entry" if entry is None else str(entry.defaultValueString())
        other = re.fullmatch(r"<value of (.+)>", text)
        return said(other[1]) if other else text

    told = {key: said(key) for key in DEFAULTS}
    assert {key: text for key, text in told.items() if not is_default(key, text, spark.version)} == {}

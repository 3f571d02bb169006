"""Advice names a setting with its value, or with Spark's default."""

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.eventlog.diagnoses.settings_advice import ARROW, DEFAULTS, PARALLELISM, use_arrow
from tests.unit.eventlog import log


def test_the_defaults_are_those_of_spark(spark: SparkSession) -> None:
    """A log has only what a program has set, and whoever reads it may have no Spark."""
    jvm: Any = spark._jvm
    entries = jvm.org.apache.spark.internal.config.ConfigEntry
    expected = {name: value for name, value in DEFAULTS.items() if name != PARALLELISM}  # it depends on the master
    defaults = {name: entries.findEntry(name).defaultValueString() for name in expected}
    assert {name: re.sub("000ms$", "s", value) for name, value in defaults.items()} == expected


@pytest.mark.parametrize(
    ("line", "properties", "is_said"),
    [
        ("toPandas at /jobs/job.py:7", {ARROW: "false"}, True),
        ("toPandas at /jobs/job.py:7", {ARROW: "true"}, False),
        ("toPandas at /jobs/job.py:7", {}, False),
        ("collect at /jobs/job.py:7", {ARROW: "false"}, False),
    ],
    ids=["off", "on", "the default of Spark 4.2", "rows for a program"],
)
def test_to_pandas_without_arrow_is_said_with_its_line(line: str, properties: dict[str, str], *, is_said: bool) -> None:
    """A setting is the whole remedy: the rows come as columns."""
    query = log.query(1) | {"description": line}
    app = log.application([log.started(), log.environment(properties), query])
    said = use_arrow(app, app.queries[1])
    assert ("unpickles the rows of toPandas at job.py:7 one by one: set it to true" in said) == is_said
    assert bool(said) == is_said

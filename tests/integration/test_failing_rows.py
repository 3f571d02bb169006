"""A row that makes a function fail is named, also where the function keeps a state."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app import daily
from spark_app.errors import SparkAppError
from tests.integration.any_order import FIRST, Project, bronze_readings, usage


@daily.state(schema="meter_id string, share decimal(38, 2)", key="meter_id")
def shares(shares: DataFrame, usage: DataFrame) -> DataFrame:
    """What one unit is of what each meter measured last."""
    return usage.select("meter_id", (1 / F.col("kwh")).cast("decimal(38, 2)").alias("share"))


def test_the_row_of_a_day_that_a_state_fails_on_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """With the line of the state, and how to see it; the state is as it was."""
    project = Project(spark, tmp_path, declared={"etl.readings": [bronze_readings, usage, shares]})
    rows = [
        {"reading_id": meter, "meter_id": meter, "kwh": kwh, "changed_at": f"{FIRST}T10:00:00Z"}
        for meter, kwh in (("m0", "4.00"), ("m1", "0.00"), ("m2", "2.00"))
    ]
    project.deliver("readings", FIRST, "a", rows)
    with pytest.raises(SparkAppError) as raised:
        project.run([FIRST])
    message = str(raised.value)
    assert f"{Path(__file__).name}:15: shares fails on a row of usage: [DIVIDE_BY_ZERO] " in message
    assert f"see it: spark-app show usage --date {FIRST} --where \"day = '{FIRST}' and meter_id = 'm1' and " in message

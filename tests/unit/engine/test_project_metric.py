"""Metrics that a project declares: checked before Spark starts, and measured of the rows that a run has published."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app import Metric, schema
from spark_app.engine import project_metric
from spark_app.engine.code_location import DeclarationError
from spark_app.engine.context import DailyContext
from tests.integration.home import DAY, Home
from tests.unit.telemetry.memory import InMemory

COLUMNS = schema("size string, total decimal(12, 2), customers bigint")


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[InMemory]:
    """Telemetry that keeps what it would send."""
    memory = InMemory(tmp_path)
    yield memory
    memory.telemetry.close()


def metric(name: str = "shop.revenue", value: str = "sum(total)", **changes: Any) -> Metric:
    """A metric, with changes."""
    return Metric(name, value, **{"unit": "{EUR}", "meaning": "Revenue of a day", **changes})


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"name": "Revenue"}, "'Revenue' is no name of a metric: use lower case and a dot"),
        ({"name": "pipeline.revenue"}, "metrics of spark-app begin with pipeline: name pipeline.revenue otherwise"),
        ({"value": "total * 2"}, "'total \\* 2' is no sum, avg, min, max or count of a column"),
        ({"value": "sum(totl)"}, "shop.revenue: the table has no column totl: do you mean total"),
        ({"value": "sum(size)"}, "shop.revenue: sum needs a number, and size is none"),
        ({"labels": "siz"}, "shop.revenue: the table has no column siz: do you mean size"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(declared: dict[str, str], problem: str) -> None:
    """Before Spark starts."""
    with pytest.raises(DeclarationError, match=rf"test_project_metric.py:\d+: .*{problem}"):
        metric(**declared).require_columns(COLUMNS)


def test_metrics_are_measured_by_their_labels(tmp_path: Path, spark: SparkSession, telemetry: InMemory) -> None:
    """What has no value has no series; a missing label is `null`; too many series are a remark, and none is sent."""
    home, run = Home(tmp_path / "home", spark), telemetry.run()
    context = DailyContext(spark, home.warehouse, home.settings, DAY, run, home)
    rows = spark.sql(
        "SELECT * FROM VALUES ('small', 1.50, 2), ('small', 2.25, 1), (null, null, 1) t(size, total, customers)"
    )
    many = spark.range(project_metric.MAX_SERIES + 1).selectExpr("cast(id as string) size", "1 total", "1 customers")
    by_size, largest = metric(labels="size"), metric("shop.customers", "max(customers)")
    with run:
        project_metric.measure(context, [by_size, largest, metric("shop.rows", "count(*)", labels=("size",))], rows)
        project_metric.measure(context, [metric("shop.many", labels="size")], many)
        project_metric.measure(context, [metric("shop.wrong", "sum(gone)")], rows)
    assert telemetry.values("shop.revenue") == {("etl.daily_sales", "small"): 3.75}
    assert telemetry.values("shop.customers") == {("etl.daily_sales",): 2}
    assert telemetry.values("shop.rows") == {("etl.daily_sales", "small"): 2, ("etl.daily_sales", "null"): 1}
    assert [telemetry.values(name) for name in ("shop.many", "shop.wrong")] == [{}, {}]
    remarks = [*run.errors]
    assert any("shop.many not measured: ValueError: more than 100 values of size" in each for each in remarks)
    assert any("shop.wrong not measured: " in each for each in remarks)

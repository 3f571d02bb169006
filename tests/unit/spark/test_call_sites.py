import inspect
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_app.spark import call_sites
from spark_app.vocabulary import spark_names

HERE = "tests/unit/spark/test_call_sites.py"


def last_query(spark: SparkSession) -> Any:
    """What Spark knows of the query that began last."""
    queries = spark._jsparkSession.sharedState().statusStore().executionsList()
    return queries.apply(queries.size() - 1)


def line() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def properties(spark: SparkSession) -> list[str | None]:
    """What is set of the call site now."""
    return [
        spark.sparkContext.getLocalProperty(name)
        for name in (call_sites.SHORT, call_sites.LONG, call_sites.STREAM, call_sites.TRIGGER)
    ]


def test_each_action_has_the_line_of_the_program(spark: SparkSession, tmp_path: Path) -> None:
    """Of its own, also within a comprehension; nothing is left for the next action."""
    spark.range(3).count()
    assert last_query(spark).description() == f"count at {HERE}:{line() - 1}"
    spark.range(3).write.parquet(str(tmp_path / "written"))
    assert last_query(spark).description() == f"parquet at {HERE}:{line() - 1}"
    [spark.range(3).isEmpty() for _ in range(1)]
    assert last_query(spark).description() == f"isEmpty at {HERE}:{line() - 1}"
    assert properties(spark) == [None] * 4


def test_an_action_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """And its error is the same."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(PySparkException, match="PATH_ALREADY_EXISTS"):
        spark.range(3).write.parquet(str(tmp_path / "taken"))
    assert properties(spark) == [None] * 4


def test_a_description_of_the_program_stays(spark: SparkSession) -> None:
    """The line is in the details of the query then, with the functions above it."""
    spark.sparkContext.setJobDescription("counting")
    spark.range(3).count()
    query, here = last_query(spark), line() - 1
    spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    assert query.description() == "counting"
    first, second, *_ = query.details().splitlines()
    assert first == f"count at {HERE}:{here}"
    assert second == f"  in test_a_description_of_the_program_stays, {HERE}:{here}"


def test_a_call_site_of_the_program_stays(spark: SparkSession) -> None:
    """One that it has set itself; the place in Java, which a streaming query sets, is replaced for the action only."""
    context = spark.sparkContext
    for own, is_replaced in (
        ("mine", False),
        ("start at NativeMethodAccessorImpl.java:0", True),
        ("start at DirectMethodHandleAccessor.java:103", True),
    ):
        context.setLocalProperty(call_sites.SHORT, own)
        spark.range(3).count()
        description = f"count at {HERE}:{line() - 1}" if is_replaced else own
        assert (last_query(spark).description(), properties(spark)[0]) == (description, own)
        context.setLocalProperty(call_sites.SHORT, None)  # type: ignore[arg-type]


def test_a_streaming_query_has_the_line_that_started_it(spark: SparkSession, tmp_path: Path) -> None:
    """In a property that its thread inherits; an action in `foreachBatch` has its own line, and not one of Py4J."""
    seen: list[str | None] = []

    def look(batch: DataFrame, _: int) -> None:
        seen.append(spark.sparkContext.getLocalProperty(call_sites.STREAM))
        batch.collect()
        seen.append(last_query(spark).details().splitlines()[0].replace(f":{line() - 1}", ":the line"))

    rates = spark.readStream.format("rate").load().writeStream.foreachBatch(look).trigger(once=True)
    rates.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    assert seen == [f"start at {HERE}:{line() - 1}", f"collect at {HERE}:the line"]
    assert properties(spark) == [None] * 4


@pytest.mark.parametrize(
    ("trigger", "interval"),
    [({"processingTime": "1 second"}, "1000 milliseconds"), ({"processingTime": "0 seconds"}, "0 milliseconds"),
     ({"availableNow": True}, None), ({}, "0 milliseconds")],
)  # fmt: skip
def test_a_streaming_query_has_the_interval_of_its_trigger(
    spark: SparkSession, tmp_path: Path, trigger: dict[str, Any], interval: str | None
) -> None:
    """In a property that its jobs inherit, also where the program sets a call site; nothing is left for the next."""
    seen: list[str | None] = []
    rates = spark.readStream.format("rate").load().writeStream
    writer = rates.foreachBatch(lambda _, __: seen.append(spark.sparkContext.getLocalProperty(call_sites.TRIGGER)))
    spark.sparkContext.setLocalProperty(call_sites.SHORT, "of the program")
    query = (writer.trigger(**trigger) if trigger else writer).option("checkpointLocation", str(tmp_path)).start()
    spark.sparkContext.setLocalProperty(call_sites.SHORT, None)  # type: ignore[arg-type]
    while not seen and query.isActive:
        query.awaitTermination(1)
    query.stop()
    assert seen[0] == interval
    assert properties(spark) == [None] * 4


def test_the_property_of_the_interval_is_the_one_that_is_read() -> None:
    """The module imports nothing, so that it has a copy of the name."""
    assert call_sites.TRIGGER == spark_names.STREAM_TRIGGER

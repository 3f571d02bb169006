"""Failures that users of Spark meet, each raised for real: their errors are known, and have advice."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_app.eventlog.diagnoses.failures import failure_of

Raise = Callable[[SparkSession, Path], Any]


def rows_in(spark: SparkSession, folder: Path, kind: str = "parquet") -> str:
    """A folder with three rows."""
    spark.range(3).write.format(kind).save(str(folder / "rows"))
    return str(folder / "rows")


def removed_files(spark: SparkSession, folder: Path) -> Any:
    """Files that are removed after they were listed."""
    rows = spark.read.parquet(rows_in(spark, folder))
    for file in (folder / "rows").glob("*.parquet"):
        file.unlink()
    return rows.collect()


def torn_file(spark: SparkSession, folder: Path) -> Any:
    """A file that is no Parquet."""
    (folder / "a.parquet").write_text("these are the bytes of something else", encoding="utf-8")
    return spark.read.schema("id long").parquet(str(folder)).collect()


def written_twice(spark: SparkSession, folder: Path) -> None:
    """To one path, without a mode."""
    rows_in(spark, folder)
    rows_in(spark, folder)


def merged_twice(spark: SparkSession, folder: Path) -> Any:
    """A MERGE whose source has two rows for one of the target."""
    spark.range(3).union(spark.range(3)).createOrReplaceTempView("two_rows")
    target = f"delta.`{rows_in(spark, folder, 'delta')}`"
    return spark.sql(f"MERGE INTO {target} a USING two_rows b ON a.id = b.id WHEN MATCHED THEN UPDATE SET id = 1")


def broadcast_too_late(spark: SparkSession, _: Path) -> Any:
    """A side of a join that takes longer than a second."""
    own = spark.newSession()
    own.conf.set("spark.sql.broadcastTimeout", "1")
    slow = F.udf(lambda number: threading.Event().wait(5) or number, "long")
    return own.range(9).join(F.broadcast(own.range(3).select(slow("id").alias("id"))), "id").collect()


def streamed(spark: SparkSession, folder: Path, change: Callable[[DataFrame], DataFrame], *, mode: str) -> None:
    """One more file of a query with a checkpoint."""
    (folder / "in").mkdir(exist_ok=True)
    number = len(list((folder / "in").iterdir()))
    (folder / "in" / f"{number}.json").write_text('{"a": 1, "b": 2}\n', encoding="utf-8")
    rows = change(spark.readStream.schema("a long, b long").json(str(folder / "in")))
    writer = rows.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def other_keys(spark: SparkSession, folder: Path) -> None:
    """A query with state whose keys have changed."""
    streamed(spark, folder, lambda rows: rows.groupBy("a").count(), mode="update")
    streamed(spark, folder, lambda rows: rows.groupBy("a", "b").count(), mode="update")


def other_sources(spark: SparkSession, folder: Path) -> None:
    """A query with one more source than its checkpoint."""

    def other() -> DataFrame:
        return spark.readStream.schema("a long, b long").json(str(folder / "in"))

    streamed(spark, folder, lambda rows: rows, mode="append")
    streamed(spark, folder, lambda rows: rows.union(other()), mode="append")


def jdbc(spark: SparkSession, **options: str) -> Any:
    """A table of a database whose driver is not there."""
    return spark.read.jdbc("jdbc:nowhere://127.0.0.1/x", "t", properties=options)


def java(spark: SparkSession) -> Any:
    """The packages of the JVM."""
    gateway: Any = spark.sparkContext._jvm
    return gateway.java


def udf(function: Callable[[Any], Any]) -> Raise:
    """A Python function over three rows."""
    return lambda spark, _: spark.range(3).select(F.udf(function)("id")).collect()


def sql(text: str) -> Raise:
    """An expression over three rows."""
    return lambda spark, _: spark.range(3).selectExpr(text).collect()


LOCK: Final = threading.Lock()
RAISED: Final[dict[str, list[Raise]]] = {
    "cast": [sql("cast('x' || id as int)"), sql("to_date('2024-13-0' || id)"), sql("cast(id + 3000000000 as int)")],
    "division_by_zero": [sql("1 / id")],
    "overflow": [sql("id + 9223372036854775807"), sql("cast(id + 999.5 as decimal(4, 2))")],
    "index": [sql("array(1)[id]")],
    "subquery_rows": [sql("(select id from range(2)) + id")],
    "regular_expression": [sql("regexp_extract('a' || id, '(', 1)")],
    "column_not_found": [sql("idd")],
    "ambiguous_column": [lambda spark, _: spark.range(1).join(spark.range(1).alias("b"), F.lit(True)).select("id")],
    "missing_aggregation": [lambda spark, _: spark.sql("select id, count(*) from range(3)")],
    "columns_do_not_match": [lambda spark, _: spark.range(1).union(spark.range(1).selectExpr("id", "id"))],
    "table_not_found": [
        lambda spark, _: spark.table("nowhere"),
        lambda spark, folder: spark.read.parquet(str(folder / "nothing")),
        lambda spark, folder: spark.read.format("delta").load(str(folder / "nothing")).collect(),
    ],
    "exists_already": [written_twice],
    "files_gone": [removed_files],
    "file_type": [
        lambda spark, folder: spark.read.schema("id boolean").parquet(rows_in(spark, folder)).collect(),
    ],
    "file_unreadable": [torn_file],
    "delta_schema": [
        lambda spark, folder: (
            spark.range(3)
            .selectExpr("id", "id as b")
            .write.format("delta")
            .mode("append")
            .save(rows_in(spark, folder, "delta"))
        ),
    ],
    "merge_matches": [merged_twice],
    "broadcast_timeout": [broadcast_too_late],
    "python_worker_crash": [udf(lambda _: os._exit(3))],
    "not_serializable": [udf(lambda _: LOCK.locked())],
    "context_in_function": [
        lambda spark, _: spark.range(3).select(F.udf(lambda _: spark.range(2).count())("id")).collect()
    ],
    "checkpoint_of_another_query": [other_keys, other_sources],
    "output_mode": [
        lambda spark, folder: streamed(spark, folder, lambda rows: rows.groupBy("a").count(), mode="append")
    ],
    "jdbc_driver": [lambda spark, _: jdbc(spark), lambda spark, _: jdbc(spark, driver="org.nowhere.Driver")],
    "connector_missing": [lambda spark, _: spark.read.format("com.acme.nowhere").load()],
    "unreachable": [lambda spark, _: java(spark).net.Socket("127.0.0.1", 1)],
}
"""By the name of a kind, programs that fail so."""


@pytest.mark.parametrize("name", RAISED)
def test_an_error_is_known_by_what_spark_says(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Whatever way it is met."""
    for number, fail in enumerate(RAISED[name]):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(Exception) as raised:  # noqa: PT011 - of Java, of Python, of PySpark
            fail(spark, tmp_path / str(number))
        failure = failure_of(f"{raised.type.__name__}: {raised.value}")
        assert (failure.name if failure else None) == name, str(raised.value)[:500]

"""How fresh tables are, by logs as Delta writes them."""

import datetime
import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_app.spark.job_properties import setting
from spark_app.warehouse.delta_log import history
from spark_app.warehouse.freshness import Freshness, freshness, whole_files

AT = 1_704_067_200_000
"""2024-01-01T00:00:00Z, in milliseconds; each commit is a second later."""


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Writes a commit of a table."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    lines = [{"commitInfo": {"timestamp": AT + 1000 * version}}, *actions]
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")


def add(path: str, day: str | None = None, **other: Any) -> dict[str, Any]:
    """A file of a day."""
    return {"add": {"path": path, "dataChange": True, "partitionValues": {"day": day} if day else {}, **other}}


def remove(path: str, **other: Any) -> dict[str, Any]:
    """A file that is no longer part of the table."""
    return {"remove": {"path": path, "dataChange": True, **other}}


def at(version: int) -> datetime.datetime:
    """The instant of a commit."""
    return datetime.datetime.fromtimestamp(AT / 1000 + version, datetime.UTC)


def test_the_files_of_the_newest_version_are_listed(tmp_path: Path) -> None:
    """Unless rows of one are marked as deleted, which its file still has."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    assert whole_files(tmp_path) is None
    (log / f"{0:020}.json").write_text('{"add": {"path": "a"}}\n{"add": {"path": "b"}}')
    (log / f"{1:020}.json").write_text('{"remove": {"path": "a"}}')
    assert whole_files(tmp_path) == ["b"]
    (log / f"{2:020}.json").write_text('{"remove": {"path": "b"}}\n{"add": {"path": "b", "deletionVector": {"a": 1}}}')
    assert whole_files(tmp_path) is None


def test_a_table_that_was_never_published_has_no_freshness(tmp_path: Path) -> None:
    """Nor has one that was created without rows; one whose log cannot be read is not known."""
    assert freshness(tmp_path / "none", "day") is None
    commit(tmp_path, 0, {"metaData": {"id": "1"}})
    assert freshness(tmp_path, "day") is None
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text("{")
    assert freshness(tmp_path, "day") == Freshness()


def test_the_newest_day_is_that_of_the_files_of_the_newest_version(tmp_path: Path) -> None:
    """Not the day that was written last, nor one whose files were removed; a rewritten file stays."""
    commit(tmp_path, 0, add("a", "2024-01-02"))
    commit(tmp_path, 1, add("b", "2024-01-03"))
    commit(tmp_path, 2, add("c", "2024-01-01"))
    assert freshness(tmp_path, "day") == Freshness(at(2), datetime.date(2024, 1, 3))
    commit(tmp_path, 3, add("a", "2024-01-02", deletionVector={}), remove("a"), remove("b"))
    assert freshness(tmp_path, "day") == Freshness(at(3), datetime.date(2024, 1, 2))
    assert freshness(tmp_path) == Freshness(at(3))


def test_a_compaction_publishes_nothing(tmp_path: Path) -> None:
    """It joins files, and changes no row."""
    commit(tmp_path, 0, add("a", "2024-01-01"))
    commit(tmp_path, 1, remove("a", dataChange=False), add("b", "2024-01-01", dataChange=False))
    commit(tmp_path, 2)
    assert freshness(tmp_path, "day") == Freshness(at(0), datetime.date(2024, 1, 1))


def test_the_day_is_not_known_where_commits_are_missing(tmp_path: Path) -> None:
    """As after Delta deleted old ones, if there is no checkpoint of a form that is read."""
    commit(tmp_path, 7, add("a", "2024-01-01"))
    assert freshness(tmp_path, "day") == Freshness(at(7))


def test_the_log_of_delta_itself_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """With a checkpoint, before whose commits the log may end, and days that were written after it."""
    path, rows = str(tmp_path), spark.range(4, numPartitions=2).withColumn("day", F.to_date(F.lit("2024-01-02")))
    with setting(spark, "spark.databricks.delta.properties.defaults.checkpointInterval", "1"):
        rows.write.format("delta").partitionBy("day").save(path)
    for day in ("2024-01-01", "2024-01-03"):
        rows.withColumn("day", F.to_date(F.lit(day))).write.format("delta").mode("append").save(path)
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    newest = next(history(spark, path)).at
    assert freshness(tmp_path, "day") == Freshness(newest, datetime.date(2024, 1, 3))
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert freshness(tmp_path, "day") == Freshness(newest, datetime.date(2024, 1, 3))

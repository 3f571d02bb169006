"""Which days of a table of others have changed, by its files alone; and which rows belong to a day."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import InputError
from spark_app.warehouse.hadoop_files import LocalReader
from spark_app.warehouse.source_table import Kind, SourceTable, of_day

DAY = datetime.date(2024, 5, 2)


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Adds a commit to the log of a table."""
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (log / f"{version:020d}.json").write_text(text, encoding="utf-8")


def file(*, dates: tuple[str, str] | None = None, partition: str | None = None, changes: bool = True) -> dict[str, Any]:
    """A file with rows of some days, by its statistics or its partition."""
    stats = {"minValues": {"day": dates[0]}, "maxValues": {"day": dates[1]}} if dates else {}
    partitions = {} if partition is None else {"day": partition}
    return {"path": "a", "dataChange": changes, "partitionValues": partitions, "stats": json.dumps(stats)}


@pytest.mark.parametrize(
    ("action", "is_same"),
    [
        ({"add": file(dates=("2024-05-03T00:00:00.000Z", "2024-05-09T00:00:00.000Z"))}, True),
        ({"add": file(dates=("2024-05-01", "2024-05-02"))}, False),
        ({"add": file(dates=("2024-05-02T23:59:59.999Z", "2024-05-09T00:00:00.000Z"))}, False),
        ({"add": file(partition="2024-05-01")}, True),
        ({"remove": file(partition="2024-05-02")}, False),
        ({"add": file()}, False),
        ({"remove": {"path": "a"}}, False),
        ({"remove": file(changes=False)}, True),
        ({"commitInfo": {"operation": "SET TBLPROPERTIES"}}, True),
    ],
)
def test_a_commit_changes_the_days_that_it_may_have_rows_of(
    tmp_path: Path, action: dict[str, Any], *, is_same: bool
) -> None:
    """By partitions and statistics; where these say nothing, it may be any day. Compactions change none."""
    table = SourceTable(str(tmp_path / "orders"), "day", "delta")
    commit(tmp_path / "orders", 0, {"add": file(dates=("2024-05-02", "2024-05-02"))})
    first = table.content(LocalReader(), DAY)
    assert first == "version 0"
    commit(tmp_path / "orders", 1, action)
    assert table.content(LocalReader(), DAY, first) == (first if is_same else "version 1")


def test_a_log_without_a_commit_between_is_no_proof(tmp_path: Path) -> None:
    """Delta deletes old commits; a table that was made anew begins at 0 again."""
    table, other = SourceTable(str(tmp_path / "orders"), "day", "delta"), {"add": file(partition="2024-01-01")}
    for version in (4, 6):
        commit(tmp_path / "orders", version, other)
    assert table.content(LocalReader(), DAY, "version 4") == "version 6"
    assert table.content(LocalReader(), DAY, "version 9") == "version 6"
    assert table.content(LocalReader(), DAY, "something else") == "version 6"


@pytest.mark.parametrize("partition", ["day=2024-05-02", "day=2024-05-03"])
def test_a_folder_has_the_content_of_its_files(tmp_path: Path, partition: str) -> None:
    """Of those of the partition of the day, if there is one."""
    table = SourceTable(str(tmp_path), "day", "parquet")
    for folder in ("day=2024-05-02/hour=1", partition):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "a.parquet").write_text("x", encoding="utf-8")
    before = table.content(LocalReader(), DAY)
    (tmp_path / partition / "b.parquet").write_text("y", encoding="utf-8")
    assert before
    assert (table.content(LocalReader(), DAY) == before) == (partition != f"day={DAY}")


@pytest.mark.parametrize(("name", "kind"), [("sales.orders", "catalog"), ("s3a://lake/a", "delta")])
def test_nobody_can_tell_what_has_changed_elsewhere(name: str, kind: Kind) -> None:
    """In a catalog, or on another storage without Spark: no day is called stale."""
    assert SourceTable(name, "day", kind).content(LocalReader(), DAY) is None


@pytest.mark.parametrize(
    ("kind", "values", "rows"),
    [
        ("date", ["2024-05-01", "2024-05-02", "2024-05-03", None], 1),
        ("timestamp", ["2024-05-01 23:59:59.999999", "2024-05-02 00:00:00", "2024-05-02 23:59:59.999999"], 2),
        ("timestamp_ntz", ["2024-05-02 00:00:00", "2024-05-03 00:00:00"], 1),
        ("string", ["2024-05-02", "2024-05-02T23:59:59Z", "2024-05-03", "2024-05-01T23:00:00+09:00"], 2),
    ],
)
def test_a_day_has_its_rows_from_the_first_microsecond_to_the_last(
    spark: SparkSession, kind: str, values: list[str | None], rows: int
) -> None:
    """By a date, an instant or text."""
    frame = spark.createDataFrame([(each,) for each in values], "`a b` string").selectExpr(
        f"cast(`a b` as {kind}) `a b`"
    )
    assert frame.where(of_day(frame, "a b", DAY, "orders")).count() == rows


def test_a_column_without_days_is_one_line(spark: SparkSession) -> None:
    """Also one that is not there."""
    frame = spark.createDataFrame([], "day int, at timestamp")
    with pytest.raises(InputError, match=r"^day of orders is int: the day of a row is a date, a timestamp or text$"):
        of_day(frame, "day", DAY, "orders")
    with pytest.raises(InputError, match=r"^orders has no column dya, which says the day of a row: it has day, at$"):
        of_day(frame, "dya", DAY, "orders")

import datetime
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from app.ml.refunds import refunded
from app.schemas import DAILY_SALES, RAW_CUSTOMERS
from spark_app.errors import UsageError
from spark_app.execution.pipelines import declared_tables
from spark_app.warehouse import delta_log, hadoop_files, schemas
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.tables import Table, Warehouse
from tests.polling import poll_until

DAY = datetime.date(2024, 1, 1)
SECOND = datetime.timedelta(seconds=1)


STRAYS = (".00000000000000000000.json.1.tmp", "..00000000000000000000.json.1.tmp.crc")


def sales(spark: SparkSession, rows: int, *, day: datetime.date = DAY) -> DataFrame:
    """Rows of daily_sales."""
    columns = {name: f"CAST(NULL AS {DAILY_SALES[name].dataType.simpleString()})" for name in DAILY_SALES.names}
    columns |= {"processed_date": f"date '{day}'", "transaction_count": "id"}
    return spark.range(rows).selectExpr(*(f"{value} AS {name}" for name, value in columns.items()))


def replace(warehouse: Warehouse, rows: int, *, day: datetime.date = DAY, author: str = "test") -> Commit:
    """Writes rows of daily_sales as a run does."""
    path, where = warehouse.path("daily_sales"), f"processed_date = '{day}'"
    write = partial(warehouse.replace_where, sales(warehouse.spark, rows, day=day), "daily_sales", where)
    return delta_log.commit_with_retry(warehouse.spark, path, write, author=author, note=lambda _: None)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warehouse:
    """A warehouse whose daily_sales was written three times, one row more each time."""
    warehouse = Warehouse(spark, str(tmp_path_factory.mktemp("home")), declared_tables())
    for rows in (0, 1, 2):
        replace(warehouse, rows)
    return warehouse


def counted(warehouse: Warehouse, as_of: datetime.datetime) -> int:
    """Rows as of an instant."""
    return warehouse.open("daily_sales", as_of=as_of).count()


def test_an_instant_finds_the_version_that_was_the_newest(warehouse: Warehouse) -> None:
    """Also one that is later than the last commit."""
    path = warehouse.path("daily_sales")
    newest, middle, first = delta_log.history(warehouse.spark, path)
    assert counted(warehouse, newest.at + 1000 * SECOND) == 2
    assert counted(warehouse, newest.at) == 2
    assert counted(warehouse, middle.at) == 1
    assert counted(warehouse, first.at) == 0


def test_an_instant_before_the_first_version_is_told(warehouse: Warehouse) -> None:
    """With the instant of the first one."""
    with pytest.raises(UsageError, match=r"has no version that old; its first version is from 2\d{3}-"):
        counted(warehouse, datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))


def test_a_table_that_is_not_there_is_told(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    """Unknown, not made yet, or a view without versions."""
    with pytest.raises(UsageError, match="no table 'sales'; the tables are bronze"):
        warehouse.open("sales")
    with pytest.raises(UsageError, match="table customers does not exist yet"):
        Warehouse(spark, str(tmp_path), declared_tables()).open("customers")
    with pytest.raises(UsageError, match="quarantine is a view"):
        warehouse.open("quarantine", version=1)


def test_the_first_write_creates_the_table_with_its_comments(warehouse: Warehouse) -> None:
    """In the same commit, also if it has no rows; the columns and partitions are the declared ones."""
    table = warehouse.table("daily_sales")
    assert table.count() == 2
    assert [(field.name, field.dataType, field.metadata) for field in table.schema] == [
        (field.name, field.dataType, field.metadata) for field in DAILY_SALES
    ]
    assert [commit.rows for commit in delta_log.history(warehouse.spark, warehouse.path("daily_sales"))] == [2, 1, 0]
    assert warehouse.table("daily_sales", version=1).count() == 1


def test_a_replacement_adds_columns_that_a_newer_program_declares(spark: SparkSession, tmp_path: Path) -> None:
    """A table of an older program is no failure; its rows have no value of the new column."""
    newer, fields = refunded.scores, refunded.scores.schema.fields
    older = Table(newer.name, StructType([*fields[:1], *fields[2:]]), newer.partitions)
    for day, table in ((DAY, older), (DAY + datetime.timedelta(days=1), newer)):
        values = {"transaction_id": "'t-1'", "customer_id": "'c-1'", "processed_date": f"date '{day}'"}
        columns = (f"{values.get(name, 'NULL')} AS {name}" for name in table.schema.names)
        rows = spark.range(1).selectExpr(*columns)
        Warehouse(spark, str(tmp_path), [table]).replace_where(rows, table.name, f"processed_date = '{day}'", "test")
    found = Warehouse(spark, str(tmp_path), [newer]).table("refund_scores").orderBy("processed_date").collect()
    assert [row.customer_id for row in found] == [None, "c-1"]


@pytest.mark.parametrize("location", ["{}", "file://{}", "viewfs:///disk{}"])
@pytest.mark.parametrize("strays", [None, (), STRAYS])
def test_a_table_may_be_created_by_several_writers_at_once(
    spark: SparkSession, tmp_path: Path, location: str, strays: tuple[str, ...] | None
) -> None:
    """All of them succeed, also where no lock is possible, and after a writer that was killed in its first commit."""
    hadoop_files.hadoop(spark).set("fs.viewfs.mounttable.default.link./disk", "file:///")
    warehouse = Warehouse(spark, location.format(tmp_path), declared_tables())
    if strays is not None:
        log = tmp_path / "daily_sales" / "_delta_log"
        (log / "_staged_commits").mkdir(parents=True)
        for name in strays:
            (log / name).write_text("{")
    assert warehouse.table("daily_sales").count() == 0
    assert not warehouse.exists("daily_sales")
    days = [DAY + datetime.timedelta(days) for days in range(3)]
    with ThreadPoolExecutor(3) as threads:
        commits = list(threads.map(lambda day: replace(warehouse, 2, day=day, author=str(day)), days))
    assert sorted(commit.version for commit in commits) == [0, 1, 2]
    assert warehouse.table("daily_sales").count() == 6


def test_a_writer_that_was_slower_than_another_creator_tries_again(warehouse: Warehouse) -> None:
    """It creates the table no more, since it exists."""
    attempts: list[str] = []

    def write(tag: str) -> None:
        attempts.append(tag)
        if len(attempts) == 1:
            warehouse.create(sales(warehouse.spark, 1), "daily_sales", tag)

    path = warehouse.path("daily_sales")
    delta_log.commit_with_retry(warehouse.spark, path, write, author="slower", note=lambda _: None)
    assert attempts == ["slower#1", "slower#2"]


def test_a_table_that_cannot_be_created_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """Delta refuses the name of a column; only that the table exists by now is none."""
    warehouse = Warehouse(spark, str(tmp_path), [Table("odd", StructType([StructField("a;b", StringType())]))])
    with pytest.raises(AnalysisException, match="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"):
        warehouse.create_if_missing("odd")


def test_an_unsafe_retention_is_refused(warehouse: Warehouse) -> None:
    """Files that a running job may need are never deleted."""
    with pytest.raises(UsageError, match="retain at least 7 days"):
        warehouse.vacuum("daily_sales", retain_days=6)


@contextmanager
def job_group(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs are in a group; Spark's `setJobGroup` also sets a description, which would stay."""
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", name)
    yield
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def make_old(warehouse: Warehouse, name: str, *, days: int) -> None:
    """Sets the time of the first commit of a table back."""
    first = Path(warehouse.path(name)) / "_delta_log" / f"{0:020}.json"
    at = re.search(r'"timestamp":(\d+)', text := first.read_text(encoding="utf-8"))
    assert at is not None
    first.write_text(text.replace(at[1], str(int(at[1]) - days * 86_400_000)), encoding="utf-8")
    first.with_name(f".{first.name}.crc").unlink(missing_ok=True)


def test_a_young_table_is_not_searched_for_old_files(warehouse: Warehouse) -> None:
    """All of its files are needed by versions that stay readable."""
    with job_group(warehouse.spark, "young"):
        warehouse.vacuum("daily_sales", retain_days=7)
    assert list(warehouse.spark.sparkContext.statusTracker().getJobIdsForGroup("young")) == []


def test_upkeep_keeps_the_content(warehouse: Warehouse) -> None:
    """Joined files hold the same rows, and a small table does not take thousands of tasks."""
    with job_group(warehouse.spark, "upkeep"):
        assert str(warehouse.optimize("daily_sales")).startswith("daily_sales: compacted ")
        assert warehouse.vacuum("daily_sales", retain_days=7) == "daily_sales: no version is older than 7 days"
        make_old(warehouse, "daily_sales", days=8)
        assert warehouse.vacuum("daily_sales", retain_days=7).startswith("daily_sales: deleted the files")
    assert warehouse.open("daily_sales").count() == 2
    tracker = warehouse.spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("upkeep")]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert 0 < sum(stage.numTasks for stage in stages if stage) < 500


def test_reading_the_quarantine_creates_no_table(spark: SparkSession, tmp_path: Path) -> None:
    """Before any run it does not exist; when only one source was read, its rows are shown."""
    warehouse = Warehouse(spark, str(tmp_path), declared_tables())
    with pytest.raises(UsageError, match="table quarantine does not exist yet"):
        warehouse.open("quarantine")
    assert list(tmp_path.iterdir()) == []
    empty = spark.createDataFrame([], schemas.bronze(RAW_CUSTOMERS.fields))
    warehouse.create(empty, "bronze_customers", "test")
    assert warehouse.open("quarantine").count() == 0
    assert warehouse.existing() == ["bronze_customers"]


def test_a_second_holder_of_a_lock_waits_and_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Of the same key, also where the warehouse is named by a `file:` URI; beyond that and S3 there is no lock."""
    warehouse = Warehouse(spark, (tmp_path / "w w").as_uri(), declared_tables())
    notes, released = list[str](), threading.Event()

    def wait() -> None:
        with warehouse.lock("key", on_wait=lambda: notes.append("waits")):
            released.set()

    with warehouse.lock("key"), warehouse.lock("other", on_wait=lambda: pytest.fail("another key is free")):
        second = threading.Thread(target=wait)
        second.start()
        poll_until(lambda: notes == ["waits"], "a second holder that waits")
        assert not released.is_set()
    second.join(60)
    assert released.is_set()
    remote = Warehouse(spark, "gs://bucket/warehouse", declared_tables())
    with remote.lock("key"), remote.lock("key"):
        pass


@pytest.mark.parametrize("is_upsert", [True, False])
def test_rows_that_are_merged_bring_their_new_columns(spark: SparkSession, tmp_path: Path, *, is_upsert: bool) -> None:
    """A newer program declares them: in the table they are added, and rows of before have none of their values."""
    name = "lines"
    warehouse = Warehouse(spark, str(tmp_path), [Table(name, StructType([StructField("key", StringType())]))])
    before = spark.createDataFrame([("a", 1), ("b", 1)], "key string, seen bigint")
    before.write.format("delta").save(warehouse.path(name))
    rows = spark.createDataFrame([("b", 2, 7), ("c", 2, 7)], "key string, seen bigint, last_n bigint")
    warehouse.merge(rows, name, "old.key = new.key", is_upsert=is_upsert)
    merged = spark.read.format("delta").load(warehouse.path(name)).orderBy("key").collect()
    known = ("b", 2, 7) if is_upsert else ("b", 1, None)
    assert [tuple(row) for row in merged] == [("a", 1, None), known, ("c", 2, 7)]

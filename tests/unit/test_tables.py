import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app import commits, files, tables
from app.errors import UsageError
from app.settings import Settings, load_settings

DAY = datetime.date(2024, 1, 1)
SECOND = datetime.timedelta(seconds=1)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Settings:
    """A warehouse whose totals were made empty and then written twice, one row more each time."""
    settings = load_settings().model_copy(update={"home": tmp_path_factory.mktemp("home")})
    path = tables.ensure(spark, settings, "daily_sales")
    for rows in (1, 2):
        many = spark.range(rows).selectExpr(f"date '{DAY}' AS processed_date", "id AS transaction_count")
        many.write.format("delta").mode("overwrite").save(path)
    return settings


def counted(spark: SparkSession, settings: Settings, as_of: datetime.datetime) -> int:
    """Rows as of an instant."""
    return tables.open_table(spark, settings, "daily_sales", as_of=as_of).count()


def test_an_instant_finds_the_version_that_was_the_newest(spark: SparkSession, settings: Settings) -> None:
    """Also one that is later than the last commit."""
    path = tables.path_of(settings, "daily_sales")
    newest, middle, first = commits.newest_first(spark, path)
    assert counted(spark, settings, newest.at + 1000 * SECOND) == 2
    assert counted(spark, settings, newest.at) == 2
    assert counted(spark, settings, middle.at) == 1
    assert counted(spark, settings, first.at) == 0


def test_an_instant_before_the_first_version_is_told(spark: SparkSession, settings: Settings) -> None:
    """With the instant of the first one."""
    with pytest.raises(UsageError, match=r"has no version that old; its first version is of 2\d{3}-"):
        counted(spark, settings, datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))


def test_a_table_that_is_not_there_is_told(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    """Unknown, not made yet, or a view without versions."""
    with pytest.raises(UsageError, match="no table 'sales'; there are bronze"):
        tables.open_table(spark, settings, "sales")
    with pytest.raises(UsageError, match="table customers does not exist yet"):
        tables.open_table(spark, settings.model_copy(update={"home": tmp_path}), "customers")
    with pytest.raises(UsageError, match="quarantine is a view"):
        tables.open_table(spark, settings, "quarantine", version=1)


def test_a_table_keeps_its_comments_and_its_content_once_made(spark: SparkSession, settings: Settings) -> None:
    """Making sure of it again changes nothing."""
    tables.ensure(spark, settings, "daily_sales")
    made = tables.open_table(spark, settings, "daily_sales")
    assert made.count() == 2
    assert {field.name for field in made.schema if not field.metadata.get("comment")} == set()


def test_an_unsafe_retention_is_refused(spark: SparkSession, settings: Settings) -> None:
    """Files that a running job may need are never deleted."""
    with pytest.raises(UsageError, match="keep at least 7 days"):
        tables.vacuum(spark, settings, "daily_sales", retain_days=6)


def test_upkeep_keeps_the_content(spark: SparkSession, settings: Settings) -> None:
    """Joined files hold the same rows, and a small table does not take thousands of tasks."""
    context = spark.sparkContext
    context.setJobGroup("upkeep", "upkeep")
    assert tables.optimize(spark, settings, "daily_sales").startswith("daily_sales: ")
    tables.vacuum(spark, settings, "daily_sales", retain_days=7)
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert tables.open_table(spark, settings, "daily_sales").count() == 2
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("upkeep")]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert 0 < sum(stage.numTasks for stage in stages if stage) < 500


@pytest.fixture
def empty(settings: Settings, tmp_path: Path) -> Settings:
    """A warehouse without any table."""
    return settings.model_copy(update={"home": tmp_path})


def test_looking_at_the_quarantine_makes_no_table(spark: SparkSession, empty: Settings) -> None:
    """Before any run it does not exist; when only one source was read, its rows are shown."""
    with pytest.raises(UsageError, match="table quarantine does not exist yet"):
        tables.open_table(spark, empty, "quarantine")
    assert list(empty.home.iterdir()) == []
    tables.ensure(spark, empty, "bronze_customers")
    assert tables.open_table(spark, empty, "quarantine").count() == 0
    assert tables.made(spark, empty) == ["bronze_customers"]


def test_a_note_takes_the_place_of_an_older_one(spark: SparkSession, tmp_path: Path) -> None:
    """Whole, and without anything left beside it."""
    for text in ("older", "newer"):
        files.write_text(spark, f"{tmp_path}/notes/1.json", text)
    assert files.read_text(spark, f"{tmp_path}/notes/1.json") == "newer"
    assert {path.name for path in (tmp_path / "notes").iterdir()} <= {"1.json", ".1.json.crc"}

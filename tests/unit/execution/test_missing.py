import datetime
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, LongType, StructField, StructType

from spark_app.declarations.pipeline import Pipeline
from spark_app.execution.missing import RecordedRuns, described, is_published, missing
from spark_app.local_files import write_atomic
from spark_app.runs import run_record
from spark_app.settings import load_settings
from spark_app.warehouse.tables import Table, Warehouse
from tests import declared
from tests.receivers import dead_port
from tests.unit.run_records import example_record
from tests.unit.watching import Watching

DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)]
OF_DAYS = StructType([StructField("day", DateType()), StructField("number", LongType())])
TOTALS = Table("totals", OF_DAYS, ("day",))
RAW = Table("bronze", OF_DAYS, ("day",), source="orders")
STATE = Table("customers", StructType([StructField("number", LongType())]))


def pipeline(*tables: Table) -> Pipeline:
    """A pipeline that writes tables."""
    return declared.pipeline(writes=tables)


@pytest.mark.parametrize(
    ("has_rows", "published", "is_there"),
    [
        ([True, True], [], True),
        ([True, False], [], False),
        ([False], [], False),
        ([False], [0], True),
        ([False], [7], False),
        ([True, False], [7], True),
        ([], [], False),
        ([], [7], True),
        ([], [None], True),
    ],
)
def test_a_day_is_published_by_its_rows_or_by_a_run(
    *, has_rows: Sequence[bool], published: Sequence[int | None], is_there: bool
) -> None:
    """A run counts where there are none to see: of a state, of a day without rows; not where they were deleted."""
    counts = [{} if number is None else {"published": number} for number in published]
    assert is_published(has_rows, [example_record(counts=each) for each in counts]) == is_there


def test_the_days_of_a_table_are_those_with_rows_that_are_published(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of bronze are not; nor is a run that failed, or whose table is not there any more."""
    warehouse = Warehouse(spark, str(tmp_path / "warehouse"), [TOTALS, RAW, STATE])
    warehouse.create(spark.createDataFrame([(DAYS[0], 1), (DAYS[2], 2)], OF_DAYS), "totals", "test")
    warehouse.create(spark.createDataFrame([(day, 1) for day in DAYS], OF_DAYS), "bronze", "test")
    warehouse.create(spark.createDataFrame([(1,)], STATE.schema), "customers", "test")
    now = datetime.datetime.now(datetime.UTC)
    runs = [
        ("etl.totals", DAYS[1], {"totals": warehouse.path("totals")}, now, "succeeded", {"published": 0}),
        ("etl.customers", DAYS[0], {"customers": warehouse.path("customers")}, now, "succeeded", {}),
        ("etl.customers", DAYS[1], {"customers": warehouse.path("customers")}, now, "rejected", {}),
        ("etl.customers", DAYS[2], {"customers": "/elsewhere"}, now, "succeeded", {}),
        ("etl.customers", DAYS[3], {"customers": warehouse.path("customers")}, now.replace(2023), "succeeded", {}),
    ]
    for name, day, tables, started, outcome, counts in runs:
        folder = tmp_path / "runs" / f"20240101T000000Z-{name}-{day}-0a1b2c"
        folder.mkdir(parents=True)
        changes = {"pipeline": name, "slice": str(day), "outcome": outcome, "counts": counts, "tables": tables}
        run_record.write(example_record(folder, started_at=started, **changes), note=Watching().note)
    pipelines = {"etl.totals": pipeline(RAW, TOTALS), "etl.customers": pipeline(RAW, STATE)}
    lacking = {"etl.totals": [DAYS[3]], "etl.customers": DAYS[1:]}
    settings = load_settings().model_copy(update={"home": tmp_path})
    assert missing(warehouse, RecordedRuns(settings, note=pytest.fail), pipelines, DAYS) == lacking
    for folder in (tmp_path / "runs").iterdir():
        write_atomic(tmp_path / "store" / "records" / "2024-01-01" / f"{folder.name}.json", content_of(folder))
    shared = load_settings().model_copy(update={"home": tmp_path / "other", "run_store": str(tmp_path / "store")})
    assert missing(warehouse, RecordedRuns(shared, note=pytest.fail), pipelines, DAYS) == lacking


def content_of(folder: Path) -> bytes:
    """The record of a run."""
    return (folder / "run.json").read_bytes()


def test_a_store_that_cannot_be_read_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the runs of this machine are all that is known."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    notes: list[str] = []
    settings = load_settings().model_copy(update={"home": tmp_path, "run_store": "s3://shop/runs"})
    find = RecordedRuns(settings, note=notes.append)
    assert [*find("etl.totals", DAYS[0]), *find("etl.totals", DAYS[1])] == []
    [note] = notes
    assert note.startswith("runs of other machines are not known: cannot reach s3://shop/runs/records")


def test_what_is_missing_is_said_in_a_line_for_each_pipeline() -> None:
    """Days that follow each other are a range; that nothing is missing is said."""
    lacking: dict[str, list[datetime.date]] = {"etl.customers": [], "etl.totals": [DAYS[0], *DAYS[2:]]}
    assert list(described(lacking, DAYS)) == [
        "etl.totals has not published 3 of 4 days: 2024-01-01, 2024-01-03 to 2024-01-04"
    ]
    lacking["etl.totals"] = []
    assert list(described(lacking, DAYS)) == [
        "nothing to do: etl.customers, etl.totals published 2024-01-01 to 2024-01-04, 4 days"
    ]

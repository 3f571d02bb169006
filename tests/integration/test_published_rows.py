"""A run publishes the rows that it has counted, by the commit's own number, or fails.

Files are lost while a run reads them, as on a bad disk whose errors Spark is told to overlook.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.schemas import CUSTOMER_THEN, RAW_TRANSACTIONS
from spark_app.commands.errors import failure
from spark_app.errors import ReconciliationError
from spark_app.execution.run import load_jobs, run_days, with_fingerprints
from spark_app.runs import column_lineage
from spark_app.spark.job_properties import setting
from spark_app.warehouse.fingerprint import Fingerprint, written
from tests.integration.home import DAY, Home, customer, sale

PUBLISHED = ("transactions", "daily_sales")
LATE = {"created_at": "2024-01-01T23:00:00Z", "updated_at": "2024-01-01T23:00:00Z"}


class Losing(Home):
    """A home folder that loses files of one day when a step begins."""

    lost: tuple[str, str] = ("", "")
    """The step, and the pattern of the files below the folder of the home."""

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """Deletes the files, and what Spark has kept of them."""
        if step == self.lost[0]:
            self.spark.catalog.clearCache()
            for file in self.folder.glob(self.lost[1]):
                file.unlink()


@pytest.fixture(scope="module")
def published(new_home: Callable[[str], Home]) -> Home:
    """A day of five sales by two customers is published."""
    home = new_home("published")
    home.forgive()
    home.deliver("customers", [customer(1), customer(2)])
    home.deliver("transactions", [sale(number, **LATE) for number in range(5)])
    home.run()
    return home


@pytest.fixture
def losing(published: Home, spark: SparkSession, tmp_path: Path) -> Iterator[Losing]:
    """A copy of it, with other rows of the same day, in a session that overlooks files that are lost."""
    shutil.copytree(published.folder, tmp_path / "shop")
    home = Losing(tmp_path / "shop", spark)
    home.deliver("customers", [customer(number, country="FR", updated_at=LATE["updated_at"]) for number in range(3)])
    home.deliver("transactions", [sale(number, **LATE) for number in range(9)])
    with setting(spark, "spark.sql.files.ignoreMissingFiles", "true"):
        yield home


def test_a_run_leaves_of_which_columns_its_declared_tables_are_made(published: Home) -> None:
    """By name, and where the inputs are; columns that the engine adds are none of them."""
    history, sales = sorted(published.settings.runs_path.glob(f"*/{column_lineage.COLUMNS}"))
    bronze, transactions, daily = column_lineage.read(sales.parent)
    warehouse, raw = published.settings.warehouse_path, published.settings.raw_path
    assert (bronze.table, bronze.path) == ("bronze", f"{warehouse}/bronze")
    assert bronze.inputs == {"customers": f"{warehouse}/customers", "transactions (raw)": f"{raw}/transactions"}
    assert bronze.columns["amount"] == [("transactions (raw)", "amount")]
    assert bronze.columns["customer_country"] == [("customers", "country")]
    assert bronze.columns.keys() == {*RAW_TRANSACTIONS.names, *CUSTOMER_THEN.names}
    assert transactions.columns["amount_category"] == [("bronze", "amount")]
    assert daily.columns["unique_customers"] == [("transactions", "customer_id")]
    assert daily.columns["transaction_count"] == []
    _, customers = column_lineage.read(history.parent)
    assert customers.columns["country"] == [("bronze_customers", "country"), ("customers", "country")]


def failing(home: Home, package: str = "etl", *chosen: str) -> str:
    """The message of a run that fails since rows do not reconcile."""
    with pytest.raises(ReconciliationError) as raised, home.application("spark-app") as application:
        run_days(application, with_fingerprints(home.settings, load_jobs(home.settings, package, chosen)), [DAY])
    assert failure(raised.value).exit_code == 1
    assert raised.value.results[-1].outcome == "failed"  # type: ignore[attr-defined]
    return str(raised.value)


def test_a_day_whose_commit_has_other_rows_than_were_counted_is_put_back(losing: Losing) -> None:
    """The audited rows were there when they were counted; what was published before is there again, to the row."""
    before = losing.content(*PUBLISHED)
    losing.lost = ("write transactions", "data/warehouse/bronze/**/*.parquet")
    message = failing(losing)
    assert message.startswith("etl.daily_sales 2024-01-01: 9 rows were counted for transactions, but its version ")
    assert " published 0; nothing after transactions was written: look for a lost file" in message
    assert losing.content(*PUBLISHED) == before
    assert any("transactions has the rows of before again" in note for note in losing.notes)


def test_rows_that_are_put_back_are_said_to_be_made_as_they_were(losing: Losing) -> None:
    """And not by the program whose rows were wrong."""
    jobs = [replace(job, fingerprints={"transactions": '{"code":"old"}'}) for job in load_jobs(losing.settings, "etl")]
    with losing.application("spark-app") as application:
        run_days(application, jobs, [DAY])
    losing.lost = ("write transactions", "data/warehouse/bronze/**/*.parquet")
    failing(losing)
    before = written(losing.tables / "transactions")
    assert before is not None
    assert before.fingerprint == Fingerprint(code="old")


def test_customers_of_the_day_that_the_merge_did_not_publish_end_the_run(losing: Losing) -> None:
    """The day's rows are looked up in the committed version; a merge takes nothing away that was there."""
    before = losing.content("customers", *PUBLISHED)
    losing.lost = ("write _changes/customers", "data/warehouse/bronze_customers/**/*.parquet")
    assert "3 rows were counted for customers, but its new version would have 0; nothing after" in failing(losing)
    assert losing.content("customers", *PUBLISHED) == before


def test_refunds_that_are_lost_before_they_are_written_end_the_run(losing: Losing) -> None:
    """The first write of a table, too, which is then empty."""
    refund = {"refund_id": "r-1", "transaction_id": "t-20240101-0000001", "customer_id": "c-0000001"}
    refund |= {"refunded_at": "2024-01-01T10:00:00.000000Z", "amount": "10.00"}
    losing.deliver("refunds", [refund])
    losing.lost = ("publish refund_events", "data/warehouse/bronze_refunds/**/*.parquet")
    assert "1 rows were counted for refund_events, but its version 0 published 0" in failing(
        losing, "ml", "refund_events"
    )
    assert losing.rows("refund_events", "transaction_id") == []

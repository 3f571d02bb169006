from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_app.engine.context import DailyContext
from spark_app.errors import ReconciliationError
from tests.integration.home import DAY, Home
from tests.unit.telemetry.memory import InMemory


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[InMemory]:
    """Telemetry that keeps what it would send."""
    memory = InMemory(tmp_path)
    yield memory
    memory.telemetry.close()


def test_rows_that_do_not_add_up_end_the_run(tmp_path: Path, spark: SparkSession, telemetry: InMemory) -> None:
    """A row that is neither published, quarantined nor removed is an error with all numbers."""
    home, run = Home(tmp_path / "home", spark), telemetry.run()
    context = DailyContext(spark, home.warehouse, home.settings, DAY, run, home)
    with run:
        context.reconcile(read=1_010, published=1_000, quarantined=7, duplicates=3)
        message = r"2024-01-01: 1,010 rows read, but 1,000 published \+ 7 quarantined \+ 2 duplicates = 1,009"
        with pytest.raises(ReconciliationError, match=message):
            context.reconcile(read=1_010, published=1_000, quarantined=7, duplicates=2)
    assert telemetry.values("pipeline.rows.unaccounted") == {("etl.daily_sales",): 1}

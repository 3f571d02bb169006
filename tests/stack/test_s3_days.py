"""Days whose tables are on a real S3 server are as those on a disk: reruns, two runs at once, kills.

Needs versitygw on PATH.
"""

import os
import time
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from tests import s3
from tests.integration.home import Home
from tests.integration.processes import PATIENCE_SECONDS, ended, left_behind, started
from tests.integration.repeated_day import RepeatedDay
from tests.polling import poll_until
from tests.stack.s3_home import S3Home

LONG: Final = 3600
"""Seconds after which whoever asks for a lock need not look at its holder to know that it is dead."""
MOMENTS: Final = [
    f"{table}/_delta_log/*.json" for table in ("bronze_customers", "customers", "bronze", "transactions", "daily_sales")
]
"""The commits of a run, in their order."""


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, server: s3.Server) -> RepeatedDay:
    """The day, both times, on S3."""
    folder = tmp_path_factory.mktemp("days")
    return RepeatedDay(lambda name: S3Home(folder / name, spark, server))


def test_a_day_on_s3_has_the_content_of_one_on_a_disk(day: RepeatedDay, spark: SparkSession, tmp_path: Path) -> None:
    """When it comes for the first time, when other rows replace it, and when it is run once more."""
    disk = RepeatedDay(lambda name: Home(tmp_path / name, spark))
    assert (day.first_content, day.content) == (disk.first_content, disk.content)
    day.twice.run()
    assert day.twice.content() == day.content


def test_tables_on_s3_are_maintained(day: RepeatedDay) -> None:
    """Compacted and vacuumed, shown with their history; no row changes."""
    warehouse = day.twice.warehouse
    assert warehouse.optimize("transactions").files_removed > 0
    assert "no version is older" in warehouse.vacuum("transactions", retain_days=7)
    assert [facts.exists for facts in warehouse.facts() if facts.name == "transactions"] == [True]
    assert day.twice.content() == day.content


def test_two_runs_of_a_day_at_once_both_succeed(day: RepeatedDay, tmp_path: Path) -> None:
    """Two processes: the second waits for the lock of the first. Both together leave the content of one."""
    home = day.fresh.copied(tmp_path / "home")
    with started(home, stderr=tmp_path / "one") as one, started(home, stderr=tmp_path / "two") as two:
        codes = one.wait(PATIENCE_SECONDS), two.wait(PATIENCE_SECONDS)
    errors = [(tmp_path / name).read_text(encoding="utf-8") for name in ("one", "two")]
    assert codes == (0, 0), errors
    assert any("waiting for it to end" in error for error in errors)
    assert home.content() == day.first_content


@pytest.mark.parametrize("is_first", [True, False])
def test_a_killed_run_is_repeated(day: RepeatedDay, tmp_path: Path, *, is_first: bool) -> None:
    """After each of its commits: the rerun publishes the day as if nothing had happened, also where it replaces one."""
    home, content = (day.fresh, day.first_content) if is_first else (day.once, day.content)
    for folder in left_behind(home.copied(tmp_path / "home"), MOMENTS, tmp_path).values():
        left = S3Home(folder, day.fresh.spark, home.server)  # type: ignore[attr-defined]
        for lock in (left.tables / "_locks").iterdir():
            os.utime(lock, (time.time() - LONG,) * 2)
        left.run()
        assert left.content() == content, folder


def test_the_lock_of_a_killed_run_is_free_after_half_a_minute(day: RepeatedDay, tmp_path: Path) -> None:
    """Nobody says that another process works, and the day is published."""
    home = day.fresh.copied(tmp_path / "home")
    with started(home, stderr=tmp_path / "killed") as process:
        locks = home.tables / "_locks"
        poll_until(lambda: any(locks.glob("*.lock")) or process.poll() is not None, "a lock", seconds=PATIENCE_SECONDS)
        process.kill()
    home.run()
    assert home.notes == []
    assert home.content() == day.first_content


def test_a_run_whose_event_log_is_on_s3_has_a_report(day: RepeatedDay, tmp_path: Path) -> None:
    """The raw files are there, too, and the command reads the log from there as `spark-app report` does."""
    home = day.fresh.copied(tmp_path / "home")
    assert isinstance(home, S3Home)
    home.configure_spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"s3a://{home.bucket}/events"})
    home.upload("events/.keep", b"")
    for file in (home.folder / "raw").rglob("*.json"):
        home.upload(f"raw/{file.relative_to(home.folder / 'raw')}", file.read_bytes())
    places = {"SPARK_APP_RAW__PATH": f"s3a://{home.bucket}/raw", "AWS_ENDPOINT_URL": home.server.url}
    code, said = ended(home, stderr=tmp_path / "stderr", **places)
    assert code == 0, said
    assert "no report" not in said
    assert len(list((home.folder / "reports").glob("*etl.daily_sales*.html"))) == 1
    assert home.content() == day.first_content

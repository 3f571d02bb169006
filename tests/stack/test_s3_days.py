"""Days whose tables are on a real S3 server are as those on a disk: reruns, two runs at once, kills.

Needs versitygw on PATH.
"""

import datetime
import os
import re
import time
from pathlib import Path
from typing import Final

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from spark_app.execution import graph
from spark_app.execution.run import load_jobs, run_missing
from spark_app.warehouse.freshness import Freshness
from tests import s3
from tests.integration.home import DAY, Home
from tests.integration.processes import PATIENCE_SECONDS, ended, left_behind, started
from tests.integration.repeated_day import RepeatedDay
from tests.polling import poll_until
from tests.receivers import dead_port
from tests.stack.s3_home import S3Home

ONE_DAY: Final = datetime.timedelta(days=1)
LONG: Final = 3600
"""Seconds after which whoever asks for a lock need not look at its holder to know that it is dead."""
MOMENTS: Final = [
    f"{table}/_delta_log/*.json" for table in ("bronze_customers", "customers", "bronze", "transactions", "daily_sales")
]
"""The commits of a run, in their order."""
BETWEEN: Final = MOMENTS[3]
"""The one between the two tables that a run publishes: sales are new, and the totals are those of the run before."""


def live_files(home: Home) -> set[Path]:
    """The files of the newest version of `transactions`."""
    return {home.tables / name.partition("/warehouse/")[2] for name in home.table("transactions").inputFiles()}


def make_old(table: Path, *, days: int) -> None:
    """Sets back when the commits and the files of a table were made."""
    past = days * 86_400_000
    for commit in (table / "_delta_log").glob("*.json"):
        text = commit.read_text(encoding="utf-8")
        older = re.sub(r'("(?:timestamp|deletionTimestamp)":)(\d+)', lambda at: f"{at[1]}{int(at[2]) - past}", text)
        commit.write_text(older, encoding="utf-8")
    for file in (*table.rglob("*.parquet"), *(table / "_delta_log").iterdir()):
        os.utime(file, (time.time() - days * 86_400,) * 2)


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


def test_a_vacuum_deletes_what_only_old_versions_need_and_nothing_else(day: RepeatedDay, tmp_path: Path) -> None:
    """Files that were replaced, or never committed, longer ago than the retention; not those that were lately."""
    home = day.twice.copied(tmp_path / "home")
    folder = home.tables / "transactions"
    replaced = set(folder.rglob("*.parquet")) - live_files(home)
    (folder / "orphan.parquet").write_bytes(b"of a run that was killed")
    make_old(folder, days=8)
    (folder / "young.parquet").write_bytes(b"of a run that is at work")
    rewritten = live_files(home)
    DeltaTable.forPath(home.spark, home.warehouse.path("transactions")).update(set={"quantity": "quantity"})
    kept = rewritten | live_files(home) | {folder / "young.parquet"}
    assert replaced
    assert rewritten.isdisjoint(live_files(home))
    assert "deleted the files" in home.warehouse.vacuum("transactions", retain_days=7)
    assert set(folder.rglob("*.parquet")) == kept
    assert home.content() == day.content


@pytest.mark.before_release
def test_only_days_that_are_missing_are_run(day: RepeatedDay, tmp_path: Path) -> None:
    """`etl --missing` sees in the tables on S3 which these are, and nothing of it twice."""
    home = day.fresh.copied(tmp_path / "home")
    home.made(DAY + ONE_DAY, rows=100)
    jobs = load_jobs(home.settings, "etl")
    with home.application("spark-app etl") as application:
        for days, run in (([DAY], 2), ([DAY, DAY + ONE_DAY], 2), ([DAY, DAY + ONE_DAY], 0)):
            application.results.clear()
            run_missing(application, jobs, days)
            outcomes = [(result.slice, result.outcome) for result in application.results]
            assert outcomes == [(str(days[-1]), "succeeded")] * run
    assert any(note.startswith("nothing to do") for note in home.notes)


def test_the_graph_tells_how_fresh_tables_are(day: RepeatedDay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark, by the driver that reads event logs on S3: the day, and the last commit that changed rows."""
    home = day.twice
    assert isinstance(home, S3Home)
    for name, value in {"AWS_ENDPOINT_URL": home.server.url, **s3.KEYS}.items():
        monkeypatch.setenv(name, value)
    found = graph.of_project(home.settings)
    assert found.trouble is None
    freshness = {asset.name: asset.freshness for asset in found.assets if asset.kind == "table"}
    sales = freshness["daily_sales"]
    assert sales is not None
    assert sales.day == DAY
    assert sales.at is not None
    assert abs(sales.at.timestamp() - time.time()) < LONG
    assert freshness["refund_events"] is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{dead_port()}")
    away = graph.of_project(home.settings)
    assert "cannot reach s3a://" in str(away.trouble)
    assert {str(asset.freshness) for asset in away.assets if asset.kind == "table"} == {str(Freshness())}


@pytest.mark.before_release
def test_two_runs_of_a_day_at_once_both_succeed(day: RepeatedDay, tmp_path: Path) -> None:
    """Two processes: the second waits for the lock of the first. Both together leave the content of one."""
    home = day.fresh.copied(tmp_path / "home")
    with started(home, stderr=tmp_path / "one") as one, started(home, stderr=tmp_path / "two") as two:
        codes = one.wait(PATIENCE_SECONDS), two.wait(PATIENCE_SECONDS)
    errors = [(tmp_path / name).read_text(encoding="utf-8") for name in ("one", "two")]
    assert codes == (0, 0), errors
    assert any("waiting for it to end" in error for error in errors)
    assert home.content() == day.first_content


@pytest.mark.parametrize(
    ("is_first", "moments"),
    [
        (False, [BETWEEN]),
        pytest.param(True, MOMENTS, marks=pytest.mark.before_release),
        pytest.param(False, MOMENTS, marks=pytest.mark.before_release),
    ],
)
def test_a_killed_run_is_repeated(day: RepeatedDay, tmp_path: Path, *, is_first: bool, moments: list[str]) -> None:
    """The rerun publishes the day as if nothing had happened, also where it replaces one."""
    home, content = (day.fresh, day.first_content) if is_first else (day.once, day.content)
    for folder in left_behind(home.copied(tmp_path / "home"), moments, tmp_path).values():
        left = S3Home(folder, day.fresh.spark, home.server)  # type: ignore[attr-defined]
        for lock in (left.tables / "_locks").iterdir():
            os.utime(lock, (time.time() - LONG,) * 2)
        left.run()
        assert left.content() == content, folder


@pytest.mark.before_release
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
    """The raw files are there, too, and the command reads log and samples from there, as `spark-app report` does."""
    home = day.fresh.copied(tmp_path / "home")
    assert isinstance(home, S3Home)
    home.configure_spark({"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"s3a://{home.bucket}/events"})
    home.upload("events/.keep", b"")
    for file in (home.folder / "raw").rglob("*.json"):
        home.upload(f"raw/{file.relative_to(home.folder / 'raw')}", file.read_bytes())
    places = {"SPARK_APP_RAW__PATH": f"s3a://{home.bucket}/raw", "AWS_ENDPOINT_URL": home.server.url}
    places["SPARK_APP_PROFILE"] = "1"
    code, said = ended(home, stderr=tmp_path / "stderr", **places)
    assert code == 0, said
    assert "no report" not in said
    assert "sample" not in said
    [report] = (home.folder / "reports").glob("*etl.daily_sales*.html")
    assert "Where the time goes inside stages" in report.read_text(encoding="utf-8")
    assert home.content() == day.first_content

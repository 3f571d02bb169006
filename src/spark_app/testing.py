"""For the tests of a project: `pytest_plugins = ["spark_app.testing"]` in its `conftest.py`.

::

    def test_orders_are_summed(run_day: RunDay) -> None:
        tables = run_day("daily_orders", orders=[{"order_id": "o-1", ...}])
        assert [row.total for row in tables.rows("daily_orders")] == [Decimal("10.00")]

    def test_views_are_counted(run_query: RunQuery) -> None:
        tables = run_query("views_per_page", page_views=[{"view_id": "v-1", ...}])
        assert [row.views for row in tables.rows("views_per_page")] == [1]
"""

import datetime
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import Row, SparkSession

from spark_app.declarations.daily_pipeline import DailyPipeline
from spark_app.engine.progress import ProgressListener
from spark_app.execution import pipelines
from spark_app.execution.application import Application, spark_identity
from spark_app.execution.run import Job, load_jobs, run_days
from spark_app.execution.streams import joined, run_queries, session_properties
from spark_app.execution.supervisor import StopCondition
from spark_app.runs.stream_status import StreamStatus
from spark_app.settings import Raw, Settings, load_settings
from spark_app.spark import jars, session
from spark_app.spark.java_runtime import require_java
from spark_app.telemetry import setup
from spark_app.warehouse.tables import Warehouse

DAY: Final = datetime.date(2024, 1, 1)
LIGHT: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A session for a handful of rows: small, and without code that is compiled for millions."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one local session of all tests."""
    require_java()
    jars.ensure_jars(note=print)
    folder: Path = tmp_path_factory.mktemp("spark")
    settings = load_settings().model_copy(update={"home": folder})
    started = session.start(
        settings, name="tests", log_file=folder / "spark.jsonl", extra=LIGHT | session_properties(settings)
    )
    yield started
    session.stop(started)


class Tables:
    """What a run has left."""

    def __init__(self, warehouse: Warehouse) -> None:
        """The tables of a warehouse."""
        self._warehouse = warehouse

    def rows(self, name: str) -> list[Row]:
        """The rows of a table, or of `quarantine`, in the order of their first columns."""
        return sorted(self._warehouse.open(name).collect(), key=lambda row: [str(value) for value in row])


@dataclass(frozen=True)
class RunDay:
    """Runs pipelines of the project on raw rows, in a folder that is deleted afterwards.

    Attributes:
        spark: The session.
        settings: The settings of the project, with a home of their own.
    """

    spark: SparkSession
    settings: Settings

    def __call__(
        self,
        *names: str,
        date: datetime.date = DAY,
        limits: float | None = None,
        **sources: Sequence[Mapping[str, Any]],
    ) -> Tables:
        """Runs pipelines for a day, on rows as JSON in the folder of the day wherever `files(...)` says that they are.

        Args:
            names: The pipelines, such as `daily_orders`; all if none is named.
            date: The day.
            limits: The share of rows that may violate an expectation, where a handful of rows has no other meaning.
            sources: By source its raw rows.

        Raises:
            SparkAppError: A run failed, as `spark-app etl` would.
        """
        for source, rows in sources.items():
            _deliver(rows, Path(self.settings.raw_path, source, f"date={date}"), "rows.json")
        jobs = [_without_origins(_lenient(job, limits)) for job in load_jobs(self.settings, "etl", names)]
        with application(self.spark, self.settings) as started:
            run_days(started, jobs, [date])
        return Tables(started.warehouse)


@dataclass(frozen=True)
class RunQuery:
    """Runs queries of the project on records, until all are read, in a folder that is deleted afterwards.

    A second call goes on where the first ended.

    Attributes:
        spark: The session.
        settings: The settings of the project, with a home of their own.
    """

    spark: SparkSession
    settings: Settings

    def __call__(self, *names: str, **topics: Sequence[Mapping[str, Any]]) -> Tables:
        """Runs queries.

        Args:
            names: The queries, such as `views_per_page`; all if none is named.
            topics: By topic the values of its records, in their order.

        Raises:
            SparkAppError: A query failed, as `spark-app streaming` would.
        """
        for topic, values in topics.items():
            _deliver(values, Path(self.settings.landing_path, topic), f"{secrets.token_hex(6)}.jsonl")
        jobs = load_jobs(self.settings, "streaming", names)
        with application(self.spark, self.settings) as started:
            failures = run_queries(started, jobs, StopCondition(is_draining=True), Silent())
        if failures:
            raise joined(failures)
        return Tables(started.warehouse)


def _deliver(rows: Sequence[Mapping[str, Any]], folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class Silent:
    """Hears how runs get on, and says nothing."""

    def note(self, text: str) -> None:
        """Nobody reads it."""

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """Nobody looks."""

    def step_ended(self, pipeline: str, slice_key: str, step: str, seconds: float, rows: int | None) -> None:
        """Nobody looks."""

    def queries(self, statuses: Sequence[StreamStatus]) -> None:
        """Nobody looks."""

    def step_progress(self, pipeline: str, slice_key: str, step: str, text: str) -> None:
        """Nobody looks."""


@contextmanager
def application(
    spark: SparkSession, settings: Settings, *, name: str = "tests", listener: ProgressListener | None = None
) -> Iterator[Application]:
    """An application in a session that stays open.

    Args:
        spark: The session.
        settings: The configuration.
        name: The name that telemetry has.
        listener: Hears how runs get on; none by default.
    """
    warehouse = Warehouse(spark, settings.warehouse_path, pipelines.declared_tables())
    telemetry = setup.start(service_version="0", environment="test", application=name)
    given = name, settings, spark, warehouse, telemetry, listener or Silent(), settings.logs_path / "spark.jsonl"
    try:
        yield Application(secrets.token_hex(6), *given, *spark_identity(spark))
    finally:
        telemetry.close()


@pytest.fixture
def run_day(spark: SparkSession, tmp_path: Path) -> RunDay:
    """Runs pipelines of the project on raw rows."""
    return RunDay(spark, _settings(tmp_path))


@pytest.fixture
def run_query(spark: SparkSession, tmp_path: Path) -> RunQuery:
    """Runs queries of the project on records."""
    return RunQuery(spark, _settings(tmp_path))


def _settings(home: Path) -> Settings:
    """Those of the project, with a home of their own, without a broker."""
    settings = load_settings()
    stream = settings.stream.model_copy(update={"landing": "landing"})
    kafka = settings.kafka.model_copy(update={"servers": None})
    update = {"home": home, "raw": Raw(path="raw", formats={}), "stream": stream, "kafka": kafka}
    return settings.model_copy(update=update)


def _without_origins(job: Job) -> Job:
    """The job with its sources in folders of days."""
    if not isinstance(job.pipeline, DailyPipeline):
        return job
    pipeline = copy(job.pipeline)
    pipeline.origins = {}
    return replace(job, pipeline=pipeline)


def _lenient(job: Job, share: float | None) -> Job:
    if share is None:
        return job
    limits = dict.fromkeys(job.config.expectation_names, share)
    return Job(job.name, job.pipeline, job.config.model_copy(update={"default_limit": share, "limits": limits}))

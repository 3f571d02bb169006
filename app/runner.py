"""Composition root: settings, telemetry, Spark and one pipeline at a time."""

import datetime
import importlib
import importlib.metadata
import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from pyspark.sql import SparkSession

from app import folders, jars, records, savepoint, session, tables
from app.conclusions import SENDING_SECONDS, conclude
from app.context import Context
from app.eventlog.diagnoses.thresholds import load_thresholds
from app.eventlog.follow import FOLDER
from app.explanations import explained
from app.java.runtime import require_java
from app.progress import Watcher
from app.records import RunRecord
from app.samples import demo
from app.settings import Settings, load_pipeline_config
from app.telemetry import setup
from app.telemetry.exceptions import summary_of
from app.telemetry.facts import RunFacts, outcome_of
from app.telemetry.names import Outcome
from app.telemetry.runs import Run
from app.telemetry.spark_names import WORKLOAD

LOG: Final = logging.getLogger(__name__)
ETL: Final = ("etl.customers", "etl.daily_sales")
APPLICATION: Final = "spark-app etl"

Pipelines = Mapping[str, tuple[Any, Any]]
"""The modules of the pipelines by their names, each with its configuration."""


@dataclass(frozen=True)
class Invocation:
    """What the runs of one command share; `results` are those of its runs.

    What the JVM is asked for is asked once: it may die, and that is to be told, too.
    """

    id: str
    settings: Settings
    spark: SparkSession
    telemetry: setup.Telemetry
    watcher: Watcher
    log_file: Path
    is_replay: bool
    application_id: str
    event_log: str | None
    pipelines: Pipelines
    results: list[RunRecord] = field(default_factory=list)


def run_etl(
    settings: Settings,
    dates: Sequence[datetime.date],
    *,
    watcher: Watcher,
    replay: bool = False,
) -> list[RunRecord]:
    """Runs both pipelines for every date, in order, and stops at the first that fails.

    Raises:
        SparkAppError: A run failed; the attribute `results` (of any exception that leaves a run) has all runs so far.
    """
    extra = {WORKLOAD: workload(len(dates), is_replay=replay)}
    with _invocation(settings, watcher, replay=replay, extra=extra) as invocation:
        run_on(invocation, dates)
    return invocation.results


def workload(days: int, *, is_replay: bool) -> str:
    """What a command is asked to do, but for which days: one of a month is no measure of one of a day."""
    return f"{' + '.join(ETL)}, {days} {'day' if days == 1 else 'days'}{', replay' if is_replay else ''}"


def run_on(invocation: Invocation, dates: Sequence[datetime.date]) -> list[RunRecord]:
    """What `run_etl` does, with a session and telemetry that are there already and stay."""
    results = invocation.results
    results.clear()
    _put_back(invocation, dates)
    for date in dates:
        with explained(invocation.log_file):
            if invocation.settings.is_demo and not invocation.is_replay:
                demo.make_if_missing(invocation.spark, invocation.settings, date, note=invocation.watcher.note)
        for pipeline in ETL:
            _run(invocation, pipeline, date)
    return results


def _put_back(invocation: Invocation, dates: Sequence[datetime.date]) -> None:
    """What killed runs of these dates left half published goes back to the last good content before anything runs."""
    spark, settings, note = invocation.spark, invocation.settings, invocation.watcher.note
    for date, pipeline in product(dates, ETL):
        put_back = partial(tables.put_back, spark, settings, date, note=note)
        savepoint.recover(spark, settings, f"{pipeline}-{date}", put_back=put_back, tell=note)


@contextmanager
def spark(settings: Settings, *, watcher: Watcher) -> Iterator[SparkSession]:
    """A session to look at tables with; it leaves no event log."""
    require_java()
    jars.ensure_jars(note=watcher.note)
    quiet = {"spark.eventLog.enabled": "false"}
    log_file = _log_file(settings, "look")
    started = session.start(settings, name="spark-app", log_file=log_file, extra=quiet)
    try:
        with explained(log_file):
            yield started
    finally:
        session.stop(started)


@contextmanager
def _invocation(
    settings: Settings, watcher: Watcher, *, replay: bool, extra: Mapping[str, str] = session.NOTHING
) -> Iterator[Invocation]:
    identity = secrets.token_hex(6)
    pipelines, thresholds = load_pipelines(settings), load_thresholds(settings.config)
    require_java()
    jars.ensure_jars(note=watcher.note)
    log_file = _log_file(settings, identity)
    started = session.start(settings, name=APPLICATION, log_file=log_file, extra=extra)
    telemetry = setup.start(
        service_version=importlib.metadata.version("spark-app"),
        environment=settings.environment,
        application=APPLICATION,
    )
    with suppress(OSError):  # a folder that cannot be looked at is no reason not to run
        records.complete(settings.runs_path, telemetry.end_killed, note=watcher.note)
    invocation = Invocation(
        identity, settings, started, telemetry, watcher, log_file, replay, *application(started), pipelines
    )
    try:
        yield invocation
    finally:
        session.stop(started)
        closing = time.monotonic()
        is_taken = telemetry.close()
        patience = SENDING_SECONDS - (time.monotonic() - closing) if is_taken else 0
        conclude(settings, invocation.results, thresholds, watcher=watcher, patience=patience)


def load_pipelines(settings: Settings) -> Pipelines:
    """The pipelines of the daily job with their configurations, read before anything is begun.

    Raises:
        ConfigError: A key is missing, unknown or wrong, or a file cannot be read.
    """
    modules: dict[str, Any] = {name: importlib.import_module(f"app.{name}") for name in ETL}
    return {
        name: (module, load_pipeline_config(name, module.Config, settings.config)) for name, module in modules.items()
    }


def application(spark: SparkSession) -> tuple[str, str | None]:
    """The id of the application of a session, and the folder of its event log; None where it writes none."""
    identity, conf = str(spark.sparkContext.applicationId), spark.sparkContext.getConf()
    if conf.get("spark.eventLog.enabled") != "true":
        return identity, None
    return identity, f"{conf.get('spark.eventLog.dir')}/{FOLDER}{identity}"


def _log_file(settings: Settings, name: str) -> Path:
    return settings.home / "logs" / f"spark-{name}.jsonl"


def _run(invocation: Invocation, pipeline: str, date: datetime.date) -> None:
    started_at = datetime.datetime.now(datetime.UTC)
    run_id = f"{started_at:%Y%m%dT%H%M%SZ}-{pipeline}-{date}-{secrets.token_hex(3)}"
    folder = invocation.settings.runs_path / run_id
    folders.made(folder)
    facts = RunFacts(run_id, invocation.id, pipeline, date, folder, APPLICATION)
    run = invocation.telemetry.run(facts)
    context = Context(invocation.spark, invocation.settings, date, run, invocation.watcher, invocation.is_replay)
    began, error, note = time.monotonic(), None, invocation.watcher.note
    try:
        with records.at_work(folder, note=note), run, _logged(), explained(invocation.log_file):
            records.write(_result(invocation, context, run, (started_at, began), "running"), note=note)
            module, config = invocation.pipelines[pipeline]
            with folders.alone(invocation.settings, f"{pipeline}-{date}", note=context.note):
                module.run(context, config)
            run.record_schedule(config.schedule)
    except BaseException as raised:
        error = raised
        raise
    finally:
        result = _result(invocation, context, run, (started_at, began), outcome_of(error))
        if error is not None:
            result = replace(result, error=summary_of(error))
        invocation.results.append(result)
        records.write(result, note=note)
        if error is not None:
            error.results = invocation.results  # type: ignore[attr-defined]


@contextmanager
def _logged() -> Iterator[None]:
    """What becomes of a run, in its own log."""
    try:
        yield
    except BaseException as error:
        LOG.exception("run ended by %s", summary_of(error))
        raise
    LOG.info("run succeeded")


def _result(
    invocation: Invocation,
    context: Context,
    run: Run,
    started: tuple[datetime.datetime, float],
    outcome: Outcome | Literal["running"],
) -> RunRecord:
    facts = run.facts
    return RunRecord(
        run_id=facts.run_id,
        invocation_id=facts.invocation_id,
        pipeline=facts.pipeline,
        date=facts.date,
        outcome=outcome,
        started_at=started[0],
        seconds=time.monotonic() - started[1],
        rows_read=context.counts.read,
        rows_written=context.counts.written,
        rows_quarantined=context.counts.quarantined,
        rows_duplicate=context.counts.duplicate,
        tables=context.written,
        folder=facts.folder,
        error=None,
        trace_id=run.trace_id,
        application_id=invocation.application_id,
        event_log=invocation.event_log,
        spark_log=str(invocation.log_file),
        figures=context.figures,
        nulls=context.nulls,
        facts=context.facts,
    )

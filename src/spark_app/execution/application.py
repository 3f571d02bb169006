"""Composition root: settings, a Spark session, telemetry and a warehouse become an application that runs pipelines."""

import importlib.metadata
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from spark_app.engine.progress import ProgressListener
from spark_app.errors import InputError
from spark_app.eventlog.diagnoses.thresholds import Thresholds, load_thresholds
from spark_app.eventlog.parse.log_tailer import FOLDER
from spark_app.execution import pipelines
from spark_app.execution.stack_sampling import stack_sampling
from spark_app.local_files import local_path
from spark_app.observe import run_copies
from spark_app.observe.analysis import SENDING_SECONDS, finish
from spark_app.observe.followed_log import FollowedLog
from spark_app.runs import liveness
from spark_app.runs.open_runs import OpenRuns
from spark_app.runs.run_record import RunRecord
from spark_app.settings import Settings
from spark_app.spark import jars, session
from spark_app.spark.java_runtime import require_java
from spark_app.spark.known_errors import translate_errors
from spark_app.telemetry import setup
from spark_app.telemetry.resend import resend_earlier
from spark_app.warehouse.tables import Warehouse


@dataclass(frozen=True)
class Application:
    """A Spark session with telemetry and an id, in which pipelines run.

    Attributes:
        id: The invocation: it joins the runs of one command.
        name: The `spark.app.name`.
        settings: The configuration.
        spark: The session.
        warehouse: The tables that the pipelines declare.
        telemetry: Where spans, metrics and logs of runs go.
        listener: Who hears how runs get on.
        log_file: The file that the JVM logs to.
        spark_id: Spark's id of the application, asked for once: the JVM may die before a run is recorded.
        event_log: The event log of the application; None where Spark writes none.
        results: The runs so far.
        open_runs: Those that have not ended.
    """

    id: str
    name: str
    settings: Settings
    spark: SparkSession
    warehouse: Warehouse
    telemetry: setup.Telemetry
    listener: ProgressListener
    log_file: Path
    spark_id: str
    event_log: str | None
    results: list[RunRecord] = field(default_factory=list)
    open_runs: OpenRuns = field(default_factory=OpenRuns)


@contextmanager
def start_application(
    settings: Settings,
    name: str,
    *,
    listener: ProgressListener,
    extra: Mapping[str, str] = session.NO_PROPERTIES,
    is_followed: bool = False,
    jvm: session.StartingJvm | None = None,
) -> Iterator[Application]:
    """Starts Spark and telemetry; at the end stops both, and analyzes what the application did.

    Args:
        settings: The configuration.
        name: The `spark.app.name`.
        listener: Hears notes and progress.
        extra: Spark properties that win over the configured ones.
        is_followed: Whether its event log is read and exported while it runs, as for queries that run for months.
        jvm: The JVM that was started for it.
    """
    thresholds = load_thresholds(settings.config)
    require_java()
    jars.ensure_jars(note=listener.note)
    invocation = jvm.invocation if jvm else secrets.token_hex(6)
    log_file = session.log_file_of(settings, invocation)
    collector = "" if is_followed else session.PARALLEL  # queries answer in milliseconds, days end early
    start = partial(session.start, settings, name=name, log_file=log_file, extra=extra, jvm=jvm, collector=collector)
    with stack_sampling(settings, listener.note) as sampling:
        spark = start(executor_options=sampling.executor_options)
        sampling.start(spark)
        telemetry = setup.start(
            service_version=importlib.metadata.version("spark-app"), environment=settings.environment, application=name
        )
        with suppress(OSError):  # a folder that cannot be read is no reason not to run
            killed = liveness.mark_killed_runs(settings.runs_path, telemetry.end_killed, note=listener.note)
            run_copies.keep_runs(settings, killed, note=listener.note)
        warehouse = Warehouse(spark, settings.warehouse_path, pipelines.declared_tables())
        application = Application(
            invocation, name, settings, spark, warehouse, telemetry, listener, log_file, *spark_identity(spark)
        )
        followed = _follow(application, thresholds) if is_followed else None
        try:
            yield application
        finally:
            sampling.stop()
            session.stop(spark)
            sampling.write(application.event_log)
            conclude(settings, telemetry, application.results, thresholds, listener=listener, followed=followed)


def _follow(application: Application, thresholds: Thresholds) -> FollowedLog | None:
    """Follows the event log of an application; None where it is not on this machine, or cannot be read."""
    log = None if application.event_log is None else local_path(application.event_log)
    try:
        return None if log is None else FollowedLog(log, application.settings, thresholds)
    except (InputError, OSError) as error:
        application.listener.note(f"the event log is not followed: {error}")
        return None


def conclude(
    settings: Settings,
    telemetry: setup.Telemetry,
    results: list[RunRecord],
    thresholds: Thresholds,
    *,
    listener: ProgressListener,
    followed: FollowedLog | None = None,
) -> None:
    """Sends the rest of the telemetry, analyzes what the runs did, and sends what earlier runs could not deliver.

    An endpoint that does not take the telemetry of these runs is sent nothing more.
    """
    closing = time.monotonic()
    is_taken = telemetry.close()
    patience = SENDING_SECONDS - (time.monotonic() - closing) if is_taken else 0
    finish(settings, results, thresholds, note=listener.note, patience=patience, followed=followed)
    if is_taken and settings.event_log_exporter == "runner":  # otherwise the bridge does so
        for run_id, resent in resend_earlier(settings.runs_path).items():
            listener.note(f"{run_id} had not delivered everything: {resent}")


@contextmanager
def open_warehouse(settings: Settings, *, listener: ProgressListener) -> Iterator[Warehouse]:
    """The warehouse in a session that only reads and maintains tables; it leaves no event log."""
    require_java()
    jars.ensure_jars(note=listener.note)
    log_file = session.log_file_of(settings, "look")
    spark = session.start(settings, name="spark-app", log_file=log_file, extra={"spark.eventLog.enabled": "false"})
    try:
        with translate_errors(log_file):
            yield Warehouse(spark, settings.warehouse_path, pipelines.declared_tables())
    finally:
        session.stop(spark)


def spark_identity(spark: SparkSession) -> tuple[str, str | None]:
    """Spark's id of the application of a session, and its event log; None where it writes none."""
    identity, conf = str(spark.sparkContext.applicationId), spark.conf
    if conf.get("spark.eventLog.enabled", "false") != "true":
        return identity, None
    return identity, f"{conf.get('spark.eventLog.dir')}/{FOLDER}{identity}"

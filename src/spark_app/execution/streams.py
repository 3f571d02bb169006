"""Runs streaming queries in an application, each with its supervisor, until they are asked to stop."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any, Final, Protocol

from spark_app.engine.progress import ProgressListener
from spark_app.engine.topics import require_known
from spark_app.errors import SparkAppError
from spark_app.execution import checks, demo, pipelines
from spark_app.execution.application import Application, start_application
from spark_app.execution.lag_watch import LagWatch
from spark_app.execution.maintenance import TableMaintenance
from spark_app.execution.run import Job, load_jobs, with_fingerprints
from spark_app.execution.supervisor import POLL_SECONDS, StopCondition, Supervisor
from spark_app.local_files import local_path
from spark_app.observe import retention
from spark_app.runs import stream_status
from spark_app.runs.run_record import RunRecord
from spark_app.runs.stream_status import StreamStatus
from spark_app.settings import Settings
from spark_app.spark.kafka_offsets import KafkaOffsets
from spark_app.spark.query_listener import QueryEvent, QueryListener
from spark_app.telemetry.exceptions import summary_of
from spark_app.vocabulary.spark_names import WORKLOAD

STREAMING: Final = "spark-app streaming"
STAGGER_SECONDS: Final = 20.0
"""How long the start of a query waits at most for the first micro-batch of the one before."""
LOCAL_CHECKPOINTS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""For checkpoints on a local file system, whose renames are atomic and replace: Spark's default starts the program
`readlink` four times for each file that it writes there. Elsewhere, HDFS above all, only the default is safe."""
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command: Ctrl-C, the wish of another program, and the end of the terminal."""
PRUNE_SECONDS: Final = 3600.0
"""How often a stream looks whether the daily deletion of what has expired is due."""


class StreamListener(ProgressListener, Protocol):
    """Hears how streaming queries get on; the terminal is one."""

    def queries(self, statuses: Sequence[StreamStatus]) -> None:
        """The present status of all queries."""


def run_streams(
    settings: Settings,
    chosen: Sequence[str],
    stop_condition: StopCondition,
    *,
    listener: StreamListener,
) -> list[RunRecord]:
    """Runs the chosen queries of `app/streaming/`, or all, until they end; one that fails leaves the others running.

    Args:
        settings: The configuration.
        chosen: Names of queries; empty for all.
        stop_condition: When they end.
        listener: Hears how they get on.

    Raises:
        SparkAppError: A query failed for good; raised when all have ended.
    """
    jobs = with_fingerprints(settings, load_jobs(settings, "streaming", chosen))
    require_known(settings.stream, pipelines.topics())
    extra = session_properties(settings) | {WORKLOAD: " + ".join(job.name for job in jobs)}
    with (
        stream_status.announced(settings.runs_path, [job.name for job in jobs]),
        start_application(settings, STREAMING, listener=listener, extra=extra, is_followed=True) as application,
        _stopped_by_signals(stop_condition, listener),  # after Spark, which sets a handler of its own
        _demo_feed(settings, stop_condition, listener),
        pruned_daily(settings, listener),
    ):
        checks.require_no_mistake(application, {job.name: job.pipeline for job in jobs})
        failures = run_queries(application, jobs, stop_condition, listener)
    if failures:
        failure = joined(failures)
        failure.results = application.results  # type: ignore[attr-defined]
        raise failure
    return application.results


def session_properties(settings: Settings) -> dict[str, str]:
    """The Spark properties of a session of streaming queries, apart from those of every session."""
    is_local = local_path(settings.checkpoints_path) is not None
    return (LOCAL_CHECKPOINTS if is_local else {}) | settings.stream_properties


def joined(failures: Sequence[BaseException]) -> BaseException:
    """One failure that says why each query failed, and once what they have in common: of the kind of the first."""
    first = failures[0]
    if len(failures) == 1:
        return first
    lines = [str(each) if isinstance(each, SparkAppError) else summary_of(each).partition("\n")[0] for each in failures]
    kind = type(first) if isinstance(first, SparkAppError) else SparkAppError
    failure = kind(f"{len(failures)} queries failed: {'; '.join(dict.fromkeys(lines))}")
    failure.__cause__ = first
    return failure


@contextmanager
def _stopped_by_signals(stop_condition: StopCondition, listener: StreamListener) -> Iterator[None]:
    """The first of `ENDING` finishes the micro-batches in hand; the second ends the command at once."""

    def ask(_signal: int, _frame: Any) -> None:
        if stop_condition.stop.is_set():
            raise KeyboardInterrupt
        stop_condition.stop.set()
        listener.note("stopping after the micro-batches in hand; Ctrl-C again stops at once")

    asking = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in asking}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def pruned_daily(settings: Settings, listener: ProgressListener) -> Iterator[None]:
    """Deletes what has expired once a day: queries may run for months."""
    ended = threading.Event()

    def prune() -> None:
        while not ended.wait(PRUNE_SECONDS):
            retention.prune_daily(settings, note=listener.note)

    threading.Thread(target=prune, name="retention", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _demo_feed(
    settings: Settings, stop_condition: StopCondition, listener: StreamListener
) -> AbstractContextManager[object]:
    """The generator of the project, where no source is configured and the queries wait for more."""
    found = demo.current() if settings.is_stream_demo and not stop_condition.is_draining else None
    return nullcontext() if found is None else found.feed(settings, note=listener.note)


def run_queries(
    application: Application, jobs: Sequence[Job], stop_condition: StopCondition, listener: StreamListener
) -> list[BaseException]:
    """Runs queries in an application that stays open afterwards; returns why queries failed for good."""
    with _lag_watch(application) as watch, _maintenance(application) as maintenance:
        return _run_watched(application, jobs, stop_condition, listener, watch, maintenance)


def _maintenance(application: Application) -> AbstractContextManager[TableMaintenance | None]:
    """Maintains the tables of queries; None where that is switched off."""
    is_wanted = application.settings.stream.maintain_tables
    return TableMaintenance(application.spark) if is_wanted else nullcontext()


@contextmanager
def _lag_watch(application: Application) -> Iterator[LagWatch | None]:
    """Asks the brokers what queries have not read; None where queries read files."""
    kafka = application.settings.kafka
    if kafka.servers is None:
        yield None
        return
    with LagWatch(lambda: KafkaOffsets(application.spark, kafka)) as watch:
        yield watch


def _run_watched(
    application: Application,
    jobs: Sequence[Job],
    stop_condition: StopCondition,
    listener: StreamListener,
    watch: LagWatch | None,
    maintenance: TableMaintenance | None,
) -> list[BaseException]:
    supervisors = {job.name: Supervisor(application, job, stop_condition, watch, maintenance) for job in jobs}

    def hear(event: QueryEvent) -> None:
        if event.query in supervisors:
            supervisors[event.query].hear(event)

    with closing(QueryListener(application.spark, hear)):
        _supervise(list(supervisors.values()), stop_condition, listener, maintenance)
    return [each.failure for each in supervisors.values() if each.failure is not None]


def _supervise(
    supervisors: Sequence[Supervisor],
    stop_condition: StopCondition,
    listener: StreamListener,
    maintenance: TableMaintenance | None,
) -> None:
    """Starts the queries and waits for all of them; asks them to stop when the time is up.

    A query starts when the one before has had its first micro-batch, or after some seconds: the first result comes
    soon, since each start takes all processors for a while.
    """
    deadline = None if stop_condition.seconds is None else time.monotonic() + stop_condition.seconds
    if maintenance is not None and not stop_condition.is_draining:
        maintenance.watch(supervisors)
    waiting = sorted(supervisors, key=lambda each: not each.starts_first)
    started, started_at = list[Supervisor](), 0.0
    while any(each.is_alive() for each in started) or (waiting and not stop_condition.stop.is_set()):
        if waiting and (not started or started[-1].has_begun or time.monotonic() > started_at + STAGGER_SECONDS):
            started.append(waiting.pop(0))
            started[-1].start()
            started_at = time.monotonic()
        stop_condition.stop.wait(POLL_SECONDS)
        if deadline is not None and time.monotonic() >= deadline:
            stop_condition.stop.set()
        if maintenance is not None and stop_condition.stop.is_set():
            maintenance.interrupt()
        for each in started:
            each.join(POLL_SECONDS if stop_condition.stop.is_set() else 0)
        listener.queries([each.status for each in supervisors])

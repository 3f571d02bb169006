"""Supervises one streaming query: started, watched, started again where that can help, and stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from spark_app.declarations.pipeline import Pipeline
from spark_app.engine import bisection, dead_letters, expectation_metrics
from spark_app.engine.stream import StreamContext
from spark_app.engine.topic_ids import require_same_topics
from spark_app.errors import NoBrokerError, NotReadyError, QualityGateError, SparkAppError
from spark_app.execution.application import Application
from spark_app.execution.lag_watch import LagWatch
from spark_app.execution.maintenance import TableMaintenance
from spark_app.execution.run import Job, locked, recorded_run
from spark_app.execution.stream_watermark import WatermarkWatch
from spark_app.formatting import quantity
from spark_app.runs import stream_status
from spark_app.runs.run_record import DELETED, DUPLICATES, LATE, PUBLISHED, READ, UNKNOWN_FIELDS
from spark_app.runs.stream_status import StreamStatus
from spark_app.spark import call_sites, job_properties
from spark_app.spark.graceful_stop import stop_after_batch
from spark_app.spark.kafka_offsets import refusal
from spark_app.spark.known_errors import translate_errors
from spark_app.spark.query_listener import QueryEvent
from spark_app.spark.stream_errors import NO_BROKER, FailedQuery, StreamFailure, batch_failure, cause_of, stream_failure
from spark_app.telemetry.exceptions import summary_of
from spark_app.telemetry.stream_telemetry import StreamTelemetry
from spark_app.vocabulary import names, spark_progress
from spark_app.vocabulary.names import StreamState
from spark_app.vocabulary.spark_progress import Progress
from spark_app.vocabulary.stream_lag import Lag, gaps, processed_offsets

LOG: Final = logging.getLogger(__name__)
POLL_SECONDS: Final = 0.25
"""How often it is looked whether a query has ended, or is to end."""
WAIT_SECONDS: Final = 5.0
"""How often a query that waits for what it needs looks for it."""
STOP_SECONDS: Final = 60.0
"""How long a stop waits for the micro-batch in hand; then it is interrupted, and repeated next time."""
FIRST_BACKOFF_SECONDS: Final = 1.0
MAX_BACKOFF_SECONDS: Final = 60.0
"""How long a query that failed waits until it starts again: twice as long each time, from the first to the longest."""
MAX_FAILURES: Final = 5
"""Failures in a row, without a micro-batch in between, after which a query that may never work is given up."""
TRIGGERS_LATE: Final = 2
"""So many triggers after the last news of a query, its micro-batch in hand takes longer than its trigger."""
IDLE_SECONDS: Final = 10.0
"""How often Spark says at most that a query is idle: `spark.sql.streaming.noDataProgressEventInterval`."""
LAST_EVENT_SECONDS: Final = 5.0
"""How long a query that has ended waits for what Spark still reports of its last micro-batch."""


@dataclass
class StopCondition:
    """When the queries end: when all is read, after some time, or when somebody asks.

    Attributes:
        is_draining: Whether a query ends when it has read all that is there.
        seconds: After how long they end; None for never.
        stop: Set by whoever asks.
    """

    is_draining: bool = False
    seconds: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)


class Supervisor(threading.Thread):
    """One query: started, watched, started again where that can help, and stopped between two micro-batches.

    Attributes:
        status: How it gets on.
        starts_first: Whether other queries wait for it.
        failure: Why it failed for good; None while it has not.
    """

    def __init__(
        self,
        application: Application,
        job: Job,
        stop_condition: StopCondition,
        watch: LagWatch | None = None,
        maintenance: TableMaintenance | None = None,
    ) -> None:
        """A query that has not started.

        Args:
            application: Where it runs.
            job: The query.
            stop_condition: When it ends.
            watch: Asks the brokers what the query has not read; None where it reads files.
            maintenance: Compacts what the query has written when it has read all that is there; None where nobody does.
        """
        super().__init__(name=job.name, daemon=True)
        self.status = StreamStatus(job.name, "starting", started_at=time.time())
        self.failure: BaseException | None = None
        self.starts_first: bool = job.pipeline.starts_first
        self._application = application
        self._job = job
        self._stop_condition = stop_condition
        # In real time nobody but the tasks knows what is read before it is committed.
        self._watch = None if getattr(job.config, "real_time", None) and not stop_condition.is_draining else watch
        self._telemetry: StreamTelemetry | None = None
        self._run_context: StreamContext | None = None
        self._watermark = WatermarkWatch(job.name)
        self._breach: QualityGateError | None = None
        self._maintenance = maintenance
        self._lock = threading.Lock()
        self._run_lock = threading.Lock()
        self._terminated = threading.Event()
        self._failures_in_a_row = 0
        self._left_out = 0

    def run(self) -> None:
        """Runs the query until it is asked to stop, has read all, or failed for good."""
        is_draining, fingerprints = self._stop_condition.is_draining, self._job.fingerprints
        context_type = partial(StreamContext, is_draining=is_draining, fingerprints=fingerprints)
        try:
            with recorded_run(self._application, self._job.name, None, context_type) as context:
                run_id, application_id = context.telemetry.identity.run_id, self._application.spark_id
                self._change(partial(replace, run_id=run_id, application_id=application_id))
                self._run_context = context
                log_file = self._application.log_file
                with locked(self._application, context), self._ended(context), translate_errors(log_file):
                    self._keep_running(context)
                    if self._maintenance is not None and self._stop_condition.is_draining:
                        self._maintenance.compact(context)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it when all queries have ended
            self.failure = error

    @property
    def has_begun(self) -> bool:
        """Whether the query has had a micro-batch, has nothing to read, or has ended."""
        return self.status.state != "starting" and (self.status.batches > 0 or self.status.state != "running")

    @property
    def has_time(self) -> bool:
        """Whether the query keeps up with its trigger, or nothing is to be read: others may use the processors."""
        status, context = self.status, self._run_context
        if status.state in ("starting", "restarting") or self._stop_condition.is_draining:
            return False
        trigger = None if context is None else context.trigger_seconds(self._job.config)
        is_idle = status.state == "idle"
        if trigger is None or getattr(self._job.config, "real_time", None) or status.state not in ("running", "idle"):
            return True
        is_quick = is_idle or (status.batch_ms is not None and status.batch_ms <= 1000 * trigger)
        seconds = max(trigger, IDLE_SECONDS) if is_idle else trigger
        return is_quick and time.time() < status.updated_at + TRIGGERS_LATE * seconds

    @contextmanager
    def open_run(self) -> Iterator[StreamContext | None]:
        """The run of the query, which does not end meanwhile; None while there is none."""
        with self._run_lock:
            yield self._run_context

    def hear(self, event: QueryEvent) -> None:
        """Takes note of what Spark reports about the query; called on the thread of the listener."""
        if event.kind == "terminated":
            self._terminated.set()
        elif event.kind == "idle":
            self._change(stream_status.idle)
            self._become("idle")
        elif event.kind == "progress":
            self._progressed(spark_progress.parse(event.json))

    def _progressed(self, progress: Progress) -> None:
        context = self._run_context
        if context is None or not progress.has_batch:  # a trigger found nothing new
            return
        self._failures_in_a_row = 0
        if self._watch is not None:
            ends = processed_offsets(source.end for source in progress.sources)
            self._watch.processed(self.name, ends, gaps(progress))
        context.count(_counts(progress))
        self._change(partial(stream_status.progressed, progress=progress, counts=context.counts))
        if self._telemetry is not None:
            self._telemetry.progressed(progress)
        self._breach = _breach(context, progress) or self._breach
        for line in self._watermark.progressed(progress):
            with context.telemetry.attach():  # this is the thread of the listener
                context.note(line)
        self._become("running")

    def _deleted(self, context: StreamContext, topic: str, records: int) -> None:
        """Takes note of records that the brokers had deleted before the query read them."""
        context.count({DELETED: records})
        context.note(
            f"{context.name} went on without {quantity(records, 'record')} of {topic}: Kafka had deleted them, by "
            "its retention, before they were read"
        )
        LOG.warning("%d records of %s were deleted before %s read them", records, topic, context.name)
        self._change(lambda status: replace(status, counts=dict(context.counts)))
        if self._telemetry is not None:
            self._telemetry.deleted(topic, records)

    def _follow(self, context: StreamContext) -> None:
        """Has the brokers asked about the topics of the query, from where its checkpoint says it goes on."""
        if self._watch is not None:
            self._watch.follow(self.name, self._job.pipeline.topics, partial(self._deleted, context))
            committed = context.committed_offsets()
            if committed is not None:
                self._watch.processed(self.name, processed_offsets(committed))

    def _lag(self) -> Lag | None:
        """What the query has not read by now; None if nobody knows."""
        return self._watch.lag(self.name) if self._watch is not None else None

    def _keep_running(self, context: StreamContext) -> None:
        """Runs the query, again where that can help, until it ends.

        Raises:
            SparkAppError: A new start cannot help, or nothing was read in the time that was given.
        """
        self._follow(context)
        while True:
            try:
                self._run_once(context)
            except NotReadyError as error:
                if self._waits(context, error):
                    continue
            except (PySparkException, NoBrokerError) as error:
                if isinstance(error, PySparkException) and self._leaves_out(context, error):
                    continue
                why = self._reason_to_restart(context, error)
                if not self._stop_condition.stop.wait(self._wait_before_restart(context, why)):
                    continue
                if self._stop_condition.seconds is not None and not self.status.batches:
                    raise why from error
            return

    def _waits(self, context: StreamContext, error: NotReadyError) -> bool:
        """Waits for what the query needs; returns whether to start it, which is of no use to one that drains."""
        if self._stop_condition.is_draining:
            context.note(f"{context.name} has read nothing: {error}")
            return False
        if self.status.state != "waiting":
            context.note(f"{context.name} waits: {error}")
            self._measure(context)
            self._become("waiting", str(error))
        self._write_status(context)
        return not self._stop_condition.stop.wait(WAIT_SECONDS)

    def _run_once(self, context: StreamContext) -> None:
        self._terminated.clear()
        self._require_broker(context)
        if context.settings.kafka.servers is not None:
            require_same_topics(context, self._job.pipeline.topics)
        with _step(context), _line_of(self._job.pipeline):
            writer = self._job.pipeline.query(context, self._job.config)
            self._measure(context)
            self._write_status(context)
            query = writer.start()
        self._become("running")
        try:
            # It raises what ended the query.
            while not query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type] # PySpark takes fractions, too
                self._write_status(context)
                if self._stop_condition.stop.is_set() or self._breach is not None:
                    self._stop_query(context, query)
        finally:
            self._terminated.wait(LAST_EVENT_SECONDS)  # what Spark reports of the last micro-batch comes before
            context.at_end.close()
        if self._breach is not None:
            raise self._breach

    def _require_broker(self, context: StreamContext) -> None:
        """Looks for a broker: Spark tries for a minute before it says that there is none.

        Raises:
            NoBrokerError: None can be reached.
        """
        servers = context.settings.kafka.servers
        why = None if servers is None else refusal(servers)
        if why is not None:
            raise NoBrokerError(NO_BROKER.format(query=context.name, servers=servers, why=why))

    def _stop_query(self, context: StreamContext, query: StreamingQuery) -> None:
        """Stops the query when the micro-batch in hand has ended; after a minute in any case, and says so."""
        if not stop_after_batch(query, STOP_SECONDS):
            context.note(
                f"{context.name} was stopped in the middle of a micro-batch, which had not ended after "
                f"{STOP_SECONDS:.0f} s; the next start repeats it"
            )

    def _measure(self, context: StreamContext) -> None:
        if self._telemetry is None:
            trigger = context.trigger_seconds(self._job.config)
            ask_lag = None if self._watch is None else self._lag
            self._telemetry = StreamTelemetry(
                context.telemetry, trigger_seconds=trigger, sink=context.sink, ask_lag=ask_lag
            )

    def _become(self, state: StreamState, error: str | None = None) -> None:
        self._change(partial(replace, state=state, updated_at=time.time(), error=error))
        if self._telemetry is not None:
            self._telemetry.enter(state)

    def _change(self, change: Callable[[StreamStatus], StreamStatus]) -> None:
        """Changes the status, which the thread of the query and that of the listener do."""
        with self._lock:
            status = change(self.status)
            if self._watch is not None or status.state == "failed":
                lag = None if status.state == "failed" else self._lag()
                status = stream_status.lagging(status, lag, time.time())
            self.status = status

    def _write_status(self, context: StreamContext) -> None:
        if self._watch is not None and self.status.state != "stopped":
            self._change(lambda status: status)
        stream_status.write(context.telemetry.identity.folder, self.status)

    def _leaves_out(self, context: StreamContext, error: PySparkException) -> bool:
        """Makes dead letters of the records that failed the micro-batch in hand; returns whether there are some."""
        failed = self._failed_query(context)
        if (
            dead_letters.NAME not in context.warehouse.tables
            or stream_failure(error, failed)
            or not batch_failure(error, failed)
        ):
            return False
        pipeline = self._job.pipeline

        def reason(error: BaseException) -> str:
            known = stream_failure(error, failed)
            if known is not None:
                raise known.error from error
            return cause_of(error)

        try:
            with _step(context):
                found = bisection.culprits(context, pipeline.query, self._job.config, pipeline.topics, reason)
                if found is None or self._fails_on_most(context, found):
                    return False
                dead_letters.leave_out(context.warehouse, found.rows, context.name, context.settings)
        except (
            PySparkException,
            SparkAppError,
        ) as failure:  # Kafka or the tables are not there by now: the next failure looks again
            LOG.warning("cannot look for the records that failed %s: %s", context.name, summary_of(failure))
            return False
        number = len(found.reasons)
        self._left_out += number
        context.count({dead_letters.NAME: number})
        context.telemetry.measure(names.DEAD_LETTERS, number)
        first, why = next(iter(found.reasons.items()))
        context.note(
            f"{context.name} leaves out {quantity(number, 'record')} that it cannot process, such as {first}: {why}; "
            f"see `spark-app show dead_letters --where \"query = '{context.name}'\"`"
        )
        return True

    def _fails_on_most(self, context: StreamContext, found: bisection.Culprits) -> bool:
        """Whether the query failed on most records since its start, as where each micro-batch has few."""
        failed, records = self._left_out + len(found.reasons), context.counts.get(READ, 0) + found.records
        return bisection.is_most(failed, records)

    def _failed_query(self, context: StreamContext) -> FailedQuery:
        servers, topics, watch = context.settings.kafka.servers, self._job.pipeline.topics, self._watch
        missing = tuple if watch is None else partial(watch.missing, self.name)
        return FailedQuery(context.name, servers, topics, context.checkpoint, missing)

    def _wait_before_restart(self, context: StreamContext, why: SparkAppError) -> float:
        """Notes that the query restarts, and why; returns the seconds until then."""
        wait = min(FIRST_BACKOFF_SECONDS * 2.0 ** (self._failures_in_a_row - 1), MAX_BACKOFF_SECONDS)
        if str(why) != self.status.error:
            context.note(f"{why}; starting again in {wait:.0f} s")
        self._change(lambda status: replace(status, restarts=status.restarts + 1))
        if self._telemetry is not None:
            self._telemetry.restarted()
        self._become("restarting", str(why))
        self._write_status(context)
        return wait

    def _reason_to_restart(self, context: StreamContext, error: PySparkException | NoBrokerError) -> SparkAppError:
        """What went wrong, in one line, where a new start may help.

        Raises:
            SparkAppError: A new start cannot help, or the query fails again and again, or never worked; says why in
                one line.
            PySparkException: The same, of an error that is not known, before a micro-batch has begun.
        """
        self._failures_in_a_row += 1
        failed = self._failed_query(context)
        known = StreamFailure(error, is_transient=True) if isinstance(error, NoBrokerError) else None
        known = known or stream_failure(error, failed)
        is_last = self._failures_in_a_row >= MAX_FAILURES
        if known is not None and (not known.is_transient or (self._stop_condition.is_draining and is_last)):
            raise known.error from error
        if known is not None:
            return known.error
        explained = batch_failure(error, failed)
        if not is_last and self.status.batches:
            return explained or SparkAppError(f"{context.name} ended by {summary_of(error)}")
        if explained is None:
            raise error
        raise explained from error

    @contextmanager
    def _ended(self, context: StreamContext) -> Iterator[None]:
        """Writes how the query ended, also to the record of its run."""
        try:
            yield
        except BaseException as error:
            self._become("failed", summary_of(error))
            raise
        else:
            if self._watch is not None:
                self._watch.settle()
            self._become("stopped")
        finally:
            with self._run_lock:
                self._run_context = None
            context.facts |= stream_status.facts(self.status)
            self._write_status(context)


def _step(context: StreamContext) -> AbstractContextManager[None]:
    telemetry = context.telemetry
    return job_properties.step_properties(
        context.spark, context.name, traceparent=telemetry.traceparent, trace_id=telemetry.trace_id
    )


def _line_of(pipeline: Pipeline) -> AbstractContextManager[None]:
    """What a query starts has the line of its declaration."""
    return call_sites.work_of(pipeline.name, pipeline.location.file, pipeline.location.line)


def _counts(progress: Progress) -> dict[str, int | None]:
    """The rows of a micro-batch by what became of them; what a function wrote for it is counted where it writes."""
    return {
        READ: progress.rows_read,
        PUBLISHED: progress.rows_written,
        DUPLICATES: progress.rows_duplicate,
        LATE: progress.rows_late,
        UNKNOWN_FIELDS: progress.unknown_fields,
    }


def _breach(context: StreamContext, progress: Progress) -> QualityGateError | None:
    """Records the results of a micro-batch and notes breaches; returns the error where one stops the query."""
    if context.monitor is None:
        return None
    results = context.monitor.results(progress.observed or {})
    expectation_metrics.record_expectations(context.telemetry, results, table=context.monitor.table)
    context.results[:] = context.monitor.totals()
    breached = "; ".join(str(result) for result in results if result.is_breached)
    if not breached:
        return None
    context.note(f"{context.name}: a micro-batch of {context.monitor.table} is beyond a limit: {breached}")
    return QualityGateError(f"{context.name} stopped: {breached}") if context.monitor.is_strict else None

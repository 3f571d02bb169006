"""Compacts and vacuums the tables of streaming queries while these have time for it, one table after another."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice, takewhile
from typing import Final, Protocol, Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_app.engine.stream import StreamContext
from spark_app.spark import job_properties
from spark_app.telemetry.exceptions import summary_of
from spark_app.telemetry.run_telemetry import StepTelemetry
from spark_app.warehouse import delta_log
from spark_app.warehouse.tables import MIN_RETAIN_DAYS

LOG: Final = logging.getLogger(__name__)
LOOK_SECONDS: Final = 30.0
"""How often tables are looked at."""
COMPACT_COMMITS: Final = 50
"""After how many commits a table is compacted: as many files as Delta's `autoCompact.minNumFiles`, of one each."""
VACUUM_SECONDS: Final = 86_400.0
STOP_SECONDS: Final = 10.0
JOB_TAG: Final = "table-maintenance"
"""The tag of the jobs, by which a stop cancels them."""
Work = Callable[[StreamContext, str], None]


class MaintainedQuery(Protocol):
    """A query whose tables are maintained; `Supervisor` is one."""

    @property
    def has_time(self) -> bool:
        """Whether it keeps up with its trigger."""

    def open_run(self) -> AbstractContextManager[StreamContext | None]:
        """Its run, which does not end meanwhile; None while there is none."""


class TableMaintenance(threading.Thread):
    """The maintenance of all tables that the queries of an application write; it never raises."""

    def __init__(self, spark: SparkSession) -> None:
        """Nothing is maintained before it watches queries."""
        super().__init__(name="table-maintenance", daemon=True)
        self._spark = spark
        self._queries: Sequence[MaintainedQuery] = ()
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._compacted: dict[str, int] = {}  # the version of a table at its last compaction
        self._vacuumed: dict[str, float] = {}  # and the monotonic time of its last vacuum

    def watch(self, queries: Sequence[MaintainedQuery]) -> None:
        """Maintains the tables of these queries from now on."""
        self._queries = queries
        self.start()

    def __enter__(self) -> Self:
        """Maintains nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Begins no more, and cancels what is under way."""
        self.interrupt()
        if self.is_alive():
            self.join(STOP_SECONDS)

    def interrupt(self) -> None:
        """Begins no more, and cancels the jobs of what is under way: what it has not committed is lost."""
        self._ended.set()
        if self._turn.locked():
            with suppress(Py4JError, OSError):  # the JVM has died
                self._spark.sparkContext.cancelJobsWithTag(JOB_TAG)

    def run(self) -> None:
        """Looks at the tables of queries that run, until it ends."""
        while not self._ended.wait(LOOK_SECONDS):
            for query in self._queries:
                with query.open_run() as context:
                    if context is not None:
                        self._maintain(context)

    def compact(self, context: StreamContext) -> None:
        """Compacts the tables of a query that has read all that is there, and ends."""
        for table in tuple(context.written):
            self._guarded(context, table, self._compact)

    def _maintain(self, context: StreamContext) -> None:
        for table in tuple(context.written):
            for work in (self._compact, self._vacuum):
                if all(query.has_time for query in self._queries):
                    self._guarded(context, table, work)

    def _guarded(self, context: StreamContext, table: str, work: Work) -> None:
        with self._turn, context.telemetry.attach():
            if self._ended.is_set():
                return
            try:
                work(context, table)
            except (PySparkException, Py4JError, OSError) as error:
                if not self._ended.is_set():
                    LOG.warning("the table %s was not maintained, which is tried again: %s", table, summary_of(error))

    def _compact(self, context: StreamContext, table: str) -> None:
        path, warehouse = context.warehouse.path(table), context.warehouse
        version = delta_log.last_version(self._spark, path)
        if table not in self._compacted:
            self._compacted[table] = version - commits_since_compaction(self._spark, path)
        if version - self._compacted[table] < COMPACT_COMMITS:
            return
        self._compacted[table] = version  # also if it fails
        with self._step(context, f"compact {table}", table) as step:
            done = warehouse.optimize(table)
            step.count(files=done.files_added, bytes_read=done.bytes_removed, bytes_written=done.bytes_added)
        self._compacted[table] = delta_log.last_version(self._spark, path)
        LOG.info("%s", done)

    def _vacuum(self, context: StreamContext, table: str) -> None:
        vacuumed = self._vacuumed.get(table)
        if vacuumed is not None and time.monotonic() < vacuumed + VACUUM_SECONDS:
            return
        self._vacuumed[table] = time.monotonic()  # also if it fails
        with self._step(context, f"vacuum {table}", table):
            done = context.warehouse.vacuum(table, retain_days=MIN_RETAIN_DAYS)
        LOG.info("%s", done)

    @contextmanager
    def _step(self, context: StreamContext, name: str, table: str) -> Iterator[StepTelemetry]:
        """A step of the run whose query writes the table; it counts no rows, since it changes none."""
        with context.telemetry.step(name, kind="maintain", table=table) as step:
            description = f"{context.name}: {name}"
            properties = {"traceparent": step.traceparent, "trace_id": step.trace_id}
            with job_properties.step_properties(self._spark, description, **properties):
                self._spark.sparkContext.addJobTag(JOB_TAG)
                try:
                    yield step
                finally:
                    self._spark.sparkContext.removeJobTag(JOB_TAG)


def commits_since_compaction(spark: SparkSession, path: str) -> int:
    """How many commits a table has since its last compaction, up to as many as make one due."""
    newest = islice(delta_log.history(spark, path), COMPACT_COMMITS)
    return sum(1 for _ in takewhile(lambda commit: commit.operation != delta_log.COMPACTION, newest))

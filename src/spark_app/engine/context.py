"""What a pipeline is handed: whatever passes through it is traced, timed, counted and checked."""

import datetime
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_app.engine import expectation_metrics
from spark_app.engine.progress import ProgressListener
from spark_app.errors import InputError, QualityGateError, ReconciliationError
from spark_app.quality.results import ExpectationResult
from spark_app.runs.run_record import DUPLICATES, PUBLISHED, QUARANTINED, READ
from spark_app.settings import Settings
from spark_app.spark import job_properties
from spark_app.telemetry.run_telemetry import RunTelemetry, StepTelemetry
from spark_app.vocabulary.names import StepKind
from spark_app.warehouse import delta_log, raw_files
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.origin import Origin, RawDay
from spark_app.warehouse.periods import Period
from spark_app.warehouse.tables import Warehouse, kept

LOG: Final = logging.getLogger(__name__)


@dataclass
class Context:
    """One run of one pipeline.

    Attributes:
        spark: The session.
        warehouse: The tables.
        settings: The configuration of the application.
        day: The day that the run is about; None for a streaming query.
        telemetry: Spans, metrics and logs of the run.
        listener: Who hears how the run gets on.
        counts: Rows of the run so far, by name; a name that is missing is unknown.
        results: Results of expectations so far.
        nulls: Nulls per column among the rows that parse.
        facts: Further numbers for the run record.
        written: Paths of the tables that the run wrote, by name.
        fingerprints: By table, the text that says in its commits how its rows are made (see `spark-app plan`).
    """

    spark: SparkSession
    warehouse: Warehouse
    settings: Settings
    day: datetime.date | None
    telemetry: RunTelemetry
    listener: ProgressListener
    counts: dict[str, int] = field(default_factory=dict)
    results: list[ExpectationResult] = field(default_factory=list)
    nulls: dict[str, int] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @property
    def date(self) -> datetime.date:
        """The day that the run is about; for models, the last day that is known."""
        assert self.day is not None, f"{self.telemetry.identity.pipeline} is about no day"
        return self.day

    @property
    def slice(self) -> str:
        """What the run is about, as its record and its lock name it: `2024-01-01`, or "" for a streaming query."""
        return self.day.isoformat() if self.day else ""

    @property
    def title(self) -> str:
        """The pipeline and its slice, as messages and Spark's job descriptions name the run."""
        return f"{self.telemetry.identity.pipeline} {self.slice}".rstrip()

    @contextmanager
    def step(self, name: str, *, kind: StepKind, table: str | None = None) -> Iterator[StepTelemetry]:
        """A named part of the run; the Spark jobs in it carry its trace."""
        pipeline, key, started = self.telemetry.identity.pipeline, self.slice, time.monotonic()
        self.listener.step_started(pipeline, key, name)
        with self.telemetry.step(name, kind=kind, table=table) as step:
            with job_properties.step_properties(
                self.spark, f"{self.title}: {name}", traceparent=step.traceparent, trace_id=step.trace_id
            ):
                yield step
            rows = "" if step.rows_written is None else f", {step.rows_written:,} rows"
            LOG.info("%s: done in %.1f s%s", name, time.monotonic() - started, rows)
        self.listener.step_ended(pipeline, key, name, time.monotonic() - started, step.rows_written)

    def note(self, text: str) -> None:
        """Shows a line to whoever watches the run, and adds it to the run's log."""
        LOG.warning(text)
        self.listener.note(text)

    def table(self, name: str, *, version: int | None = None) -> DataFrame:
        """A table of the warehouse, as it is now or at a version; empty if it was never written."""
        return self.warehouse.table(name, version=version)

    def replace(
        self, rows: DataFrame, table: str, *, where: str, kind: StepKind = "write", count: int | None = None
    ) -> Commit:
        """Replaces the rows of a table that meet a condition, in one commit.

        Args:
            rows: All rows that meet the condition from now on.
            table: Name of the table.
            where: An SQL condition over columns of the table.
            kind: Whether the table is read by others (`publish`) or only by later steps.
            count: How many rows these are, as counted before; None if nobody has counted them.

        Raises:
            ReconciliationError: The commit has another number of rows. The rows of before are back.
        """
        commit = self._write(table, partial(self.warehouse.replace_where, rows, table, where), kind=kind)
        if count not in (None, commit.rows):
            self._put_back(table, where, commit)
        self.confirm(table, commit, count=count, published=commit.rows)
        return commit

    def replace_all(self, rows: DataFrame, table: str) -> Commit:
        """Replaces all rows of a table, in one commit."""
        return self._write(table, partial(self.warehouse.replace_all, rows, table), kind="publish")

    def merge(self, changes: Callable[[DataFrame], DataFrame], table: str, *, condition: str) -> Commit:
        """Upserts rows (alias `new`) into a table (alias `old`), or deletes them from it, in one commit.

        Args:
            changes: The rows to upsert, and those to delete (`DELETED`), from the table as it is when the write begins.
            table: Name of the table.
            condition: When a new row replaces an old one.
        """

        def write(tag: str) -> None:
            self._merge(changes(self.table(table)), table, condition, tag, is_upsert=True)

        return self._write(table, write, kind="publish")

    def insert(self, rows: DataFrame, table: str, *, keys: Sequence[str], kind: StepKind = "write") -> bool:
        """Adds rows to a table unless it has their keys, in one commit; returns whether it has added them.

        Delta checks the commit against those that other writers make meanwhile, on any file system: of two writers of
        one key, one adds its row, and the other one's is not added.

        Args:
            rows: The rows.
            table: Name of the table.
            keys: The columns of which no two rows have the same values.
            kind: Whether the table is read by others (`publish`) or only by later steps.
        """
        condition = " and ".join(f"old.{key} = new.{key}" for key in keys)
        write = partial(self._merge, rows, table, condition, is_upsert=False)
        return self._write(table, write, kind=kind).rows > 0

    def declare(self, table: str, expectations: Sequence[str]) -> None:
        """States which expectations will be enforced, before anything is counted."""
        expectation_metrics.declare_expectations(self.telemetry, table=table, expectations=expectations)

    def enforce(self, results: Sequence[ExpectationResult], *, table: str) -> None:
        """Records results, and stops the run if one is beyond its limit.

        Raises:
            QualityGateError: More rows violate an expectation than its limit allows.
        """
        self.results += results
        expectation_metrics.record_expectations(self.telemetry, results, table=table)
        breached = [result for result in results if result.is_breached]
        if breached:
            raise QualityGateError("; ".join(self._explained(result, table) for result in breached))

    def report_nulls(self, table: str, nulls: Mapping[str, int]) -> None:
        """Records the number of rows without a value, per column."""
        self.nulls = dict(nulls)
        expectation_metrics.record_nulls(self.telemetry, table=table, nulls=nulls)

    def report_rows(self, **rows: int) -> None:
        """Records counts as soon as they are known, so that a run that fails later has reported them.

        The catalogue has metrics for `read`, `published`, `quarantined` and `duplicates`; other names are kept in the
        run record only. A count is added to its metric once, however often it is reported.
        """
        new = {name: number for name, number in rows.items() if name not in self.counts}
        self.counts |= rows
        self.telemetry.record(
            rows_read=new.get(READ),
            rows_published=new.get(PUBLISHED),
            rows_quarantined=new.get(QUARANTINED),
            rows_duplicate=new.get(DUPLICATES),
        )

    def reconcile(self, *, read: int, **parts: int) -> None:
        """Checks that the rows read are the sum of the parts they went to, before they are published.

        Args:
            read: Rows read.
            parts: Rows by where they went: `published`, `quarantined`, `duplicates`, ...; all but `published`, which
                is reported when the rows are there, are reported.

        Raises:
            ReconciliationError: The sums differ.
        """
        self.report_rows(read=read, **{name: rows for name, rows in parts.items() if name != PUBLISHED})
        total = sum(parts.values())
        self.telemetry.record(rows_unaccounted=abs(read - total))
        if read != total:
            terms = " + ".join(f"{rows:,} {name}" for name, rows in parts.items())
            raise ReconciliationError(f"{self.title}: {read:,} rows read, but {terms} = {total:,}")

    def _merge(self, rows: DataFrame, table: str, condition: str, tag: str, *, is_upsert: bool) -> None:
        if not self.warehouse.exists(table):
            self.warehouse.create(kept(rows), table, tag)
            return
        with job_properties.setting(self.spark, delta_log.TAG, tag):
            self.warehouse.merge(rows, table, condition, is_upsert=is_upsert)

    def confirm(self, table: str, commit: Commit | None, *, count: int | None, published: int) -> None:
        """Checks that a commit published as many rows as were counted before it, or that one will.

        Raises:
            ReconciliationError: The numbers differ.
        """
        if count is None:
            return
        self.telemetry.record(rows_unaccounted=abs(count - published))
        if count != published:
            did = f"its version {commit.version} published" if commit else "its new version would have"
            raise ReconciliationError(
                f"{self.title}: {count:,} rows were counted for {table}, but {did} {published:,}; nothing after "
                f"{table} was written: look for a lost file of its sources, or for a transform that gives other rows "
                f"each time, and run it again"
            )

    def _put_back(self, table: str, where: str, commit: Commit) -> None:
        """Replaces what a commit has written by what was there before it."""
        if commit.tag is None:  # it wrote nothing
            return
        rows = self.table(table, version=max(commit.version - 1, 0)).where("true" if commit.version else "false")
        self.note(f"{table} has the rows of before again: its version {commit.version} is not complete")
        write = partial(self.warehouse.replace_where, rows.where(where), table, where)
        self._write(table, write, kind="write", made=self._made_before(table, commit))

    def _made_before(self, table: str, commit: Commit) -> str:
        """How the rows of before a commit were made; what says nothing, if nothing says it."""
        older = delta_log.history(self.spark, self.warehouse.path(table))
        return next((each.made for each in older if each.version < commit.version and each.made), "{}")

    def _write(self, table: str, write: Callable[[str], None], *, kind: StepKind, made: str | None = None) -> Commit:
        path, author = self.warehouse.path(table), self.telemetry.identity.run_id
        with self.step(f"{kind} {table}", kind=kind, table=table) as step:
            with self.warehouse.creation_lock(table):
                made = self.fingerprints.get(table, "") if made is None else made
                commit = delta_log.commit_with_retry(self.spark, path, write, author=author, note=self.note, made=made)
            step.count(rows_written=commit.rows, bytes_written=commit.bytes, files=commit.files)
            if table in self.warehouse.tables:  # what a state has changed by day is kept beside it, and is no table
                self.telemetry.record(rows_written={table: commit.rows}, bytes_written=commit.bytes)
                self.written[table] = path
        return commit

    def _explained(self, result: ExpectationResult, table: str) -> str:
        if not result.where:
            return str(result)
        return f'{result} (rows: spark-app show {table} {self._selection()}--where "{result.where}")'

    def _selection(self) -> str:
        """The options of `spark-app show` that select the rows of the slice."""
        return ""


@dataclass
class DailyContext(Context):
    """One run of a daily pipeline.

    Attributes:
        is_replay: Whether rows come from bronze instead of the raw files.
        upcoming: The days that the same command runs after this one.
    """

    is_replay: bool = False
    upcoming: Collection[datetime.date] = ()

    @property
    def content(self) -> str:
        """Names what this run writes, for what is made of it."""
        return self.telemetry.identity.run_id

    def read_raw(
        self,
        source: str,
        origin: Origin,
        *,
        schema: StructType,
        names: Sequence[str],
        bronze: str,
        may_be_empty: bool = False,
    ) -> DataFrame:
        """The raw rows of the day, from where the source has them or, in a replay, from bronze.

        Args:
            source: The source.
            origin: Where its rows come from.
            schema: Its columns, as they are delivered.
            names: The names of these from here on.
            bronze: The table with its rows.
            may_be_empty: Whether there may be none.

        Raises:
            InputError: They cannot be read; or there are none, and there must be some.
        """
        with self.step(f"read {source}", kind="read") as step:
            if self.is_replay:
                rows = raw_files.rows_from_bronze(self.partition(bronze), schema=schema, names=names)
                raw = RawDay(rows, rows.isEmpty)
                empty = f"{bronze} has no rows of {self.date} to replay: run the date from its raw rows first"
            else:
                raw = origin.read(self.spark, self.date, schema)
                reason = "its files are empty; " if raw.files else ""
                empty = f"no rows at {origin.where(self.date)}: {reason}deliver the day's rows there"
                step.count(files=raw.files, bytes_read=raw.bytes)
                self.telemetry.record(bytes_read=raw.bytes)
            if not may_be_empty and raw.is_empty():
                raise InputError(empty)
            return raw_files.renamed(raw.rows, schema=schema, names=names)

    def partition(self, table: str, *, version: int | None = None) -> DataFrame:
        """The rows of the day in a table, as it is now or at a version."""
        return self.table(table, version=version).where(self.partition_filter(table))

    def partition_filter(self, table: str) -> str:
        """The condition that selects the rows of the day in a table."""
        return self.warehouse.partition_filter(table, self.date)

    def replace_partition(
        self,
        rows: DataFrame,
        table: str,
        *,
        kind: StepKind = "write",
        count: int | None = None,
        reads: Mapping[str, str] | None = None,
        is_judged: bool = True,
    ) -> Commit:
        """Replaces the day in a table, in one commit; see `replace`.

        Args:
            rows: The rows of the day.
            table: Name of the table.
            kind: Whether the table is read by others (`publish`) or only by later steps.
            count: How many rows these are, as counted before.
            reads: What they were made of; None for what no later change makes stale.
            is_judged: Whether the rows are accepted already; else `accept` or `reject` says so afterwards.
        """
        periods, known = self.warehouse.periods, self.warehouse.periods.period(table, self.date)
        periods.put(table, self.date, Period(known.content, reads or {}, is_done=False))
        commit = self.replace(rows, table, where=self.partition_filter(table), kind=kind, count=count)
        if is_judged:
            self.accept(table)
        return commit

    def accept(self, table: str) -> None:
        """Notes that the rows of the day in a table are those of this run."""
        periods = self.warehouse.periods
        periods.put(table, self.date, Period(self.content, periods.period(table, self.date).reads))

    def reject(self, table: str) -> None:
        """Notes that the rows of the day in a table are no rows to make others of."""
        periods = self.warehouse.periods
        known = periods.period(table, self.date)
        periods.put(table, self.date, Period(known.content, known.reads, is_done=False, is_rejected=True))

    def reads_of(self, names: Iterable[str], day: datetime.date) -> dict[str, str]:
        """By the tables that a day is made of, what is in them."""
        tables, periods = self.warehouse.tables, self.warehouse.periods
        return {name: periods.content(name, day, is_of_days=tables[name].day is not None) for name in names}

    def _selection(self) -> str:
        return f"--date {self.date} "

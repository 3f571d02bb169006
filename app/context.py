"""What a pipeline is handed: whatever passes through it is traced, timed, counted and checked."""

import dataclasses
import datetime
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from app import commits, markings, savepoint, sources, tables
from app.commits import Written
from app.errors import InputError, QualityGateError, ReconciliationError
from app.figures import Figure
from app.progress import Counts, Watcher
from app.settings import Settings, Source
from app.telemetry import quality as quality_telemetry
from app.telemetry.names import StepKind
from app.telemetry.runs import Run, Step

LOG: Final = logging.getLogger(__name__)


@dataclass
class Context:
    """One run of one pipeline on one date.

    Attributes:
        spark: The session.
        settings: Where things are.
        date: The date of the run.
        run: The run as telemetry sees it.
        watcher: Who is told how it gets on.
        is_replay: Whether rows come from bronze again instead of the raw files.
        counts: Rows of the run so far.
        figures: Quality figures of the run so far.
        nulls: Nulls per column of the rows that parse.
        facts: Further numbers for the run's record.
        written: Tables that the run wrote, by name, with their paths.
    """

    spark: SparkSession
    settings: Settings
    date: datetime.date
    run: Run
    watcher: Watcher
    is_replay: bool = False
    counts: Counts = field(default_factory=Counts)
    figures: list[Figure] = field(default_factory=list)
    nulls: dict[str, int] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, *, kind: StepKind, table: str | None = None) -> Iterator[Step]:
        """A named part of the run; Spark's jobs in it carry its trace."""
        pipeline, started = self.run.facts.pipeline, time.monotonic()
        self.watcher.step_started(pipeline, self.date, name)
        what = f"{pipeline} {self.date}: {name}"
        with self.run.step(name, kind=kind, table=table) as step:
            with markings.of_a_step(self.spark, what, traceparent=step.traceparent, trace_id=step.trace_id):
                yield step
            rows = "" if step.rows_written is None else f", {step.rows_written:,} rows"
            LOG.info("%s: done in %.1f s%s", name, time.monotonic() - started, rows)
        self.watcher.step_ended(pipeline, self.date, name, time.monotonic() - started, step.rows_written)

    def note(self, text: str) -> None:
        """Tells something worth knowing to whoever watches, and to the run's log."""
        LOG.warning(text)
        self.watcher.note(text)

    def read_raw(self, source: Source, *, schema: StructType, bronze: str, may_be_empty: bool = False) -> DataFrame:
        """The raw rows of the date, from the landing folder or, in a replay, from bronze.

        Raises:
            InputError: The landing folder has no files; or there are no rows, and there must be some.
        """
        folder = sources.day_folder(self.settings.raw_path, source, self.date)
        with self.step(f"read {source}", kind="read") as step:
            if self.is_replay:
                rows = sources.again(self.of_day(bronze), schema=schema)
                none = f"{bronze} has no rows of {self.date} to replay: run the date from its raw files first"
            else:
                rows = sources.read_day(self.spark, folder, schema=schema, kind=self.settings.raw.formats[source])
                none = f"no rows at {folder}: its files are empty; deliver the day's rows there"
                files, size = sources.bytes_of(self.spark, folder)
                step.count(files=files, bytes_read=size)
                self.run.record(bytes_read=size)
            if not may_be_empty and rows.isEmpty():
                raise InputError(none)
            return rows

    def table(self, name: str) -> DataFrame:
        """A table of the warehouse as it is now; empty if it was never written."""
        return self.spark.read.format("delta").load(tables.ensure(self.spark, self.settings, name))

    def of_day(self, name: str) -> DataFrame:
        """The rows of the date in a table."""
        return self.table(name).where(tables.day(name, self.date))

    def overwrite(
        self,
        rows: DataFrame,
        table: str,
        *,
        kind: StepKind = "write",
        observe: Sequence[Column] = (),
        also: Observation | None = None,
    ) -> Written:
        """Replaces the date in a table, in one commit.

        Args:
            rows: All rows of the date.
            table: Name of the table.
            kind: Whether the table is read by others (`publish`) or only by later steps.
            observe: Aggregates to compute over `rows` on their way.
            also: An observation that `rows` carries already; it must have been made for this write alone.
        """
        path, day = tables.ensure(self.spark, self.settings, table), tables.day(table, self.date)

        def write(tag: str) -> Mapping[str, Any]:
            observation = Observation()
            observed = rows.observe(observation, *observe) if observe else rows
            tables.replace_day(observed, path, day, tag)
            return (dict(observation.get) if observe else {}) | (dict(also.get) if also else {})

        with self.step(f"{kind} {table}", kind=kind, table=table) as step:
            written = self._committed(path, write)
            self._count(step, table, path, written)
        return written

    def merge(self, rows: DataFrame, table: str, *, condition: str) -> Written:
        """Upserts rows (alias `new`) into a table (alias `old`), in one commit."""
        path = tables.ensure(self.spark, self.settings, table)

        def write(tag: str) -> Mapping[str, Any]:
            with markings.setting(self.spark, "spark.databricks.delta.commitInfo.userMetadata", tag):
                merge = DeltaTable.forPath(self.spark, path).alias("old").merge(rows.alias("new"), condition)
                merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            return {}

        with self.step(f"publish {table}", kind="publish", table=table) as step:
            written = self._committed(path, write)
            self._count(step, table, path, written)
        return written

    def judge(self, figures: Sequence[Figure], *, table: str) -> None:
        """Records figures and lets nothing through that is beyond its limit.

        Raises:
            QualityGateError: A promise is broken by more than its limit.
        """
        self.figures += figures
        quality_telemetry.record_promises(self.run, figures, table=table)
        breached = [figure for figure in figures if figure.is_breached]
        if breached:
            raise QualityGateError("; ".join(self._explained(figure, table) for figure in breached))

    def report_nulls(self, table: str, nulls: Mapping[str, int]) -> None:
        """States the rows without a value, per column."""
        self.nulls = dict(nulls)
        quality_telemetry.record_nulls(self.run, table=table, nulls=nulls)

    def declare(self, table: str, promises: Sequence[str]) -> None:
        """Says which promises will be judged, before anything is counted."""
        quality_telemetry.declare(self.run, table=table, promises=promises)

    def report_rows(self, **known: int) -> None:
        """States numbers of rows, by the names of `Counts`, as soon as they are known.

        So a run that fails later has told them.
        """
        new = {name: rows for name, rows in known.items() if getattr(self.counts, name) is None}
        self.counts = dataclasses.replace(self.counts, **known)
        self.run.record(
            rows_read=new.get("read"),
            rows_published=new.get("written"),
            rows_quarantined=new.get("quarantined"),
            rows_duplicate=new.get("duplicate"),
        )

    def account(self, *, read: int, written: int, quarantined: int, duplicate: int) -> None:
        """Takes the final numbers of rows, which must add up, before they are published.

        Raises:
            ReconciliationError: Rows read are not the rows published, quarantined and removed.
        """
        self.report_rows(read=read, quarantined=quarantined, duplicate=duplicate)
        parts = written + quarantined + duplicate
        self.run.record(rows_unaccounted=abs(read - parts))
        if read != parts:
            raise ReconciliationError(
                f"{self.run.facts.pipeline} {self.date}: {read:,} rows read, but {written:,} published + "
                f"{quarantined:,} quarantined + {duplicate:,} duplicates = {parts:,}"
            )

    def savepoint(self, *names: str) -> AbstractContextManager[None]:
        """Puts this date of some tables back to its last good content if anything stops the block."""
        return savepoint.savepoint(
            self.spark,
            self.settings,
            f"{self.run.facts.pipeline}-{self.date}",
            versions={
                name: commits.last_version(self.spark, tables.ensure(self.spark, self.settings, name)) for name in names
            },
            put_back=self._put_back,
            tell=self.note,
        )

    def _put_back(self, name: str, version: int) -> None:
        good = tables.as_it_was(self.spark, self.settings, self.date, name, version)
        if good is not None:
            self.overwrite(good, name)

    def _count(self, step: Step, table: str, path: str, written: Written) -> None:
        commit = written.commit
        step.count(rows_written=commit.rows, bytes_written=commit.bytes, files=commit.files)
        self.run.record(rows_written={table: commit.rows}, bytes_written=commit.bytes)
        self.written[table] = path

    def _committed(self, path: str, write: Callable[[str], Mapping[str, Any]]) -> Written:
        return commits.committed(self.spark, path, write, author=self.run.facts.run_id, note=self.note)

    def _explained(self, figure: Figure, table: str) -> str:
        rows = f' (rows: spark-app show {table} --date {self.date} --where "{figure.where}")' if figure.where else ""
        return f"{figure}{rows}"

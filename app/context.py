"""What a pipeline is handed: whatever passes through it is traced, timed, counted and checked."""

import datetime
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from delta.exceptions import DeltaConcurrentModificationException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app import sources, tables
from app.errors import QualityGateError, ReconciliationError
from app.quality import Figure
from app.settings import Settings, Source
from app.telemetry.names import StepKind
from app.telemetry import quality as quality_telemetry
from app.telemetry.quality import PromiseFigures
from app.telemetry.runs import Run, Step

ATTEMPTS: Final = 10
"""How often a commit is tried against writers of the same table; each try starts from the newest version."""


class Watcher(Protocol):
    """Somebody who is told how a run gets on."""

    def note(self, text: str) -> None:
        """One line worth telling."""

    def step_started(self, pipeline: str, date: datetime.date, step: str) -> None:
        """A step begins."""

    def step_ended(self, pipeline: str, date: datetime.date, step: str, seconds: float, rows: int | None) -> None:
        """A step has ended well; `rows` is what it wrote, or read if it writes nothing."""


@dataclass
class Counts:
    """Rows of one run; None is not known (yet)."""

    read: int | None = None
    written: int | None = None
    quarantined: int | None = None
    duplicate: int | None = None


@dataclass(frozen=True)
class Written:
    """What a write did: the table's own commit and what was observed on the way."""

    commit: tables.Commit
    observed: Mapping[str, Any]


class Doing:
    """A step in the making: states what it does, and remembers the rows for whoever watches."""

    def __init__(self, step: Step) -> None:
        """Nothing is known yet."""
        self._step = step
        self.rows: int | None = None

    def count(self, **counts: int) -> None:
        """States numbers of the step, by the names that `Step.count` knows."""
        self.rows = counts.get("rows_written", counts.get("rows_read", self.rows))
        self._step.count(**counts)


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
    def step(self, name: str, *, kind: StepKind, table: str | None = None) -> Iterator["Doing"]:
        """A named part of the run; Spark's jobs in it carry its trace."""
        pipeline, started = self.run.facts.pipeline, time.monotonic()
        self.watcher.step_started(pipeline, self.date, name)
        with self.run.step(name, kind=kind, table=table) as step, self._spark_properties(name, step):
            doing = Doing(step)
            yield doing
        self.watcher.step_ended(pipeline, self.date, name, time.monotonic() - started, doing.rows)

    def read_raw(self, source: Source, *, schema: StructType, bronze: str) -> DataFrame:
        """The raw rows of the date, from the landing folder or, in a replay, from bronze.

        Raises:
            InputError: There are none.
        """
        folder = sources.day_folder(self.settings.raw_path, source, self.date)
        with self.step(f"read {source}", kind="read") as step:
            if self.is_replay:
                return sources.json_rows(self._replayed(bronze, schema), schema=schema)
            rows = sources.read_day(self.spark, folder, schema=schema, kind=self.settings.raw.format(source))
            files, size = sources.bytes_of(self.spark, folder)
            step.count(files=files, bytes_read=size)
            return rows

    def table(self, name: str) -> DataFrame:
        """A table of the warehouse as it is now; empty if it was never written."""
        return self.spark.read.format("delta").load(tables.ensure(self.spark, self.settings, name))

    def overwrite(
        self,
        rows: DataFrame,
        table: str,
        *,
        where: str,
        kind: StepKind = "write",
        observe: Sequence[Column] = (),
        also: Observation | None = None,
    ) -> Written:
        """Replaces the part of a table that a condition names, in one commit.

        Args:
            rows: The new content of that part.
            table: Name of the table.
            where: Condition on partition columns.
            kind: Whether the table is read by others (`publish`) or only by later steps.
            observe: Aggregates to compute over `rows` on their way.
            also: An observation that `rows` carries already; it must have been made for this write alone.
        """
        path = tables.ensure(self.spark, self.settings, table)

        def write(tag: str) -> Mapping[str, Any]:
            observation = Observation()
            observed = rows.observe(observation, *observe) if observe else rows
            writer = observed.write.format("delta").mode("overwrite").option("replaceWhere", where)
            writer.option("userMetadata", tag).save(path)
            return (dict(observation.get) if observe else {}) | (dict(also.get) if also else {})

        with self.step(f"{kind} {table}", kind=kind, table=table) as step:
            written = self._committed(path, write)
            self._count(step, table, path, written)
        return written

    def merge(self, rows: DataFrame, table: str, *, condition: str) -> Written:
        """Upserts rows (alias `new`) into a table (alias `old`), in one commit."""
        path = tables.ensure(self.spark, self.settings, table)

        def write(tag: str) -> Mapping[str, Any]:
            from delta.tables import DeltaTable

            with self._conf("spark.databricks.delta.commitInfo.userMetadata", tag):
                merge = DeltaTable.forPath(self.spark, path).alias("old").merge(rows.alias("new"), condition)
                merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            return {}

        with self.step(f"publish {table}", kind="publish", table=table) as step:
            written = self._committed(path, write)
            self._count(step, table, path, written)
        return written

    def judge(self, figures: Sequence[Figure], *, table: str, rows: int) -> None:
        """Records figures and lets nothing through that is beyond its limit.

        Raises:
            QualityGateError: A promise is broken by more than its limit.
        """
        self.figures += figures
        quality_telemetry.record_promises(
            self.run,
            [
                PromiseFigures(table, figure.promise, figure.total, figure.broken, figure.limit, figure.is_breached)
                for figure in figures
                if figure.broken is not None and figure.total is not None
            ],
        )
        breached = [figure for figure in figures if figure.is_breached]
        if breached:
            raise QualityGateError("; ".join(self._explained(figure, table) for figure in breached))

    def declare(self, table: str, promises: Sequence[str]) -> None:
        """Says which promises will be judged, before anything is counted."""
        quality_telemetry.declare(self.run, table=table, promises=promises)

    def report_rows(
        self, *, read: int | None = None, quarantined: int | None = None, duplicate: int | None = None
    ) -> None:
        """States numbers of rows as soon as they are known, so that a run that fails later has told them."""
        known = {"read": read, "quarantined": quarantined, "duplicate": duplicate}
        for name, value in known.items():
            if value is not None:
                setattr(self.counts, name, value)

    def account(self, counts: Counts) -> None:
        """Takes the final numbers of rows, which must add up.

        Raises:
            ReconciliationError: Rows read are not the rows published, quarantined and removed.
        """
        self.counts = counts
        parts = (counts.written or 0) + (counts.quarantined or 0) + (counts.duplicate or 0)
        missing = (counts.read or 0) - parts
        self.run.record(rows_unaccounted=abs(missing))
        if missing:
            raise ReconciliationError(
                f"{self.run.facts.pipeline} {self.date}: {counts.read:,} rows read, but {counts.written:,} published + "
                f"{counts.quarantined:,} quarantined + {counts.duplicate:,} duplicates = {parts:,}"
            )

    @contextmanager
    def savepoint(self, *names: str) -> Iterator[None]:
        """Puts this date of some tables back to where it was if the block fails, or was killed the last time.

        The versions to go back to are noted in a file before anything changes and kept until the block has ended, so
        that a rerun after a kill knows the last good content, not that of the killed run.
        """
        note = f"{self.settings.warehouse_path.rstrip('/')}/_savepoints/{self.run.facts.pipeline}-{self.date}.json"
        paths = {name: tables.ensure(self.spark, self.settings, name) for name in names}
        noted = tables.read_text(self.spark, note)
        versions: dict[str, int] = (
            json.loads(noted)
            if noted
            else {name: tables.last_version(self.spark, path) for name, path in paths.items()}
        )
        if not noted:
            tables.write_text(self.spark, note, json.dumps(versions))
        try:
            yield
        except QualityGateError:
            for name, path in paths.items():
                self._put_back(name, path, versions[name])
            tables.delete_file(self.spark, note)
            raise
        tables.delete_file(self.spark, note)

    def _put_back(self, name: str, path: str, version: int) -> None:
        where = f"processed_date = '{self.date}'"
        if tables.last_version(self.spark, path) != version:
            good = self.spark.read.format("delta").option("versionAsOf", version).load(path).where(where)
            self.overwrite(good, name, where=where)

    def _count(self, step: Doing, table: str, path: str, written: Written) -> None:
        commit = written.commit
        step.count(rows_written=commit.rows, bytes_written=commit.bytes, files=commit.files)
        self.run.record(rows_written={table: commit.rows}, bytes_written=commit.bytes)
        self.written[table] = path

    def _committed(self, path: str, write: Callable[[str], Mapping[str, Any]]) -> Written:
        """Runs a write until no other writer is in its way, and reads what its commit states."""
        for attempt in range(1, ATTEMPTS + 1):
            before, tag = tables.last_version(self.spark, path), f"{self.run.facts.run_id}#{attempt}"
            try:
                observed = write(tag)
            except DeltaConcurrentModificationException:
                if attempt == ATTEMPTS:
                    raise
                self.watcher.note(f"another writer was faster at {path}: trying again")
                continue
            commit = next(
                (commit for commit in tables.commits(self.spark, path, after=before) if commit.tag == tag), None
            )
            return Written(commit or _nothing(before), observed)
        raise AssertionError("unreachable")

    def _replayed(self, bronze: str, schema: StructType) -> DataFrame:
        columns = F.create_map(*[item for name in schema.names for item in (F.lit(name), F.col(name).cast("string"))])
        whole = F.to_json(F.map_concat(columns, F.coalesce("extra", F.create_map().cast("map<string,string>"))))
        rows = self.table(bronze).where(F.col("date") == F.lit(self.date))
        return rows.select(F.coalesce("raw", whole).alias("value"), "source_file")

    def _explained(self, figure: Figure, table: str) -> str:
        rows = f' (rows: spark-app show {table} --date {self.date} --where "{figure.where}")' if figure.where else ""
        return f"{figure}{rows}"

    @contextmanager
    def _spark_properties(self, name: str, step: Step) -> Iterator[None]:
        context = self.spark.sparkContext
        properties = {"traceparent": step.traceparent, "mdc.trace_id": step.trace_id}
        for key, value in properties.items():
            context.setLocalProperty(key, value)
        context.setJobDescription(f"{self.run.facts.pipeline} {self.date}: {name}")
        try:
            yield
        finally:
            for key in [*properties, "spark.job.description"]:
                context.setLocalProperty(key, None)  # type: ignore[arg-type]

    @contextmanager
    def _conf(self, key: str, value: str) -> Iterator[None]:
        self.spark.conf.set(key, value)
        try:
            yield
        finally:
            self.spark.conf.unset(key)


def _nothing(version: int) -> tables.Commit:
    """The commit of a write that had nothing to do."""
    return tables.Commit(version, 0, 0, 0, {}, "none", datetime.datetime.now(datetime.UTC), None)

"""The bronze table of a source: every raw row, typed, with the expectations that it violates; no row is dropped."""

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_app.engine.context import DailyContext
from spark_app.engine.limits import LimitedConfig
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation
from spark_app.quality.results import ExpectationResult
from spark_app.settings import Schedule
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.origin import Origin

PARSED = ("text", "is_malformed", "raw", "extra", "source_file")


class DailyConfig(LimitedConfig):
    """What an operator tunes of a daily pipeline, in `config/etl/`; a file need not be there."""

    usual_limits: ClassVar[Mapping[str, float]] = {
        expect.MISSING_COLUMNS: 0.0,
        expect.UNEXPECTED_COLUMNS: 1.0,
        expect.DUPLICATES: 0.05,
    }

    checks: bool = True
    schedule: Schedule | None = None


@dataclass(frozen=True)
class IngestSpec:
    """A source and what is expected of it.

    Attributes:
        source: The source of the raw rows.
        origin: Where its raw rows come from.
        table: Its bronze table.
        schema: The columns of a raw row.
        key: The columns that identify a row; of its versions one is published.
        expectations: What every row must meet; empty if the source is not checked.
        limits: The largest value of each result that may be published, by the name of its expectation.
        is_checked: Whether expectations are enforced.
    """

    source: str
    origin: Origin
    table: str
    schema: StructType
    key: Sequence[str]
    expectations: Sequence[Expectation]
    limits: Mapping[str, float]
    is_checked: bool

    @classmethod
    def declare(
        cls,
        context: DailyContext,
        config: DailyConfig,
        *,
        source: str,
        origin: Origin,
        table: str,
        schema: StructType,
        key: Sequence[str],
        expectations: Sequence[Expectation],
    ) -> Self:
        """A source whose expectations telemetry knows before any row is counted.

        Args:
            context: The run.
            config: The limits, and whether expectations are enforced.
            source: The source of the raw rows.
            origin: Where its raw rows come from.
            table: Its bronze table.
            schema: The columns of a raw row.
            key: The columns that identify a row.
            expectations: What every row must meet.
        """
        context.declare(table, config.expectation_names)
        expectations = expectations if config.checks else ()
        return cls(source, origin, table, schema, key, expectations, config.all_limits, config.checks)


def declared_expectations(expectations: Sequence[Expectation], *further: str) -> list[str]:
    """The names of the expectations about rows and columns of a source, and of further ones that a pipeline judges."""
    names = [expectation.name for expectation in expectations]
    return [expect.MALFORMED, *names, expect.MISSING_COLUMNS, expect.UNEXPECTED_COLUMNS, *further]


@dataclass(frozen=True)
class Audit:
    """What the bronze table holds of the date.

    Attributes:
        version: The version of the table that was read; what is published is read from the same version.
        rows: All rows.
        quarantined: Rows that violate an expectation.
        latest: Valid rows that may be published: one version of each key.
        duplicates: Valid rows of which another version is published.
        violations: Rows that violate an expectation, by its name.
        unexpected: Names of columns that are not in the schema.
        measures: The further aggregates over the valid rows, by their names; empty if no row is valid.
    """

    version: int
    rows: int
    quarantined: int
    latest: int
    duplicates: int
    violations: Mapping[str, int]
    unexpected: Sequence[str]
    measures: Mapping[str, Any]


def typed(raw: DataFrame, *, schema: StructType) -> DataFrame:
    """Raw rows of text and, beside it, their typed columns; a value that cannot be read as its type is null.

    Columns in: text, is_malformed, raw, extra, source_file (see `spark_app.warehouse.raw_files`).
    Columns out: those, and the columns of the schema.
    """
    return raw.select(*PARSED, *expect.typed(schema))


def with_violations(
    rows: DataFrame, *, columns: Sequence[str], expectations: Sequence[Expectation], date: datetime.date
) -> DataFrame:
    """Typed rows with the names of the expectations that each violates; only rows with violations keep their raw text.

    Columns out: the given columns, violations, raw, extra, source_file, date.
    """
    return rows.withColumn("violations", expect.violations(expectations)).select(
        *columns,
        "violations",
        F.when(expect.is_invalid(), F.col("raw")).alias("raw"),
        "extra",
        "source_file",
        F.lit(date).alias("date"),
    )


def with_version_rank(rows: DataFrame, *, key: Sequence[str], newest_first: Sequence[Column]) -> DataFrame:
    """Rows with their rank among the valid rows of the same key; the row of rank 1 is published.

    Columns in: the key, those of the order, violations, raw.
    Columns out: those, and version_rank (null for an invalid row).
    """
    is_valid = ~expect.is_invalid()
    keys = [F.when(is_valid, F.col(name)) for name in key]
    # Only invalid rows have a raw text. It spreads them over the tasks, since they have no key that can be trusted.
    versions = Window.partitionBy(*keys, "raw").orderBy(*newest_first)
    return rows.withColumn("version_rank", F.when(is_valid, F.row_number().over(versions)))


def audit(context: DailyContext, spec: IngestSpec, commit: Commit, *, measures: Sequence[Column] = ()) -> Audit:
    """Counts what a commit wrote to the bronze table, by a scan of the few columns that say so.

    Args:
        context: The run.
        spec: The source.
        commit: The commit that replaced the date in the bronze table.
        measures: Further aggregates over the valid rows.
    """
    bronze = context.partition(spec.table, version=commit.version)
    rank = F.col("version_rank")
    versions = [F.count_if(rank == 1).alias("latest"), F.count_if(rank > 1).alias("duplicates")]
    # Nearly all rows have no violation and form one group, whose measures are those of the valid rows.
    groups = bronze.groupBy("violations").agg(F.count(F.lit(1)).alias("rows"), *versions, *measures).collect()
    valid = [group for group in groups if not group["violations"]]
    audit = Audit(
        version=commit.version,
        rows=sum(group["rows"] for group in groups),
        quarantined=sum(group["rows"] for group in groups if group["violations"]),
        latest=sum(group["latest"] for group in valid),
        duplicates=sum(group["duplicates"] for group in valid),
        violations=_rows_per_violation(groups),
        unexpected=_unexpected_columns(bronze) if spec.is_checked and commit.has_values("extra") else (),
        measures=valid[0].asDict() if valid else {},
    )
    context.report_rows(read=audit.rows, quarantined=audit.quarantined, duplicates=audit.duplicates)
    if spec.is_checked:
        context.report_nulls(spec.table, _nulls(commit, audit, spec.schema))
    return audit


def latest(context: DailyContext, spec: IngestSpec, audit: Audit) -> DataFrame:
    """The rows of the date that may be published: of each key the valid version that is the newest."""
    return context.partition(spec.table, version=audit.version).where("version_rank = 1")


def results(context: DailyContext, spec: IngestSpec, audit: Audit) -> list[ExpectationResult]:
    """The results of the expectations about rows, columns and duplicates."""
    limits, columns = spec.limits, len(spec.schema.names)
    row_results = [
        expect.result(
            name, audit.violations.get(name, 0), audit.rows, limits, where=f"array_contains(violations, '{name}')"
        )
        for name in [expect.MALFORMED, *(expectation.name for expectation in spec.expectations)]
    ]
    parsed = audit.rows - audit.violations.get(expect.MALFORMED, 0)
    missing = [name for name, count in context.nulls.items() if parsed and count == parsed]
    if missing:
        context.note(f"no row has a value for {', '.join(missing)}")
    if audit.unexpected:
        context.note(f"new columns upstream, kept in bronze only: {', '.join(audit.unexpected)}")
    duplicates = duplicates_condition(context, spec)
    return [
        *row_results,
        expect.result(expect.MISSING_COLUMNS, len(missing), columns, limits),
        expect.result(expect.UNEXPECTED_COLUMNS, len(audit.unexpected), columns + len(audit.unexpected), limits),
        expect.result(expect.DUPLICATES, audit.duplicates, audit.rows, limits, where=duplicates),
    ]


def duplicates_condition(context: DailyContext, spec: IngestSpec) -> str:
    """The condition that shows the valid rows of the date that share their key with others."""
    names, day = ", ".join(spec.key), context.partition_filter(spec.table)
    return f"version_rank > 0 and ({names}) in (select {names} from {spec.table} where {day} and version_rank = 2)"


def _rows_per_violation(groups: Sequence[Row]) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for group in groups:
        for name in group["violations"]:
            counts[name] += group["rows"]
    return counts


def _unexpected_columns(bronze: DataFrame) -> list[str]:
    [entries] = bronze.where("extra IS NOT NULL").agg(expect.unexpected_columns()).collect()[0]
    return sorted({name for entry in entries or [] if entry[0] for name in str(entry[0]).split("\n")})


def _nulls(commit: Commit, audit: Audit, schema: StructType) -> dict[str, int]:
    """Rows without a value per column, of the rows that parse.

    They come from the statistics of the commit. There, a column is also null if the row does not parse or if the value
    cannot be read; both are violations and are subtracted.
    """
    violations, malformed = audit.violations, audit.violations.get(expect.MALFORMED, 0)
    unread = {name: malformed + violations.get(f"{name}.type", 0) for name in schema.names}
    return {name: commit.nulls[name] - unread[name] for name in schema.names if name in commit.nulls}

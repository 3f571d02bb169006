"""The first table of every source: each raw row, typed, with the list of what is wrong with it; nothing is dropped."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app import quality
from app.commits import Written
from app.context import Context
from app.figures import Figure
from app.quality import Promise
from app.settings import Schedule

PARSED = ("text", "is_malformed", "raw", "extra", "source_file")


class Limits(BaseModel):
    """What an operator tunes of a pipeline's promises: see the files of `config/etl/`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default_limit: float
    limits: dict[str, float]
    checks: bool
    schedule: Schedule | None


@dataclass(frozen=True)
class Seen:
    """What the write of bronze saw.

    Attributes:
        rows: All rows.
        quarantined: Rows that break a promise.
        observed: Further aggregates, by the names they were asked for with.
    """

    rows: int
    quarantined: int
    observed: Mapping[str, Any]


def typed(raw: DataFrame, *, schema: StructType) -> DataFrame:
    """Raw rows of text with their typed columns beside; what cannot be read as its type is null.

    Columns in: text, is_malformed, raw, extra, source_file (see `app.sources`).
    Columns out: those, and the columns of the schema.
    """
    return raw.select(*PARSED, *quality.typed(schema))


def judged(rows: DataFrame, *, columns: Sequence[str], promises: Sequence[Promise], date: datetime.date) -> DataFrame:
    """Typed rows with the promises that each breaks; the raw text is kept where there are any.

    Columns out: the given columns, problems, raw, extra, source_file, date.
    """
    told = rows.withColumn("problems", quality.problems(promises))
    return told.select(
        *columns,
        "problems",
        F.when(quality.is_invalid(), F.col("raw")).alias("raw"),
        "extra",
        "source_file",
        F.lit(date).alias("date"),
    )


def write(
    context: Context,
    rows: DataFrame,
    table: str,
    *,
    schema: StructType,
    promises: Sequence[Promise],
    config: Limits,
    limits: Mapping[str, float],
    observe: Sequence[Column] = (),
) -> Seen:
    """Replaces the date in a bronze table and judges what was written.

    Raises:
        QualityGateError: A promise about single rows or columns is broken by more than its limit.
    """
    checks = [*quality.reason_counts(promises), *quality.unexpected_columns(), *observe] if config.checks else []
    written = context.overwrite(rows, table, where=day(context), observe=[*quality.row_counts(), *checks])
    seen = written.observed
    if not config.checks:
        return Seen(seen["rows"], seen["quarantined"], {})
    context.report_nulls(table, nulls(written, schema))
    context.report_rows(read=seen["rows"], quarantined=seen["quarantined"])
    context.judge(_figures(context, written, schema, promises, limits), table=table)
    return Seen(seen["rows"], seen["quarantined"], seen)


def valid(context: Context, table: str) -> DataFrame:
    """The rows of the date that break no promise."""
    return context.table(table).where(day(context)).where(~quality.is_invalid())


def day(context: Context) -> str:
    """The condition that names the partition of the date."""
    return f"date = '{context.date}'"


def figure_names(promises: Sequence[Promise]) -> list[str]:
    """The names of all figures that the write of bronze judges."""
    columns = [quality.MISSING_COLUMNS, quality.UNEXPECTED_COLUMNS]
    return [quality.MALFORMED, *(promise.name for promise in promises), *columns]


def nulls(written: Written, schema: StructType) -> dict[str, int]:
    """Rows without a value per column, of the rows that parse.

    Taken from the commit's own statistics: a typed column is also null where the row does not parse and where the
    value cannot be read, and both were counted.
    """
    seen = written.observed
    unread = {name: seen[quality.MALFORMED] + seen.get(f"{name}.type", 0) for name in schema.names}
    return {name: written.commit.nulls[name] - unread[name] for name in schema.names if name in written.commit.nulls}


def _figures(
    context: Context,
    written: Written,
    schema: StructType,
    promises: Sequence[Promise],
    limits: Mapping[str, float],
) -> list[Figure]:
    rows = written.observed["rows"]
    figures = [
        quality.share(name, written.observed[name], rows, limits, where=f"array_contains(problems, '{name}')")
        for name in [quality.MALFORMED, *(promise.name for promise in promises)]
    ]
    parsed = rows - written.observed[quality.MALFORMED]
    missing = [name for name, count in context.nulls.items() if parsed and count == parsed]
    unexpected = _names(written.observed["unexpected"])
    if missing:
        context.note(f"no row has a value for {', '.join(missing)}")
    if unexpected:
        context.note(f"new columns upstream, kept in bronze only: {', '.join(unexpected)}")
    columns = len(schema.names)
    return [
        *figures,
        quality.share(quality.MISSING_COLUMNS, len(missing), columns, limits),
        quality.share(quality.UNEXPECTED_COLUMNS, len(unexpected), columns + len(unexpected), limits),
    ]


def _names(found: Sequence[Any] | None) -> list[str]:
    return sorted({name for entry in found or [] if entry[0] for name in str(entry[0]).split("\n")})

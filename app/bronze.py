"""The first table of every source: each raw row, typed, with the list of what is wrong with it; nothing is dropped."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from app import quality, tables
from app.commits import Written
from app.context import Context
from app.figures import FRESHNESS, Figure
from app.quality import Promise
from app.settings import Schedule, Share, Source

PARSED = ("text", "is_malformed", "raw", "extra", "source_file")


class Config(BaseModel):
    """What an operator tunes of a pipeline: see the files of `config/etl/`. `promised` names its promises."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    promised: ClassVar[Sequence[str]] = ()

    default_limit: Share
    limits: dict[str, Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]]
    checks: bool
    schedule: Schedule | None

    @field_validator("limits")
    @classmethod
    def _are_shares_of_promises(cls, limits: dict[str, float]) -> dict[str, float]:
        for promise, limit in limits.items():
            if promise not in cls.promised:
                raise ValueError(f"unknown promise {promise!r}; allowed are {', '.join(sorted(cls.promised))}")
            if promise != FRESHNESS and limit > 1:
                raise ValueError(f"{promise} is limited by a share from 0 to 1, not by {limit}")
        return limits


@dataclass(frozen=True)
class Feed:
    """What a source delivers, and what is promised of it.

    Attributes:
        source: Where the raw rows are.
        table: Its bronze table.
        schema: The columns of a raw row.
        promises: What every row keeps; none where nothing is to be checked.
        limits: The largest value of each figure that may be published, by the name of its promise.
        is_checked: Whether anything is judged.
    """

    source: Source
    table: str
    schema: StructType
    promises: Sequence[Promise]
    limits: Mapping[str, float]
    is_checked: bool

    @classmethod
    def declared(
        cls,
        context: Context,
        config: Config,
        *,
        source: Source,
        table: str,
        schema: StructType,
        promises: Sequence[Promise],
    ) -> Self:
        """A feed whose promises are said to be judged, before anything is counted.

        Args:
            context: The run.
            config: The limits, and whether there are checks at all.
            source: Where the raw rows are.
            table: Its bronze table.
            schema: The columns of a raw row.
            promises: What every row keeps.
        """
        context.declare(table, config.promised)
        limits = {name: config.limits.get(name, config.default_limit) for name in config.promised}
        return cls(source, table, schema, promises if config.checks else (), limits, config.checks)


def promised(promises: Sequence[Promise], *further: str) -> list[str]:
    """The names of what is promised of a source: of its rows, of its columns, and what the pipeline judges itself."""
    names = [promise.name for promise in promises]
    return [quality.MALFORMED, *names, quality.MISSING_COLUMNS, quality.UNEXPECTED_COLUMNS, *further]


@dataclass(frozen=True)
class Seen:
    """What the write of bronze saw.

    Attributes:
        rows: All rows.
        quarantined: Rows that break a promise.
        observed: Further aggregates, by the names they were asked for with; none of a feed that is not checked.
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


def write(context: Context, rows: DataFrame, feed: Feed, *, observe: Sequence[Column] = ()) -> Seen:
    """Replaces the date in the bronze table of a feed and judges what was written.

    Raises:
        QualityGateError: A promise about single rows or columns is broken by more than its limit.
    """
    checks = [*quality.reason_counts(feed.promises), *quality.unexpected_columns(), *observe] if feed.is_checked else []
    written = context.overwrite(rows, feed.table, observe=[*quality.row_counts(), *checks])
    seen = written.observed
    if not checks:
        return Seen(seen["rows"], seen["quarantined"], {})
    context.report_nulls(feed.table, _nulls(written, feed.schema))
    context.report_rows(read=seen["rows"], quarantined=seen["quarantined"])
    context.judge(_figures(context, written, feed), table=feed.table)
    return Seen(seen["rows"], seen["quarantined"], seen)


def valid(context: Context, feed: Feed) -> DataFrame:
    """The rows of the date that break no promise."""
    return context.of_day(feed.table).where(~quality.is_invalid())


def repeated(context: Context, feed: Feed, *, key: Sequence[str]) -> str:
    """The condition that shows the valid rows of the date of which another has the same key."""
    names, is_valid = ", ".join(key), "size(problems) = 0"
    of_day = f"{tables.day(feed.table, context.date)} and {is_valid}"
    keys = f"select {names} from {feed.table} where {of_day} group by all having count(*) > 1"
    return f"{is_valid} and ({names}) in ({keys})"


def _nulls(written: Written, schema: StructType) -> dict[str, int]:
    """Rows without a value per column, of the rows that parse.

    Taken from the commit's own statistics: a typed column is also null where the row does not parse and where the
    value cannot be read, and both were counted.
    """
    seen = written.observed
    unread = {name: seen[quality.MALFORMED] + seen.get(f"{name}.type", 0) for name in schema.names}
    return {name: written.commit.nulls[name] - unread[name] for name in schema.names if name in written.commit.nulls}


def _figures(context: Context, written: Written, feed: Feed) -> list[Figure]:
    rows, columns, limits = written.observed["rows"], len(feed.schema.names), feed.limits
    figures = [
        quality.share(name, written.observed[name], rows, limits, where=f"array_contains(problems, '{name}')")
        for name in [quality.MALFORMED, *(promise.name for promise in feed.promises)]
    ]
    parsed = rows - written.observed[quality.MALFORMED]
    missing = [name for name, count in context.nulls.items() if parsed and count == parsed]
    unexpected = _names(written.observed["unexpected"])
    if missing:
        context.note(f"no row has a value for {', '.join(missing)}")
    if unexpected:
        context.note(f"new columns upstream, kept in bronze only: {', '.join(unexpected)}")
    return [
        *figures,
        quality.share(quality.MISSING_COLUMNS, len(missing), columns, limits),
        quality.share(quality.UNEXPECTED_COLUMNS, len(unexpected), columns + len(unexpected), limits),
    ]


def _names(found: Sequence[Any] | None) -> list[str]:
    return sorted({name for entry in found or [] if entry[0] for name in str(entry[0]).split("\n")})

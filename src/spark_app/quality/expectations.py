"""Expectations about rows and columns as data: their conditions, and results that are compared with limits."""

import datetime
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType, StructType, TimestampType

from spark_app.quality.results import DAY_SECONDS, FRESHNESS, ExpectationResult, end_of

MALFORMED: Final = "malformed"
DUPLICATES: Final = "duplicates"
OUTLIERS: Final = "outliers"
MISSING_COLUMNS: Final = "columns.missing"
UNEXPECTED_COLUMNS: Final = "columns.unexpected"
_DIGITS: Final = 38
"""As many as a decimal of Spark can have: money is compared with 28 decimals before it is taken as one with 2."""
_LONG_EXPONENT: Final = r"[eE][+-]?\S{4,}"
"""An exponent of more than three digits."""
_STARTS_WITH_DAY: Final = r"\A\s*\d{4}-\d{1,2}-\d{1,2}"
"""Spark reads a time without a day as one of today, by the clock, and a year alone as its first day."""
OTHER_COLUMN_NAMES: Final = 20
"""How many names of unexpected columns are reported; a source with random keys must not fill the report."""


@dataclass(frozen=True)
class Expectation:
    """What every row of a source must meet; its condition is true for a row that does not, null or false otherwise.

    Attributes:
        name: `<column>.<rule>`, the entry in `violations` and the key of its limit in configuration.
        is_violated: Builds the condition over the typed columns, which needs a session; the name does not. The untyped
            text of a column is `text.<column>`.
        is_violated_in_table: The same over the columns of a table, which have no untyped text; None if it is the same.
        counted: Of what no single row shows, an aggregate over the rows of a table: how many violate it.
    """

    name: str
    is_violated: Callable[[], Column]
    is_violated_in_table: Callable[[], Column] | None = None
    counted: Callable[[], Column] | None = None

    @property
    def column(self) -> str:
        """The column that it is about."""
        return self.name.rpartition(".")[0]

    def violations(self) -> Column:
        """An aggregate over the rows of a table or a stream: how many violate it."""
        condition = self.is_violated_in_table or self.is_violated
        return (self.counted() if self.counted else F.count_if(condition())).alias(self.name)


def not_null(column: str) -> Expectation:
    """The column has a value, readable or not."""
    return Expectation(f"{column}.not_null", lambda: text(column).isNull(), lambda: F.col(column).isNull())


def readable(column: str) -> Expectation:
    """A value that is there can be read as the column's type (see `typed`)."""
    return Expectation(f"{column}.type", lambda: text(column).isNotNull() & F.col(column).isNull())


def allowed(column: str, values: Sequence[str]) -> Expectation:
    """The value is one of a set."""
    return Expectation(f"{column}.allowed", lambda: ~F.col(column).isin(*values))


def at_least(column: str, low: float | str | datetime.date) -> Expectation:
    """The value is not below a bound, which no cast rounds: digits in a text are an exact decimal."""
    bound = Decimal(low) if isinstance(low, str) else low
    return Expectation(f"{column}.range", lambda: F.col(column) < F.lit(bound))


def at_most(column: str, high: float | str | datetime.date) -> Expectation:
    """The value is not above a bound, which no cast rounds: digits in a text are an exact decimal."""
    bound = Decimal(high) if isinstance(high, str) else high
    return Expectation(f"{column}.max", lambda: F.col(column) > F.lit(bound))


def condition(column: str, sql: str, *, name: str = "condition") -> Expectation:
    """The row meets a condition in SQL over its columns; one for which it is null does.

    Args:
        column: The column that it is about.
        sql: The condition: `net <= amount`.
        name: What the expectation is called behind the column: the key of its limit is `amount.condition`.
    """
    return Expectation(f"{column}.{name}", lambda: ~F.expr(sql))


def matches(column: str, pattern: str) -> Expectation:
    """The whole value matches a regular expression, also what follows a line end."""
    return Expectation(f"{column}.pattern", lambda: ~F.col(column).rlike(rf"\A(?:{pattern})\z"))


def of_day(column: str) -> Expectation:
    """The instant lies on the day of the raw folder, which is the column `date`."""
    return Expectation(f"{column}.day", lambda: F.to_date(column) != F.col("date"))


def unique(column: str, *others: str) -> Expectation:
    """No two rows of a day of a table have the same values in the columns; each further one violates it."""

    def repeated() -> Column:
        return F.count(F.lit(1)) - F.count_distinct(F.struct(column, *others))

    name = f"{column}.unique{''.join(f'_with_{other}' for other in others)}"
    return Expectation(name, lambda: F.lit(False), counted=repeated)


def known(column: str, is_unknown: Callable[[], Column]) -> Expectation:
    """The value refers to a row that exists in another table."""
    return Expectation(f"{column}.known", is_unknown)


class Summary(Protocol):
    """What all valid rows of a day must meet together."""

    @property
    def name(self) -> str:
        """The key of its limit in configuration."""

    @property
    def column(self) -> str:
        """The column that it is about."""

    def measures(self) -> list[Column]:
        """Aggregates over the valid rows, each with a name of its own."""

    def condition(self, measures: Mapping[str, Any]) -> str | None:
        """From the measures, the SQL condition of the rows that violate it; None where it is not about rows."""

    def facts(self, measures: Mapping[str, Any]) -> dict[str, float]:
        """The measures that a report shows."""

    def result(
        self, measures: Mapping[str, Any], violations: int, total: int, limits: Mapping[str, float], day: datetime.date
    ) -> ExpectationResult:
        """How well it was kept, by so many of all rows that are published."""


@dataclass(frozen=True)
class Outliers:
    """How many rows are further than some standard deviations from the mean of all valid rows."""

    column: str
    sigmas: float

    @property
    def name(self) -> str:
        """The key of its limit."""
        return OUTLIERS

    def measures(self) -> list[Column]:
        """Mean and standard deviation."""
        number = F.col(self.column).cast("double")
        return [F.avg(number).alias("mean"), F.stddev_samp(number).alias("sigma")]

    def facts(self, measures: Mapping[str, Any]) -> dict[str, float]:
        """Mean and standard deviation, those that are known: one row has no deviation."""
        return {name: measures[name] for name in ("mean", "sigma") if measures.get(name) is not None}

    def condition(self, measures: Mapping[str, Any]) -> str:
        """The rows beyond the bound."""
        known = self.facts(measures)
        bound = self.sigmas * known.get("sigma", 0.0)
        return f"abs(double({self.column}) - {known.get('mean', 0.0)!r}D) > {bound!r}D"

    def result(
        self, measures: Mapping[str, Any], violations: int, total: int, limits: Mapping[str, float], day: datetime.date
    ) -> ExpectationResult:
        """The share of the published rows."""
        where = f"{self.condition(measures)} and version_rank = 1"
        return result(self.name, violations, total, limits, where=where)


@dataclass(frozen=True)
class Freshness:
    """Seconds from the newest valid row to the end of the day; the whole day if no row is valid."""

    column: str

    @property
    def name(self) -> str:
        """The key of its limit."""
        return FRESHNESS

    def measures(self) -> list[Column]:
        """The newest instant, in seconds."""
        return [F.max(self.column).cast("double").alias("newest")]

    def facts(self, measures: Mapping[str, Any]) -> dict[str, float]:
        """None: the result says it."""
        return {}

    def condition(self, measures: Mapping[str, Any]) -> None:
        """It is about all rows."""

    def result(
        self, measures: Mapping[str, Any], violations: int, total: int, limits: Mapping[str, float], day: datetime.date
    ) -> ExpectationResult:
        """The age of the newest row."""
        newest, where = measures.get("newest"), "size(violations) > 0"
        if newest is not None:
            where = f"size(violations) = 0 and unix_micros({self.column}) = {round(newest * 1_000_000)}"
        age = DAY_SECONDS if newest is None else end_of(day) - newest
        return ExpectationResult(self.name, age, limits[self.name], where=where)


Rule = Expectation | Summary
"""What each row must meet, or all rows of a day together."""


def outliers(column: str, *, sigmas: float) -> Outliers:
    """Few values are further than so many standard deviations from the mean of the day."""
    return Outliers(column, sigmas)


def fresh(column: str) -> Freshness:
    """The newest instant is not long before the end of the day."""
    return Freshness(column)


def text(column: str) -> Column:
    """A column as it was read, before it got its type."""
    return F.col(f"text.{column}")


def typed(schema: StructType) -> list[Column]:
    """The columns of a schema, cast from their text; a value that cannot be read is null."""
    return [_typed(text(field.name), field.dataType).alias(field.name) for field in schema.fields]


def readable_columns(schema: StructType) -> list[Expectation]:
    """One expectation for each column that is not text: its value can be read."""
    return [readable(field.name) for field in schema.fields if not isinstance(field.dataType, StringType)]


def _typed(value: Column, kind: DataType) -> Column:
    """Text cast to a type if no digit is lost and none is invented; null otherwise."""
    if isinstance(kind, StringType):
        return value
    if isinstance(kind, DecimalType):
        return F.when(value.rlike(_plain(kind)), value.try_cast(kind)).otherwise(_exact(value, kind))
    if isinstance(kind, TimestampType):
        return F.when(value.rlike(_STARTS_WITH_DAY), value.try_cast(kind))
    return value.try_cast(kind)


def _plain(kind: DecimalType) -> str:
    """The pattern of digits that all fit a decimal, so that one cast loses none: nearly every amount looks so."""
    whole, fraction = kind.precision - kind.scale, rf"(?:\.\d{{1,{kind.scale}}})?" if kind.scale else ""
    return rf"\A-?\d{{1,{whole}}}{fraction}\z"


def _exact(value: Column, kind: DecimalType) -> Column:
    """Text in any notation as a decimal, null if a digit were lost."""
    # A task fails on a text such as 1e-999999999, `try_cast` or not: Spark computes the power of ten.
    readable = F.when(~value.rlike(_LONG_EXPONENT), value)
    exact = readable.try_cast(DecimalType(_DIGITS, _DIGITS - kind.precision + kind.scale))
    return F.when(exact.try_cast(kind) == exact, exact.try_cast(kind))


def violations(expectations: Sequence[Expectation]) -> Column:
    """The names of all expectations that a row violates; a row that does not parse violates only `malformed`."""
    none = F.array().cast("array<string>")
    malformed = F.when(F.col("is_malformed"), F.array(F.lit(MALFORMED)))
    if not expectations:
        return malformed.otherwise(none)
    conditions = [expectation.is_violated() for expectation in expectations]
    names = [
        F.when(condition, F.lit(expectation.name))
        for condition, expectation in zip(conditions, expectations, strict=True)
    ]
    # Nearly every row violates nothing: only for the others is an array of names built and compacted.
    is_any = reduce(operator.or_, conditions)
    return malformed.when(is_any, F.array_compact(F.array(*names))).otherwise(none)


def result(
    expectation: str, violations: int, total: int, limits: Mapping[str, float], *, where: str | None = None
) -> ExpectationResult:
    """The result of an expectation about rows or columns: the share of them that violates it."""
    share = violations / total if total else 0.0
    return ExpectationResult(expectation, share, limits[expectation], violations, total, where)


def unexpected_columns() -> Column:
    """An aggregate: names of columns that are not in the schema, each as often as there are rows with it."""
    names = "substring(array_join(map_keys(extra), '\\n'), 1, 500)"
    return F.expr(f"approx_top_k({names}, {OTHER_COLUMN_NAMES}, 1000)")


def is_invalid() -> Column:
    """Whether a row violates any expectation."""
    return F.size("violations") > 0

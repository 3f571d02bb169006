"""Column promises as data: what each asks of a row, and the figures that say how well a day kept it."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StringType, StructType, TimestampType

from app.figures import Figure

MALFORMED: Final = "malformed"
DUPLICATES: Final = "duplicates"
OUTLIERS: Final = "outliers"
MISSING_COLUMNS: Final = "columns.missing"
UNEXPECTED_COLUMNS: Final = "columns.unexpected"
_DIGITS: Final = 38
"""As many as a decimal of Spark can have: money is compared with 28 decimals before it is taken as one with 2."""
_STARTS_WITH_DAY: Final = r"\A\s*\d{4}-\d{1,2}-\d{1,2}"
"""Spark reads a time without a day as one of today, by the clock, and a year alone as its first day."""
OTHER_COLUMN_NAMES: Final = 20
"""How many names of unexpected columns are reported; a feed with random keys must not grow a figure."""


@dataclass(frozen=True)
class Promise:
    """What every row of a source keeps; its condition is true for a row that does not, null or false otherwise.

    Attributes:
        name: `<column>.<rule>`, the reason in `problems` and the key of its limit in configuration.
        broken: Makes the condition over the typed columns, which takes Spark; the name does not. The untyped text of a
            column is `text.<column>`.
    """

    name: str
    broken: Callable[[], Column]


def not_null(column: str) -> Promise:
    """The column has a value, readable or not."""
    return Promise(f"{column}.not_null", lambda: text(column).isNull())


def readable(column: str) -> Promise:
    """A value that is there can be read as the column's type (see `typed`)."""
    return Promise(f"{column}.type", lambda: text(column).isNotNull() & F.col(column).isNull())


def allowed(column: str, values: Sequence[str]) -> Promise:
    """The value is one of a set."""
    return Promise(f"{column}.allowed", lambda: ~F.col(column).isin(*values))


def at_least(column: str, low: float | str) -> Promise:
    """The value is not below a bound."""
    return Promise(f"{column}.range", lambda: F.col(column) < F.lit(low).cast(DecimalType(12, 2)))


def matches(column: str, pattern: str) -> Promise:
    """The whole value matches a regular expression, also what follows a line end."""
    return Promise(f"{column}.pattern", lambda: ~F.col(column).rlike(rf"\A(?:{pattern})\z"))


def on_date(column: str, day: datetime.date) -> Promise:
    """The instant lies on the day of the raw folder."""
    return Promise(f"{column}.day", lambda: F.to_date(column) != F.lit(day))


def known(column: str, is_unknown: Callable[[], Column]) -> Promise:
    """The value refers to a row that exists in another table."""
    return Promise(f"{column}.known", is_unknown)


def text(column: str) -> Column:
    """A column as it was read, before it got its type."""
    return F.col(f"text.{column}")


def typed(schema: StructType) -> list[Column]:
    """The columns of a schema made from their text; what cannot be read is null."""
    return [_typed(text(field.name), field.dataType).alias(field.name) for field in schema.fields]


def readable_columns(schema: StructType) -> list[Promise]:
    """One promise for each column that is not text: its value can be read."""
    return [readable(field.name) for field in schema.fields if not isinstance(field.dataType, StringType)]


def _typed(value: Column, kind: DataType) -> Column:
    """Text as a type, where nothing is lost and nothing made up; null otherwise."""
    if isinstance(kind, StringType):
        return value
    if isinstance(kind, DecimalType):
        exact = value.try_cast(DecimalType(_DIGITS, _DIGITS - kind.precision + kind.scale))
        return F.when(exact.try_cast(kind) == exact, exact.try_cast(kind))
    if isinstance(kind, TimestampType):
        return F.when(value.rlike(_STARTS_WITH_DAY), value.try_cast(kind))
    return value.try_cast(kind)


def problems(promises: Sequence[Promise]) -> Column:
    """The names of all promises that a row breaks; a row that does not parse breaks only `malformed`."""
    names = [F.when(promise.broken(), F.lit(promise.name)) for promise in promises]
    broken = F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")
    return F.when(F.col("is_malformed"), F.array(F.lit(MALFORMED))).otherwise(broken)


def share(promise: str, broken: int, total: int, limits: Mapping[str, float], *, where: str | None = None) -> Figure:
    """The figure of a promise about rows or columns: which part of them breaks it."""
    return Figure(promise, broken / total if total else 0.0, limits[promise], broken, total, where)


def row_counts() -> list[Column]:
    """Aggregates for `observe`: rows, and rows with problems; a run cannot be reconciled without them."""
    return [F.count(F.lit(1)).alias("rows"), F.count_if(is_invalid()).alias("quarantined")]


def reason_counts(promises: Sequence[Promise]) -> list[Column]:
    """Aggregates for `observe`: rows per broken promise."""
    reasons = [MALFORMED, *(promise.name for promise in promises)]
    return [F.count_if(F.array_contains("problems", reason)).alias(reason) for reason in reasons]


def unexpected_columns() -> list[Column]:
    """Aggregates for `observe`: names of columns that no schema knows, each as often as there are rows with it."""
    names = "CASE WHEN extra IS NOT NULL THEN substring(array_join(map_keys(extra), '\\n'), 1, 500) END"
    return [F.expr(f"approx_top_k({names}, {OTHER_COLUMN_NAMES}, 1000)").alias("unexpected")]


def is_invalid() -> Column:
    """Whether a judged row breaks any promise."""
    return F.size("problems") > 0

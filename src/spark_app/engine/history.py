"""Histories: tables whose rows are true for a time. Which days a change of such a table is about."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, StructField, StructType, TimestampType

from spark_app.warehouse.periods import Effect

USUAL: Final = ("valid_from", "valid_to")
CURRENT: Final = "is_current"
"""A column that says whether a row is true until further notice, which its end says already."""
MAX_EFFECTS: Final = 1000
"""More different times of one commit are taken for one, from the first to the last."""


class Validity(NamedTuple):
    """The columns of a history with the instant or day from which, and until which, a row is true; null is no end."""

    since: str
    until: str


def versioned(schema: StructType, since: str) -> StructType:
    """The schema of a history whose rows have the columns of a schema and are true from the time in one of these on."""
    kind = schema[since].dataType
    return StructType(
        [
            *schema.fields,
            StructField(USUAL[0], kind, metadata={"comment": "from when on the row is true"}),
            StructField(USUAL[1], kind, metadata={"comment": "until when the row is true; null if it is true now"}),
            StructField(CURRENT, BooleanType(), metadata={"comment": "whether the row is true now"}),
        ]
    )


def usual(schema: StructType) -> Validity | None:
    """The columns of the usual names, where a table has both with a type of time."""
    times = [field.name for field in schema if isinstance(field.dataType, DateType | TimestampType)]
    return Validity(*USUAL) if {*USUAL} <= {*times} else None


def effects(old: DataFrame, new: DataFrame, key: Sequence[str], validity: Validity, *, content: str) -> list[Effect]:
    """The days for which other rows are true in one version of a history than in another.

    Args:
        old: One version.
        new: The other one, with the same columns.
        key: The columns that identify a row.
        validity: The columns with the time in which a row is true.
        content: Names the change.
    """
    days = _changed_times(old, new, key, validity).select(
        F.to_date("time.since").alias("first"), F.to_date(F.expr("time.until - interval 1 microsecond")).alias("last")
    )
    found = days.distinct().limit(MAX_EFFECTS + 1).collect()
    spans = [(str(row.first), str(row.last)) for row in found]
    if len(spans) > MAX_EFFECTS:
        [row] = days.agg(F.min("first"), F.max("last")).collect()
        spans = [(str(row[0]), str(row[1]))]
    return [Effect(first, "" if last >= _LAST_DAY else last, content) for first, last in _united(spans)]


def _changed_times(old: DataFrame, new: DataFrame, key: Sequence[str], validity: Validity) -> DataFrame:
    """The times, `time.since` and `time.until`, for which rows of one version and of another differ.

    Where only the time of a row is another one, it is what one of both times has and the other has not.
    """
    before, after = (rows.select(F.struct(*new.columns).alias("row"), *key) for rows in (old, new))
    same_key = [F.col(f"before.{name}").eqNullSafe(F.col(f"after.{name}")) for name in key]
    both = before.alias("before").join(after.alias("after"), same_key, "full_outer")
    one, other = F.col("before.row"), F.col("after.row")
    since, until = zip(*(_time_of(row, validity) for row in (one, other)), strict=True)
    whole = F.array(_time(F.least(*since), F.greatest(*until)))
    ends = F.array(_time(F.least(*since), F.greatest(*since)), _time(F.least(*until), F.greatest(*until)))
    is_moved = one.isNotNull() & other.isNotNull()
    for name in new.columns:
        if name not in {*validity, CURRENT}:
            is_moved = is_moved & one.getField(name).eqNullSafe(other.getField(name))
    changed = both.where(~one.eqNullSafe(other))
    return changed.select(F.explode(F.when(is_moved, ends).otherwise(whole)).alias("time")).where(
        "time.since < time.until"
    )


def _time_of(row: Column, validity: Validity) -> tuple[Column, Column]:
    """From when and until when a row is true; null where there is no row."""
    until = F.coalesce(row.getField(validity.until).cast("timestamp"), F.to_timestamp(F.lit("9999-12-31")))
    return row.getField(validity.since).cast("timestamp"), F.when(row.isNotNull(), until)


_LAST_DAY: Final = "9999-12-30"
"""Of a row that is true without end."""


def _time(since: Column, until: Column) -> Column:
    return F.struct(since.alias("since"), until.alias("until"))


def _united(spans: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Spans of days that overlap as one."""
    united = list[tuple[str, str]]()
    for first, last in sorted(spans):
        if united and first <= united[-1][1]:
            united[-1] = (united[-1][0], max(last, united[-1][1]))
        else:
            united.append((first, last))
    return united

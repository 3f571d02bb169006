"""Tables of a day, declared as functions: `from spark_app import daily`.

::

    @daily.source(ORDERS, expect=[expect.not_null("order_id"), expect.at_least("amount", "0.01")])
    def bronze_orders(rows: DataFrame) -> DataFrame: ...

    @daily.table(schema="day date, country string, orders bigint", partition_by="day")
    def daily_orders(bronze_orders: DataFrame) -> DataFrame: ...

    @daily.state(schema="customer_id string, orders bigint", key="customer_id")
    def customers(customers: DataFrame, bronze_orders: DataFrame) -> DataFrame: ...

The function's name is the table's. A parameter is the name of a table that it reads: of one that is partitioned by a
day it gets the rows of the day of the run, of another one all rows, of the table of a source the valid rows, one
version of each key. A state also gets its own rows of before, by its own name. What a module declares is one
pipeline: it is written in the order of what reads what, each table in one commit, and none before the expectations of
all rows that it was made of are met.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from pyspark.sql.types import DateType, StructType, TimestampType

from spark_app.declarations.declaration import Declared, Rules, Source, Transform, declared
from spark_app.engine.code_location import CodeLocation, columns_of, nearest, stored
from spark_app.engine.history import CURRENT, USUAL
from spark_app.engine.project_metric import Metric

KINDS: Final = ("latest", "scd2")
Decorator = Callable[[Transform], Declared]


def source(source: Source, *, adds: str | StructType = "", expect: Rules = ()) -> Decorator:
    """Declares the table of the raw rows of a source, valid or not, with the expectations that each violates.

    The function gets the typed rows, and may join others.

    Args:
        source: The source.
        adds: The columns that the function adds to those of the source, as Spark writes them.
        expect: What every row must meet, and all rows together; or a function that makes it of the settings. The
            conditions may use further columns that the function returns.
    """
    location = CodeLocation.of_caller()
    columns = [*source.schema.fields, *(stored(adds, location).fields if adds else [])]

    def declare(function: Transform) -> Declared:
        schema = StructType(columns)
        return declared(Declared(function, schema, ("date",), expect, source, (), CodeLocation.of(function)))

    return declare


def table(
    *,
    schema: str | StructType,
    partition_by: str | Sequence[str],
    expect: Rules = (),
    key: str | Sequence[str] = (),
    metrics: Sequence[Metric] = (),
) -> Decorator:
    """Declares a table of a day.

    Args:
        schema: The columns that the function returns, as Spark writes them.
        partition_by: The column with the day, and further ones that the files are partitioned by.
        expect: What every row that it returns must meet.
        key: The column, or columns, that identify a row, where the table has a row for each of the source: then the
            rows of the source, of the table, of the quarantine and the repetitions must add up.
        metrics: What is measured of the rows of the day when they are published.

    Raises:
        DeclarationError: The schema cannot be read, or does not have a column.
    """
    location = CodeLocation.of_caller()
    columns, partitions, keys = stored(schema, location), columns_of(partition_by), columns_of(key)
    location.require((*partitions, *keys), columns.names)
    for metric in metrics:
        metric.require_columns(columns)
    if columns[partitions[0]].dataType != DateType():
        raise location.error(f"{partitions[0]} must be a date: a table of a day is partitioned by days first")

    def declare(function: Transform) -> Declared:
        place = CodeLocation.of(function)
        return declared(Declared(function, columns, partitions, expect, None, keys, place, tuple(metrics)))

    return declare


def state(
    *,
    schema: str | StructType,
    key: str | Sequence[str],
    valid: tuple[str, str] | None = None,
    newest: str | Sequence[str] = (),
    deleted: str = "",
    kind: Literal["latest", "scd2"] = "latest",
) -> Decorator:
    """Declares a table that is kept from day to day: what the function returns replaces the rows of the same key.

    The parameter with the function's own name gets the rows as of the day before, which are none at first; the others
    are tables, as of `table`. Rows are judged where they come from: a state has no expectations of its own. Whatever
    days run in which order, and again, a state ends as if each had run once, in order.

    Tables read a state as of their day. A history, whose rows say from when and until when they are true, they read
    as it is now, since its rows of later days may say more about their day; `spark-app stale` lists the days for which
    it has changed since.

    Args:
        schema: The columns that the function returns, as Spark writes them.
        key: The column, or columns, that identify a row. Where these are those of the source whose table it reads, it
            must then have the key of each row of the day: else rows were lost, and the run fails.
        valid: Of a history, the columns with the instant or day from which, and until which, a row is true; by default
            `valid_from` and `valid_to`, where the schema has both.
        newest: The column, or columns, by whose largest value the newest of the rows of a key is known: older ones
            change nothing, on whatever day they come. Without it, the rows of a later day are newer.
        deleted: The SQL condition that a row that the function returns deletes that of its key, such as `op = 'D'`; the
            column need not be one of the schema.
        kind: `latest` keeps one row of a key; `scd2` keeps each change as a version of its row, true from its time
            (`newest`, an instant or a day) until that of the next one: the table has the columns `valid_from`,
            `valid_to` (null for what is true now) and `is_current` beside those of the schema.

    Raises:
        DeclarationError: The schema cannot be read, or does not have a column.
    """
    location = CodeLocation.of_caller()
    columns, keys = stored(schema, location), columns_of(key)
    location.require((*keys, *(valid or ()), *columns_of(newest)), columns.names)
    by = columns_of(newest)
    if not keys:
        raise location.error(f"the key is empty: name the columns that identify a row, of {', '.join(columns.names)}")
    if kind not in KINDS:
        raise location.error(f"a state of kind {kind!r} is not known: {nearest(str(kind), KINDS)}")
    if kind == "scd2":
        _require_history(location, columns, by, valid)

    def declare(function: Transform) -> Declared:
        place, is_history = CodeLocation.of(function), kind == "scd2"
        feed = Declared(function, columns, (), (), None, keys, place, (), valid, by, deleted, is_history)
        return declared(feed)

    return declare


def _require_history(
    location: CodeLocation, columns: StructType, newest: Sequence[str], valid: tuple[str, str] | None
) -> None:
    """Checks what is said of a state of versions.

    Raises:
        DeclarationError: No column says when a version begins, or the schema has columns that the state adds.
    """
    if len(newest) != 1 or not isinstance(columns[newest[0]].dataType, DateType | TimestampType):
        raise location.error('kind="scd2" needs newest: the column with the instant or day from which a row is true')
    if own := [name for name in (*USUAL, CURRENT) if name in columns.names]:
        raise location.error(f'kind="scd2" adds {", ".join(own)}: leave it out of the schema')
    if valid is not None:
        raise location.error('kind="scd2" has valid_from and valid_to: leave out valid')

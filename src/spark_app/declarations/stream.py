"""Streaming queries, declared as functions: `from spark_app import Topic, stream`.

::

    PAGE_VIEWS = Topic("page_views", schema="view_id string, page string, timestamp timestamp", key="view_id")

    @stream.table(schema="started_at timestamp, page string, views bigint", watermark="30 minutes")
    def views_per_page(page_views: DataFrame, *, window: stream.Interval = "5 minutes") -> DataFrame: ...

The function's name is that of the table or topic that its rows go to. A parameter is the name of a topic or table that
it reads: of a topic it gets the well-formed values, of a table the rows of the time of each micro-batch. A parameter
after `*` is what an operator tunes, in `config/streaming/<module>.yml`, by the same name. A module declares one query.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql.types import StructType

from spark_app.declarations.dead_letters import DeadLetters
from spark_app.declarations.declaration import Transform
from spark_app.declarations.query import DeclaredQuery, Kind
from spark_app.engine.code_location import CodeLocation, columns_of, parsed, stored
from spark_app.engine.stream_config import milliseconds as milliseconds  # noqa: PLC0414
from spark_app.engine.topics import Topic
from spark_app.quality.expectations import Expectation
from spark_app.settings import Interval as Interval  # noqa: PLC0414 - what functions declare their options with

Decorator = Callable[[Transform], DeclaredQuery]
WATERMARK: Final = "30 minutes"


def table(
    *,
    schema: str | StructType,
    partition_by: str | Sequence[str] = (),
    expect: Sequence[Expectation] = (),
    watermark: Interval = WATERMARK,
    once: bool = True,
    starts_first: bool = False,
) -> Decorator:
    """Declares a table that a query appends rows to, each exactly once.

    A column `extra map<string,string>` that the function hands on has the fields that the topic's schema does not know.

    Args:
        schema: The columns that the function returns, as Spark writes them.
        partition_by: The columns that the files are partitioned by.
        expect: What every row that it returns should meet; each micro-batch is judged, and its rows are kept.
        watermark: How much later than the newest value of its topic one may come, where the configuration says nothing.
        once: Whether repetitions of a value, by the topic's key, are left out for as long as the watermark.
        starts_first: Whether it starts before the other queries, since people look at its rows first.

    Raises:
        DeclarationError: The schema cannot be read, or does not have a column.
    """
    location = CodeLocation.of_caller()
    columns = stored(schema, location)
    partitions = columns_of(partition_by)
    location.require([*partitions, *(rule.column for rule in expect)], columns.names)
    for rule in expect:
        if rule.counted:
            raise location.error(f"{rule.name}: each row of a stream is judged alone; expect it of a @daily.table")
    declared = {"partitions": partitions, "expectations": tuple(expect), "once": once, "starts_first": starts_first}
    return _declare("table", columns, watermark=watermark, **declared)


def topic(*, schema: str | StructType, key: str, watermark: Interval | None = None) -> Decorator:
    """Declares a topic that a query sends rows to, each at least once, as JSON objects.

    A decimal is written as text, which keeps its digits, an instant in UTC. Headers of a value that was read are in the
    column `headers`; where the function returns them, they are sent.

    Args:
        schema: The columns of a value, as Spark writes them.
        key: The column whose text is the key of the record.
        watermark: As for a table: repetitions are left out, and functions may aggregate. Without one the query has no
            state, and an operator may have it work in real time.

    Raises:
        DeclarationError: The schema cannot be read, or does not have the key.
    """
    location = CodeLocation.of_caller()
    columns = parsed(schema, location)
    location.require([key], columns.names)
    return _declare("topic", columns, key=(key,), watermark=watermark, once=watermark is not None)


def state(*, schema: str | StructType, key: str | Sequence[str], watermark: Interval = WATERMARK) -> Decorator:
    """Declares a table that each micro-batch updates once, however often it is repeated.

    A parameter with the table's own name gets its rows; the topic's gets the new values of the micro-batch, each once.
    The function returns the rows to replace or to add, by their key.

    Args:
        schema: The columns that the function returns, as Spark writes them.
        key: The columns that identify a row.
        watermark: As for a table.

    Raises:
        DeclarationError: The schema cannot be read, or does not have a column.
    """
    location = CodeLocation.of_caller()
    columns = stored(schema, location)
    keys = columns_of(key)
    location.require(keys, columns.names)
    return _declare("state", columns, key=keys, watermark=watermark, once=True)


def dead_letters(topics: Sequence[Topic]) -> DeadLetters:
    """The query that keeps what no query can read: records of topics that do not parse, with the reason of each.

    They are appended to the table `dead_letters`, and sent to the topic of that name.
    """
    return DeadLetters(topics, CodeLocation.of_caller())


def _declare(kind: Kind, schema: StructType, **given: Any) -> Decorator:
    def declare(function: Transform) -> DeclaredQuery:
        return DeclaredQuery(function, kind, schema, CodeLocation.of(function), **given)

    return declare

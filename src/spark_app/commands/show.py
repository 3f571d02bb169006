"""`spark-app show TABLE`: rows of a table, now or at an earlier version."""

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_app.commands.terminal import Terminal

CLOCK: Final = r"[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?"
INSTANT_FORM: Final = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}({CLOCK})?", re.ASCII)
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# Spark's message without the error class before it and the SQL state, query and stack trace after it.
REFUSAL: Final = re.compile(r"\s*(?:\[[A-Z_.]+\] )?(.*?)\s*(?:SQLSTATE: |\n\n|\n==|\Z)", re.DOTALL)
# Spark's error for a missing file that a version of a table still references.
GONE: Final = re.compile(r"FileNotFoundException|FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND")
DAY_COLUMNS: Final = ("processed_date", "date")
# One more is read than is shown, and Spark counts rows up to 2**31 - 1.
MAX_ROWS: Final = 2**31 - 2


class FirstRows(NamedTuple):
    """The first rows of a table, and whether there are more."""

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool


def instant(text: str) -> datetime.datetime:
    """Parses a date (its first instant) or an ISO 8601 time, with or without a zone, as an instant in UTC.

    Raises:
        typer.BadParameter: The text is neither.
    """
    try:
        if INSTANT_FORM.fullmatch(text):
            named = datetime.datetime.fromisoformat(text)
            return named.astimezone(datetime.UTC) if named.tzinfo else named.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text} does not exist") from error
    raise typer.BadParameter(f"{text!r} is neither {options.DAY} nor {options.DAY}Thh:mm:ss")


AsOf = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--as-of",
        parser=instant,
        metavar="TIME",
        help="At this time (UTC): 2024-01-31 or 2024-01-31T08:00:00.",
    ),
]
Day = Annotated[
    datetime.date | None,
    typer.Option("--date", parser=options.day, metavar=options.DAY, help="Only rows of this day."),
]


def show(
    *,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table that a pipeline writes, or quarantine.")],
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=0, help="This version; see `spark-app tables`."),
    ] = None,
    as_of: AsOf = None,
    date: Day = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Only rows that meet this SQL condition.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=MAX_ROWS, help="Maximum number of rows.")
    ] = 20,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show rows of a table, now or at an earlier version or time."""
    if version is not None and as_of is not None:
        raise UsageError("give either --version or --as-of, not both")
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.application import open_warehouse
    from spark_app.execution.pipelines import require_table
    from spark_app.settings import load_settings

    require_table(table)
    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("starting Spark")
    with terminal, open_warehouse(settings, listener=terminal) as warehouse:
        option = _version_option(version, as_of)
        with as_usage_error(option):
            frame = warehouse.open(table, version=version, as_of=as_of)
        result = first_rows(frame, table=table, version_option=option, date=date, where=where, limit=limit)
    if json:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        terminal.answer(table=table, rows=rows, has_more=result.has_more)
    else:
        listing(terminal, result)


def first_rows(
    frame: "DataFrame",
    *,
    table: str,
    version_option: str | None = None,
    date: datetime.date | None = None,
    where: str | None = None,
    limit: int = 20,
) -> FirstRows:
    """The first rows for which a condition holds.

    Raises:
        UsageError: Spark rejects the condition, the table is not partitioned by day, or its files at this version were
            vacuumed.
    """
    frame.createOrReplaceTempView(table)  # so that a condition may have subqueries over the table
    with as_usage_error(f"--where {where!r}" if where else None), explain_vacuumed(table, version_option):
        chosen = _chosen(frame, table=table, date=date, where=where)
        collected = chosen.select(*_readable(chosen)).limit(limit + 1).collect()
    fields = list(frame.schema.fields)
    rows = [[_content(field.dataType, value) for field, value in zip(fields, row, strict=True)] for row in collected]
    return FirstRows(frame.columns, rows[:limit], len(rows) > limit)


@contextmanager
def as_usage_error(option: str | None) -> Iterator[None]:
    """Turns an error of Spark into a usage error of an option, if that was given.

    Raises:
        UsageError: Spark rejected the value of the option.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if option is None:
            raise
        message = REFUSAL.match(str(error))
        raise UsageError(f"{option}: {' '.join(message[1].split() if message else [])}") from error


@contextmanager
def explain_vacuumed(table: str, option: str | None) -> Iterator[None]:
    """Turns Spark's error about missing files of an old version into a usage error.

    Raises:
        UsageError: A file of the version was deleted.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from spark_app.warehouse.tables import MIN_RETAIN_DAYS

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if option is None or not GONE.search(str(error)):
            raise
        raise UsageError(
            f"{option}: this version of {table} was vacuumed; versions from the {MIN_RETAIN_DAYS} days before the "
            "vacuum, and later ones, remain readable"
        ) from error


def listing(terminal: "Terminal", result: FirstRows) -> None:
    """Prints rows and whether the table has more."""
    headers = [cells.literal(column) for column in result.columns]
    numbers = {name for name, *column in zip(headers, *result.rows, strict=True) if all(map(_is_number, column))}
    terminal.table(headers, [[cells.value(content) for content in row] for row in result.rows], right=numbers)
    count = formatting.quantity(len(result.rows), "row")
    terminal.note(f"{count}; --limit shows more" if result.has_more else count)


def _version_option(version: int | None, as_of: datetime.datetime | None) -> str | None:
    if as_of is not None:
        return f"--as-of {cells.iso(as_of)}"
    return None if version is None else f"--version {version}"


def _chosen(frame: "DataFrame", *, table: str, date: datetime.date | None, where: str | None) -> "DataFrame":
    if date is not None:
        column = next((name for name in DAY_COLUMNS if name in frame.columns), None)
        if column is None:
            raise UsageError(f"{table} is not partitioned by day: omit --date")
        frame = frame.where(frame[column] == date)
    return frame if where is None else frame.where(where)


def _readable(frame: "DataFrame") -> list[Any]:
    """The columns, with dates and instants in a form that Python can hold for any year and time zone."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DateType, TimestampType

    columns = []
    for field in frame.schema.fields:
        column = frame[f"`{field.name}`"]
        match field.dataType:
            case TimestampType():
                column = F.unix_micros(column)
            case DateType():
                column = column.cast("string")
        columns.append(column.alias(field.name))
    return columns


def _content(kind: Any, value: Any) -> Any:
    """A value as Python holds it: instants in UTC, structs as mappings."""
    from pyspark.sql import Row
    from pyspark.sql.types import TimestampType

    if isinstance(value, Row):
        return value.asDict(recursive=True)
    if value is None or not isinstance(kind, TimestampType):
        return value
    try:
        return EPOCH + datetime.timedelta(microseconds=value)
    except OverflowError:
        return f"{value} microseconds after 1970"


def _is_number(content: object) -> bool:
    return content is None or (hasattr(content, "__round__") and not isinstance(content, bool))

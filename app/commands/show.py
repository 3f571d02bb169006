"""`spark-app show TABLE`: rows of a table as it is, or as it was."""

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from app import amounts
from app.commands import cells, options
from app.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from app.commands.terminal import Terminal

CLOCK: Final = r"[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?"
INSTANT_FORM: Final = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}({CLOCK})?", re.ASCII)
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# What Spark says, without its name for the error and what follows: a state, the query, the stack.
REFUSAL: Final = re.compile(r"\s*(?:\[[A-Z_.]+\] )?(.*?)\s*(?:SQLSTATE: |\n\n|\n==|\Z)", re.DOTALL)
# What Spark says of a file that a version of a table still names, and that is no longer there.
GONE: Final = re.compile(r"FileNotFoundException|FILE_NOT_EXIST|DELTA_FILE_NOT_FOUND")
DAY_COLUMNS: Final = ("processed_date", "date")
# One more is read than is shown, and Spark counts rows up to 2**31 - 1.
MOST_ROWS: Final = 2**31 - 2
TABLES: Final = ("bronze", "bronze_customers", "customers", "transactions", "daily_sales", "quarantine")


class Rows(NamedTuple):
    """The first rows of a table, and whether there are more."""

    columns: list[str]
    rows: list[list[Any]]
    has_more: bool


def known(table: str) -> str:
    """The name of a table that there is.

    Raises:
        typer.BadParameter: There is none of this name.
    """
    if table in TABLES:
        return table
    raise typer.BadParameter(f"there is no table {table!r}; there are {', '.join(TABLES)}")


def instant(text: str) -> datetime.datetime:
    """The instant in UTC that a text names: a day (its first moment) or a time of ISO 8601, with or without a zone.

    Raises:
        typer.BadParameter: It names none.
    """
    try:
        if INSTANT_FORM.fullmatch(text):
            named = datetime.datetime.fromisoformat(text)
            return named.astimezone(datetime.UTC) if named.tzinfo else named.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"there is no instant {text}") from error
    raise typer.BadParameter(f"{text!r} is neither {options.DAY} nor {options.DAY}Thh:mm:ss")


AsOf = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--as-of", parser=instant, metavar="TIME", help="As it was then (UTC): 2024-01-31 or 2024-01-31T08:00:00."
    ),
]
Day = Annotated[
    datetime.date | None,
    typer.Option("--date", parser=options.day, metavar=options.DAY, help="Only rows of this day."),
]


def show(
    *,
    table: Annotated[str, typer.Argument(parser=known, metavar="TABLE", help=f"One of {', '.join(TABLES)}.")],
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=0, help="As it was at this version; see spark-app tables."),
    ] = None,
    as_of: AsOf = None,
    date: Day = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Only rows that meet this condition.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=MOST_ROWS, help="At most this many rows.")
    ] = 20,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Show rows of a table, as it is or as it was at an earlier version or time."""
    if version is not None and as_of is not None:
        raise UsageError("give either --version or --as-of, not both")
    # Spark is imported only now: --help and a wrong argument answer at once.
    from app import runner
    from app import tables as delta
    from app.commands.terminal import Terminal
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("asking Spark")
    with terminal, runner.spark(settings, watcher=terminal) as spark:
        moment = _moment(version, as_of)
        with blamed_on(moment):
            frame = delta.open_table(spark, settings, table, version=version, as_of=as_of)
        found = first_rows(frame, table=table, moment=moment, date=date, where=where, limit=limit)
    if json:
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        terminal.answer(table=table, rows=rows, has_more=found.has_more)
    else:
        listing(terminal, found)


def first_rows(
    frame: "DataFrame",
    *,
    table: str,
    moment: str | None = None,
    date: datetime.date | None = None,
    where: str | None = None,
    limit: int = 20,
) -> Rows:
    """The first rows for which a condition holds.

    Raises:
        UsageError: The condition is none that this table can answer, the table has no days, or what it held at that
            moment is deleted.
    """
    frame.createOrReplaceTempView(table)  # a condition may ask for other rows of the table
    with blamed_on(f"--where {where!r}" if where else None), kept(table, moment):
        chosen = _chosen(frame, table=table, date=date, where=where)
        collected = chosen.select(*_readable(chosen)).limit(limit + 1).collect()
    fields = list(frame.schema.fields)
    rows = [[_content(field.dataType, value) for field, value in zip(fields, row, strict=True)] for row in collected]
    return Rows(frame.columns, rows[:limit], len(rows) > limit)


@contextmanager
def blamed_on(option: str | None) -> Iterator[None]:
    """Turns a refusal by Spark into wrong usage of an option, if that was given.

    Raises:
        UsageError: Spark refused.
    """
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if option is None:
            raise
        told = REFUSAL.match(str(error))
        raise UsageError(f"{option}: {' '.join(told[1].split() if told else [])}") from error


@contextmanager
def kept(table: str, moment: str | None) -> Iterator[None]:
    """Says of an old version whose files are gone that they are, and what is still there.

    Raises:
        UsageError: A file of the version is gone.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from app.tables import MIN_RETAIN_DAYS

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if moment is None or not GONE.search(str(error)):
            raise
        raise UsageError(
            f"{moment}: files of {table} as it was then are deleted, by --vacuum; what was the newest version within "
            f"{MIN_RETAIN_DAYS} days before that, or has been since, can be read"
        ) from error


def listing(terminal: "Terminal", found: Rows) -> None:
    """Prints rows, and whether there are more."""
    headers = [cells.literal(column) for column in found.columns]
    numbers = {name for name, *column in zip(headers, *found.rows, strict=True) if all(map(_is_number, column))}
    terminal.table(headers, [[cells.value(content) for content in row] for row in found.rows], right=numbers)
    shown = len(found.rows)
    count = f"{amounts.count(shown)} row{'' if shown == 1 else 's'}"
    terminal.note(f"{count}; there are more, see --limit" if found.has_more else count)


def _moment(version: int | None, as_of: datetime.datetime | None) -> str | None:
    if as_of is not None:
        return f"--as-of {cells.iso(as_of)}"
    return None if version is None else f"--version {version}"


def _chosen(frame: "DataFrame", *, table: str, date: datetime.date | None, where: str | None) -> "DataFrame":
    if date is not None:
        column = next((name for name in DAY_COLUMNS if name in frame.columns), None)
        if column is None:
            raise UsageError(f"{table} is not kept by day: leave --date out")
        frame = frame.where(frame[column] == date)
    return frame if where is None else frame.where(where)


def _readable(frame: "DataFrame") -> list[Any]:
    """The columns, with days and instants in a form that survives any time zone and any year."""
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
    """A value as Python holds it: instants with their zone, structures as mappings."""
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

"""What several verbs ask alike: days, the configuration folder, JSON, tracebacks."""

import datetime
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from app.errors import UsageError

DAY_FORM: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
DAY: Final = "YYYY-MM-DD"


def day(text: str) -> datetime.date:
    """The day that a text of the form YYYY-MM-DD names.

    Raises:
        typer.BadParameter: It has another form, or there is no such day.
    """
    try:
        if DAY_FORM.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"there is no day {text}") from error
    raise typer.BadParameter(f"{text!r} is not a day of the form {DAY}")


Date = Annotated[datetime.date | None, typer.Option("--date", parser=day, metavar=DAY, help="The day.")]
From = Annotated[datetime.date | None, typer.Option("--from", parser=day, metavar=DAY, help="First day of a range.")]
To = Annotated[
    datetime.date | None,
    typer.Option("--to", parser=day, metavar=DAY, help="Last day of a range, included."),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document, for scripts.")]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="DIR", help="Configuration folder to use instead of config/."),
]
Debug = Annotated[bool, typer.Option("--debug", metavar="", help="Show the traceback of an error.")]


def days(date: datetime.date | None, first: datetime.date | None, last: datetime.date | None) -> list[datetime.date]:
    """The days asked for, in order: one, or a range with both ends.

    Raises:
        UsageError: No day, half a range, both a day and a range, or a range that ends before it starts.
    """
    if date and (first or last):
        raise UsageError("give either --date, or --from and --to, not both")
    if date:
        return [date]
    if first is None and last is None:
        raise UsageError(f"which day? give --date {DAY}, or --from {DAY} --to {DAY}")
    if first is None or last is None:
        raise UsageError("--from and --to go together: give both ends of the range")
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}")
    return [first + datetime.timedelta(days=offset) for offset in range((last - first).days + 1)]

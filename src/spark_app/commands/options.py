"""What several verbs ask alike: days, the configuration folder, JSON, tracebacks."""

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.eventlog.replay.what_if import Change
    from spark_app.report.results.fail_on import Condition

DAY_FORM: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
DAY: Final = "YYYY-MM-DD"
DAYS_AGO: Final = re.compile(r"(\d{1,4})d", re.ASCII)
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def day(text: str) -> datetime.date:
    """The day that a text of the form YYYY-MM-DD names, or `3d`: so many days before today, in UTC.

    Raises:
        typer.BadParameter: It has another form, or there is no such day.
    """
    if ago := DAYS_AGO.fullmatch(text):
        return datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=int(ago[1]))
    try:
        if DAY_FORM.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text} is not a valid date") from error
    raise typer.BadParameter(f"{text!r} is not a date of the form {DAY}, nor days before today such as 1d")


def _known_conditions() -> list[str]:
    """What a shell may complete after `--fail-on`."""
    from spark_app.report.results import fail_on

    limits = [f"more:{figure}:" for figure in fail_on.FIGURES] + ["fewer:rows_written:1"]
    return [fail_on.WARNING, *fail_on.SUBJECTS, "slower:20%", *limits, *sorted(fail_on.RULES)]


Date = Annotated[
    datetime.date | None,
    typer.Option("--date", parser=day, metavar=DAY, help="The day; 1d is that before today, in UTC."),
]
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
WhatIf = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="CHANGE",
        help="Say how long it would have taken with cores=8, executors=4, memory=8g, partitions=400 or without=skew. "
        "Repeatable.",
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="End with exit code 5 if it holds: warning, a finding, slower:20%, more:tasks:50000. Repeatable.",
        autocompletion=_known_conditions,
    ),
]
SummaryMd = Annotated[
    Path | None,
    typer.Option("--summary-md", metavar="FILE", help="Append a summary in Markdown, for the summary page of a CI."),
]
Open = Annotated[bool, typer.Option("--open", metavar="", help="Open the report in the browser.")]
Port = Annotated[
    int,
    typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port of the live page on 127.0.0.1; 0 takes any."),
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
        raise UsageError(f"missing --date {DAY}, or --from {DAY} and --to {DAY}")
    if first is None or last is None:
        raise UsageError("--from and --to require each other")
    if first > last:
        raise UsageError(f"--from {first} is after --to {last}")
    return [first + datetime.timedelta(days=offset) for offset in range((last - first).days + 1)]


def span(text: str) -> float:
    """Parses a length of time, `90s`, `5m`, `2h` or `1d`, in seconds.

    Raises:
        typer.BadParameter: The text is none.
    """
    match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no length of time such as 90s, 5m, 2h or 1d")
    return float(int(match[1]) * UNITS[match[2]])


def changes(given: list[str] | None) -> "list[Change] | None":
    """The changes of `--what-if`; None without any.

    Raises:
        UsageError: One is none.
    """
    if not given:
        return None
    from spark_app.eventlog.replay import what_if

    try:
        return [what_if.parsed(text) for text in given]
    except ValueError as error:
        raise UsageError(f"--what-if {error}") from error


def conditions(given: list[str] | None, *, only_slower: bool = False) -> "list[Condition]":
    """The conditions of `--fail-on`.

    Raises:
        UsageError: One is none, or is about findings where only durations are known.
    """
    if not given:
        return []
    from spark_app.report.results import fail_on

    try:
        parsed = [fail_on.parse(text) for text in given]
    except ValueError as error:
        raise UsageError(f"--fail-on {error}") from error
    others = [condition.text for condition in parsed if condition.slower is None]
    if others and only_slower:
        raise UsageError(f"--fail-on {others[0]} is for observe and report; compare knows durations only (slower:20%)")
    return parsed

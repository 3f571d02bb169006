"""Streaming queries on the terminal: a table that is redrawn in its place, or lines where nothing can be redrawn."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TextIO

from rich.text import Text

from spark_app import formatting
from spark_app.commands import cells
from spark_app.commands.terminal import Terminal, grid, grid_width
from spark_app.errors import UsageError
from spark_app.runs.run_record import (
    DEAD_LETTERS,
    DELETED,
    DUPLICATES,
    LATE,
    PUBLISHED,
    READ,
    UNKNOWN_FIELDS,
    RunRecord,
)
from spark_app.runs.stream_status import BATCHES, LAG_RECORDS, LAG_SECONDS, RESTARTS, StreamStatus

PACKAGE: Final = "streaming."
WORDS: Final = ("query", "state")
STYLES: Final = {
    "running": "green",
    "idle": "cyan",
    "starting": "yellow",
    "waiting": "yellow",
    "restarting": "yellow",
    "failed": "red",
    "stopped": "dim",
}
EXPENDABLE: Final = ("batches", "watermark", "state rows", "late", "lag", "batch", "output/s")
"""The columns that a narrow terminal leaves out, in this order, after those in which nothing is known."""
LINES_SECONDS: Final = 10.0
"""How often a query has a line where nothing is redrawn, in seconds, if only its micro-batches change."""


class StreamTerminal(Terminal):
    """The output of `spark-app streaming`; it hears how the queries get on."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Writes to standard output and standard error, or to other streams."""
        super().__init__(out=out, err=err)
        self._lines: dict[str, tuple[StreamStatus, float]] = {}
        self._reasons: dict[str, str] = {}
        self._began = time.monotonic()

    def queries(self, statuses: Sequence[StreamStatus]) -> None:
        """Shows the present status of all queries."""
        if self.redraws:
            self.end_wait()
            seconds = time.monotonic() - self._began
            self.redraw(live_table(statuses, seconds=seconds, width=self.redrawn_width))
            return
        for status in statuses:
            said, at = self._lines.get(status.pipeline, (None, 0.0))
            has_news = said is None or said.batches != status.batches
            if said is None or said.state != status.state or (has_news and time.monotonic() > at + LINES_SECONDS):
                self._lines[status.pipeline] = (status, time.monotonic())
                first = self._reasons.setdefault(f"{status.error}", status.pipeline)
                self.note(line(status, is_known=status.error is not None and first != status.pipeline))

    def confirmed(self, question: str) -> bool:
        """Asks on the terminal; without one, the answer is no.

        Raises:
            UsageError: Nobody can answer.
        """
        if not sys.stdin.isatty():
            raise UsageError("nobody can answer whether to delete this: add --yes")
        self.stop()
        return input(question).strip().lower() in ("y", "yes")

    def status(self, statuses: Sequence[StreamStatus]) -> None:
        """Prints queries as a table of the result."""
        columns = _columns(statuses)
        headers = list(columns)
        self.table(headers, _rows(columns), right=_numbers(headers), styles=STYLES)


def live_table(statuses: Sequence[StreamStatus], *, seconds: float, width: int) -> list[Text]:
    """Lines about running queries: how many are in which state, a row for each, and why some do not work.

    Args:
        statuses: The queries.
        seconds: How long they run, or start, by now.
        width: How many characters a line has room for; columns that do not fit are left out.
    """
    states = Counter(status.state for status in statuses)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    title = f"{formatting.duration(1000 * seconds)}: {counts}; Ctrl-C stops"
    columns = _fitting(_columns(statuses), width)
    lines = grid(list(columns), _rows(columns), right=_numbers(columns), styles=STYLES)
    return [Text(title, "dim"), *lines, *_errors(statuses)]


def summary(results: Sequence[RunRecord]) -> tuple[list[str], list[list[str]]]:
    """A row per query that has ended; rows that were dropped and restarts have a column if there were any.

    Returns:
        Headers, and rows in the order of the names.
    """
    ordered = sorted(results, key=lambda result: result.pipeline)
    columns = {"query": [result.pipeline.removeprefix(PACKAGE) for result in ordered]}
    if len({result.outcome for result in results}) > 1:
        columns["outcome"] = [result.outcome for result in ordered]
    columns["batches"] = [formatting.count(result.facts.get(BATCHES)) for result in ordered]
    columns["rows in"] = [formatting.count(result.counts.get(READ)) for result in ordered]
    columns["rows out"] = [formatting.count(result.counts.get(PUBLISHED)) for result in ordered]
    for name in (DUPLICATES, LATE, DEAD_LETTERS, UNKNOWN_FIELDS, DELETED, RESTARTS):
        numbers = [result.counts.get(name, result.facts.get(name)) for result in ordered]
        if any(numbers):
            columns[name.replace("_", " ")] = [formatting.count(number) for number in numbers]
    columns["lag"] = [formatting.count(result.facts.get(LAG_RECORDS)) for result in ordered]
    columns["lag time"] = [_seconds(result.facts.get(LAG_SECONDS)) for result in ordered]
    columns["time"] = [_seconds(result.seconds) for result in ordered]
    return list(columns), _rows(columns)


def line(status: StreamStatus, *, is_known: bool = False) -> str:
    """A query as a line; why it does not work is left out where a line of another query has said it."""
    batches = f"{formatting.count(status.batches)} micro-batch{'' if status.batches == 1 else 'es'}"
    rows = formatting.quantity(status.counts.get(READ, 0), "record")
    reason = ", for the same reason" if is_known else f": {status.error}"
    why = reason if status.state in ("waiting", "failed") else ""
    return f"{status.pipeline}: {status.state}, {rows} in {batches}{why}"


def _columns(statuses: Sequence[StreamStatus]) -> dict[str, list[str]]:
    """The cells of queries by column; lost records have one if there are any."""
    rows = [_cells(status) for status in statuses]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if any(DELETED in status.counts for status in statuses):
        columns[DELETED] = [formatting.count(status.counts.get(DELETED)) for status in statuses]
    return columns


def _cells(status: StreamStatus) -> dict[str, str]:
    return {
        "query": _name(status),
        "state": status.state,
        "input/s": _rate(status.input_rate),
        "output/s": _rate(status.output_rate),
        "batch": formatting.duration(status.batch_ms),
        "batches": formatting.count(status.batches),
        "lag": formatting.count(status.lag_records),
        "lag time": _seconds(status.lag_seconds),
        "watermark": (status.watermark or formatting.UNKNOWN).replace("T", " ").removesuffix("Z").partition(".")[0],
        "state rows": formatting.count(status.state_rows),
        "late": formatting.count(status.counts.get(LATE)),
    }


def _fitting(columns: Mapping[str, list[str]], width: int) -> dict[str, list[str]]:
    """The columns that fit into a width: first those go in which nothing is known, then others."""
    left = dict(columns)
    unknown = [name for name in EXPENDABLE if set(columns[name]) == {formatting.UNKNOWN}]
    for name in [*unknown, *EXPENDABLE]:
        if grid_width(list(left), _rows(left)) > width:
            left.pop(name, None)
    return left


def _rows(columns: Mapping[str, list[str]]) -> list[list[str]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def _numbers(headers: Iterable[str]) -> list[str]:
    return [name for name in headers if name not in WORDS]


def _name(status: StreamStatus) -> str:
    """What a user calls the query."""
    return status.pipeline.removeprefix(PACKAGE)


def _errors(statuses: Iterable[StreamStatus]) -> list[Text]:
    """A line for each reason why queries do not work; most name the query, and what several share names them."""
    sharing: dict[str, list[StreamStatus]] = {}
    for status in statuses:
        if status.error is not None:
            sharing.setdefault(status.error, []).append(status)
    return [Text(_reason(error, of), STYLES.get(of[0].state, "")) for error, of in sharing.items()]


def _reason(error: str, statuses: Sequence[StreamStatus]) -> str:
    """Why queries do not work, with their names."""
    text, names = cells.literal(error), [status.pipeline for status in statuses]
    return text if names[0] in text else f"{', '.join(names)}: {text}"


def _rate(rate: float | None) -> str:
    return formatting.UNKNOWN if rate is None else formatting.count(round(rate))


def _seconds(seconds: float | None) -> str:
    return formatting.duration(None if seconds is None else 1000 * seconds)

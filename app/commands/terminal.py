"""The one terminal style: progress lines, notes and tables; plain lines where there is no terminal.

What is asked for (tables, rows, the JSON document) goes to standard output; what tells how it goes (notes, steps,
errors) to standard error. A reader that went away is never a reason to stop a run.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final, Self, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from app import amounts
from app.commands import cells

GAP: Final = "  "
GAPS: Final = (GAP, " ")
UNBOUNDED: Final = 1_000_000
LEAST_PROSE: Final = 30
USUAL_WIDTH: Final = 80
NO_STYLES: Final[Mapping[str, str]] = MappingProxyType({})
Step = tuple[str, date, str]


class Terminal:
    """Where a verb says what it does; it is the watcher of a run."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Takes streams other than standard output and standard error, if there are some."""
        self._out = _console(out or sys.stdout)
        self._err = _console(err or sys.stderr)
        self._steps: dict[Step, tuple[TaskID, float]] = {}
        self._waits: list[TaskID] = []
        self._progress = Progress(
            SpinnerColumn("dots" if _is_unicode(self._err) else "line"),
            TextColumn("{task.description}", markup=False),
            _Bar(bar_width=30),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            console=self._err,
            transient=True,
            redirect_stdout=False,
            disable=not is_live(self._err),
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_wait()
        for step in list(self._steps):
            self._finish(step, state="stopped", mark="✗", style="red")
        self._progress.stop()

    def note(self, text: str) -> None:
        """Says one line worth telling."""
        self._say(Text(cells.literal(text)))

    def wait(self, text: str) -> None:
        """Shows on a terminal what is being waited for, until the first step begins or all is done."""
        self._waits.append(self._progress.add_task(text, total=None, state=""))

    def step_started(self, pipeline: str, date: date, step: str) -> None:
        """Shows on a terminal that a step is at work."""
        self._end_wait()
        task = self._progress.add_task(f"{pipeline}  {date}  {step}", total=None, state="")
        self._steps[pipeline, date, step] = (task, time.monotonic())

    def step_ended(self, pipeline: str, date: date, step: str, seconds: float, rows: int | None) -> None:
        """Says in one line what a step did."""
        state = amounts.UNKNOWN if rows is None else f"{amounts.count(rows)} rows"
        self._finish((pipeline, date, step), state=state, mark="✓", style="green", seconds=seconds)

    @contextmanager
    def counting(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar; gives a function that moves it on by a number of rows."""
        task = self._progress.add_task(label, total=max(total, 1), state=f"{amounts.count(total)} rows")
        try:
            yield lambda rows: self._progress.advance(task, rows)
        finally:
            self._progress.remove_task(task)

    def line(self, text: str = "", *, style: str = "") -> None:
        """Prints one line of the answer, never folded."""
        self._print(Text(text, style=style))

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        right: Collection[str] = (),
        styles: Mapping[str, str] = NO_STYLES,
        is_prose: bool = False,
    ) -> None:
        """Prints rows in columns; where they are too wide for the terminal, each row as a block of lines.

        Args:
            headers: The names of the columns.
            rows: Their cells, one line each.
            right: The columns that are set to the right.
            styles: How certain cells look.
            is_prose: Whether the last column is folded where it is too wide.
        """
        if is_prose:
            rows = list(_folded(headers, rows, width=_width(self._out)))
        widths = [max(cell_len(cell) for cell in column) for column in zip(headers, *rows, strict=True)]
        room = _width(self._out) - sum(widths)
        gap = next((gap for gap in GAPS if len(gap) * (len(widths) - 1) <= room), None)
        if gap is None:
            self._records(headers, rows, styles=styles)
            return
        places = [(width, header in right) for width, header in zip(widths, headers, strict=True)]
        self._print(_row(headers, places, gap=gap, styles=dict.fromkeys(headers, "bold")))
        for row in rows:
            self._print(_row(row, places, gap=gap, styles=styles))

    def facts(self, facts: Sequence[tuple[str, str]], *, styles: Mapping[str, str] = NO_STYLES) -> None:
        """Prints a name and its value on each line, never folded: a path can be copied whole."""
        width = max((cell_len(name) for name, _ in facts), default=0)
        for name, fact in facts:
            self._print(Text.assemble((_padded(name, width), "bold"), GAP, (fact, styles.get(fact, ""))))

    def answer(self, **content: Any) -> None:
        """Prints the JSON document of a command that did what it was asked to."""
        self.document({"exit_code": 0, "error": None, **content})

    def document(self, content: Any) -> None:
        """Prints the one JSON document that a script reads."""
        text = msgspec.json.format(msgspec.json.encode(content, enc_hook=str), indent=2)
        self.line(text.decode("utf-8"))

    def _records(self, headers: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Mapping[str, str]) -> None:
        for number, row in enumerate(rows, start=1):
            if len(rows) > 1:
                self.line(f"-- {number} --", style="dim")
            self.facts(list(zip(headers, row, strict=True)), styles=styles)

    def _end_wait(self) -> None:
        while self._waits:
            self._progress.remove_task(self._waits.pop())

    def _finish(self, step: Step, *, state: str, mark: str, style: str, seconds: float | None = None) -> None:
        task, started = self._steps.pop(step, (None, time.monotonic()))
        if task is not None:
            self._progress.remove_task(task)
        taken = amounts.duration(1000 * (time.monotonic() - started if seconds is None else seconds))
        pipeline, date, name = step
        text = f"{pipeline:<15}{GAP}{date}{GAP}{name:<22}{GAP}{state:>14}{GAP}{taken:>8}"
        self._say(Text.assemble((f"{mark} ", style), text) if self._marks() else Text(text))

    def _marks(self) -> bool:
        return is_live(self._err) and _is_unicode(self._err)

    def _say(self, text: Text) -> None:
        with suppress(OSError):  # progress that cannot be told is no reason to fail
            self._err.print(text, soft_wrap=True)

    def _print(self, text: Text) -> None:
        self._out.print(text, soft_wrap=True)


class _Bar(BarColumn):
    """A bar for what has a known end; nothing where the spinner says enough."""

    def render(self, task: Task) -> Any:
        """The bar of a task."""
        return Text() if task.total is None else super().render(task)


class _Console(Console):
    """A console that falls silent, rather than ending the program, when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """Sends what is still to come, buffers included, to nowhere."""
        self.quiet = True
        silence(self.file)


def silence(file: Any) -> None:
    """Redirects a stream that lost its reader to nowhere, so that neither a write nor the last flush fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


def is_live(console: Console) -> bool:
    """Whether lines may be redrawn: a terminal, and not a dumb one."""
    return console.is_terminal and not console.is_dumb_terminal


def _console(file: TextIO) -> Console:
    if isinstance(file, io.TextIOWrapper):
        file.reconfigure(errors="backslashreplace")  # a stream that cannot hold a character gets its escape
    is_terminal = file.isatty()
    return _Console(
        file=file,
        force_terminal=is_terminal,
        width=None if is_terminal else UNBOUNDED,
    )


def _width(console: Console) -> int:
    """How many columns there are now; rich would ask the standard streams, of which any may be a file."""
    if not console.is_terminal:
        return UNBOUNDED
    return os.get_terminal_size(console.file.fileno()).columns or USUAL_WIDTH


def _is_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _row(row: Sequence[str], places: Sequence[tuple[int, bool]], *, gap: str, styles: Mapping[str, str]) -> Text:
    line = Text()
    for cell, (width, is_right) in zip(row, places, strict=True):
        line.append(gap if line else "")
        line.append(_padded(cell, width, is_right=is_right), styles.get(cell, ""))
    line.rstrip()
    return line


def _folded(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> Iterator[Sequence[str]]:
    """The rows, with as many more below each as its last cell has lines; as they are where there is no room for it."""
    columns = list(zip(headers, *rows, strict=True))[:-1]
    room = width - sum(max(map(cell_len, column)) + len(GAP) for column in columns)
    for row in rows:
        first, *more = (wrap(row[-1], room, break_on_hyphens=False) if room >= LEAST_PROSE else None) or row[-1:]
        yield [*row[:-1], first]
        yield from ([*[""] * len(columns), line] for line in more)


def _padded(cell: str, width: int, *, is_right: bool = False) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if is_right else cell + space

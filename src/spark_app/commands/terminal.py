"""Output of all commands: progress, notes and tables; plain lines if the stream is no terminal.

Results (tables, rows, the JSON document) go to standard output; notes, progress and errors go to standard error. A
closed stream never stops a run.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final, Self, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.style import Style
from rich.text import Text

from spark_app import formatting
from spark_app.commands import cells

GAP: Final = "  "
GAPS: Final = (GAP, " ")
UNBOUNDED: Final = 1_000_000
MIN_PROSE: Final = 30
USUAL_WIDTH: Final = 80
NO_STYLES: Final[Mapping[str, str]] = MappingProxyType({})
Step = tuple[str, str, str]


class Terminal:
    """The output of a command; it is the progress listener of a run."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Writes to standard output and standard error, or to other streams."""
        self._out = _console(out or sys.stdout)
        self._err = _console(err or sys.stderr)
        self._steps: dict[Step, tuple[TaskID, float]] = {}
        self._waits: list[TaskID] = []
        self._progress = _Live(
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
        self.end_wait()
        for step in list(self._steps):
            self._finish(step, state="stopped", mark="✗", style="red")
        self._progress.stop()

    def note(self, text: str, *, link: str | None = None) -> None:
        """Prints one line on standard error; on a terminal it leads to the link."""
        self._print_line(Text(cells.literal(text), style=Style(link=link)))

    def wait(self, text: str) -> None:
        """Shows a spinner until the first step starts or the command ends."""
        self._waits.append(self._progress.add_task(text, total=None, state=""))

    def step_started(self, pipeline: str, slice_key: str, step: str) -> None:
        """Shows a spinner for a step."""
        self.end_wait()
        task = self._progress.add_task(_title(pipeline, slice_key, step), total=None, state="")
        self._steps[pipeline, slice_key, step] = (task, time.monotonic())

    def step_ended(self, pipeline: str, slice_key: str, step: str, seconds: float, rows: int | None) -> None:
        """Prints one line about a finished step."""
        state = formatting.UNKNOWN if rows is None else f"{formatting.count(rows)} rows"
        self._finish((pipeline, slice_key, step), state=state, mark="✓", style="green", seconds=seconds)

    def step_progress(self, pipeline: str, slice_key: str, step: str, text: str) -> None:
        """Shows how far a step has come, beside its spinner; as a line where nothing is redrawn."""
        task, _ = self._steps.get((pipeline, slice_key, step), (None, 0.0))
        if task is not None and self.redraws:
            self._progress.update(task, state=text)
        else:
            self.note(f"{_title(pipeline, slice_key, step)}: {text}")

    @contextmanager
    def counting(self, label: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar over rows; yields a function that advances it."""
        task = self._progress.add_task(label, total=max(total, 1), state=f"{formatting.count(total)} rows")
        try:
            yield lambda rows: self._progress.advance(task, rows)
        finally:
            self._progress.remove_task(task)

    def stop(self) -> None:
        """Ends what is redrawn; lines may follow."""
        self._progress.stop()

    def line(self, text: str = "", *, style: str = "", link: str | None = None) -> None:
        """Prints one line of the result, never wrapped; on a terminal it leads to the link."""
        self._print(Text(text, style=Style.parse(style) + Style(link=link)))

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        right: Collection[str] = (),
        styles: Mapping[str, str] = NO_STYLES,
        is_prose: bool = False,
    ) -> None:
        """Prints rows in columns; if they are too wide for the terminal, each row as a block of lines.

        Args:
            headers: The names of the columns.
            rows: Their cells, one line each.
            right: The columns that are right-aligned.
            styles: The style of certain cells.
            is_prose: Whether the last column wraps.
        """
        if is_prose:
            rows = list(_folded(headers, rows, width=_width(self._out)))
        gap = next((gap for gap in GAPS if grid_width(headers, rows, gap=gap) <= _width(self._out)), None)
        if gap is None:
            self._records(headers, rows, styles=styles)
            return
        for line in grid(headers, rows, right=right, styles=styles, gap=gap):
            self._print(line)

    @property
    def redraws(self) -> bool:
        """Whether progress is drawn anew in its place, and not line after line."""
        return is_live(self._err)

    @property
    def redrawn_width(self) -> int:
        """How many characters a redrawn line has room for."""
        return _width(self._err)

    def redraw(self, lines: Sequence[Text]) -> None:
        """Shows lines below the progress, in the place of those of the last call."""
        self._progress.below = Text("\n").join(lines)

    def facts(
        self,
        facts: Sequence[tuple[str, str]],
        *,
        styles: Mapping[str, str] = NO_STYLES,
        links: Mapping[str, str] = NO_STYLES,
    ) -> None:
        """Prints a name and its value on each line, never wrapped, so that a path can be copied.

        Args:
            facts: Names and values.
            styles: The style of certain values.
            links: The addresses that certain values lead to on a terminal.
        """
        width = max((cell_len(name) for name, _ in facts), default=0)
        for name, fact in facts:
            style = Style.parse(styles.get(fact, "")) + Style(link=links.get(fact))
            self._print(Text.assemble((_padded(name, width), "bold"), GAP, (fact, style)))

    def answer(self, **content: Any) -> None:
        """Prints the JSON document of a command that succeeded."""
        self.document({"exit_code": 0, "error": None, **content})

    def document(self, content: Any) -> None:
        """Prints a JSON document."""
        self.line(encoded(content).decode("utf-8").removesuffix("\n"))

    def _records(self, headers: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Mapping[str, str]) -> None:
        for number, row in enumerate(rows, start=1):
            if len(rows) > 1:
                self.line(f"-- {number} --", style="dim")
            self.facts(list(zip(headers, row, strict=True)), styles=styles)

    def end_wait(self) -> None:
        """Takes the spinner of `wait` away."""
        while self._waits:
            self._progress.remove_task(self._waits.pop())

    def _finish(self, step: Step, *, state: str, mark: str, style: str, seconds: float | None = None) -> None:
        task, started = self._steps.pop(step, (None, time.monotonic()))
        if task is not None:
            self._progress.remove_task(task)
        taken = formatting.duration(1000 * (time.monotonic() - started if seconds is None else seconds))
        pipeline, slice_key, name = step
        text = _title(f"{pipeline:<15}", slice_key, f"{name:<22}")
        text += f"{GAP}{state:>14}{GAP}{taken:>8}"
        self._print_line(Text.assemble((f"{mark} ", style), text) if self._marks() else Text(text))

    def _marks(self) -> bool:
        return is_live(self._err) and _is_unicode(self._err)

    def _print_line(self, text: Text) -> None:
        with suppress(OSError):  # progress that cannot be written does not fail the command
            self._err.print(text, soft_wrap=True)

    def _print(self, text: Text) -> None:
        self._out.print(text, soft_wrap=True)


def encoded(content: Any) -> bytes:
    """The text of a JSON document, for people and programs."""
    return msgspec.json.format(msgspec.json.encode(content, enc_hook=str), indent=2) + b"\n"


class _Live(Progress):
    """Progress with lines below it."""

    below: Text | None = None

    def get_renderables(self) -> Iterator[RenderableType]:
        """The tasks, and the lines."""
        yield from super().get_renderables()
        if self.below is not None:
            yield self.below


class _Bar(BarColumn):
    """A bar if the total is known; else nothing."""

    def render(self, task: Task) -> Any:
        """The bar of a task."""
        return Text() if task.total is None else super().render(task)


class _Console(Console):
    """A console that goes quiet, instead of ending the program, when its reader is gone."""

    def on_broken_pipe(self) -> None:
        """Discards all further output, buffered output too."""
        self.quiet = True
        silence(self.file)


def silence(file: Any) -> None:
    """Redirects a stream without a reader to /dev/null, so that neither writes nor the last flush fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


def is_live(console: Console) -> bool:
    """Whether lines may be redrawn: on a terminal that is not dumb."""
    return console.is_terminal and not console.is_dumb_terminal


def _console(file: TextIO) -> Console:
    if isinstance(file, io.TextIOWrapper):
        file.reconfigure(errors="backslashreplace")  # write characters that the encoding lacks as escapes
    is_terminal = file.isatty()
    return _Console(
        file=file,
        force_terminal=is_terminal,
        width=None if is_terminal else UNBOUNDED,
    )


def _width(console: Console) -> int:
    """The width of the terminal; rich would ask the standard streams, of which any may be a file."""
    if not console.is_terminal:
        return UNBOUNDED
    return os.get_terminal_size(console.file.fileno()).columns or USUAL_WIDTH


def _is_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def grid(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    styles: Mapping[str, str] = NO_STYLES,
    gap: str = GAP,
) -> list[Text]:
    """Lines of cells in columns, the headers first; the arguments are those of `Terminal.table`."""
    columns = [(width, header in right) for width, header in zip(_widths(headers, rows), headers, strict=True)]
    head = _row(headers, columns, gap=gap, styles=dict.fromkeys(headers, "bold"))
    return [head, *(_row(row, columns, gap=gap, styles=styles) for row in rows)]


def grid_width(headers: Sequence[str], rows: Sequence[Sequence[str]], *, gap: str = GAP) -> int:
    """How many characters the longest line of a grid may take."""
    return sum(_widths(headers, rows)) + len(gap) * (len(headers) - 1)


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(cell) for cell in column) for column in zip(headers, *rows, strict=True)]


def _row(row: Sequence[str], columns: Sequence[tuple[int, bool]], *, gap: str, styles: Mapping[str, str]) -> Text:
    line = Text()
    for cell, (width, is_right) in zip(row, columns, strict=True):
        line.append(gap if line else "")
        line.append(_padded(cell, width, is_right=is_right), styles.get(cell, ""))
    line.rstrip()
    return line


def _folded(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> Iterator[Sequence[str]]:
    """The rows with their last cell wrapped, one row per line; unchanged if the terminal is too narrow."""
    columns = list(zip(headers, *rows, strict=True))[:-1]
    room = width - sum(max(map(cell_len, column)) + len(GAP) for column in columns)
    for row in rows:
        first, *more = (wrap(row[-1], room, break_on_hyphens=False) if room >= MIN_PROSE else None) or row[-1:]
        yield [*row[:-1], first]
        yield from ([*[""] * len(columns), line] for line in more)


def _padded(cell: str, width: int, *, is_right: bool = False) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if is_right else cell + space


def _title(*words: str) -> str:
    """Words in columns; one that is empty, such as the slice of a run that has none, takes no room."""
    return GAP.join(word for word in words if word)

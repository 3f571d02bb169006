"""What observed Python functions did in tasks (`src/pyspark_observed.py`), as spans below those of the tasks.

Workers write lines beside the event logs, a file for each stage; the file of a stage that has ended is complete.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec

from spark_app.eventlog import span_ids
from spark_app.eventlog.model.application import Application, Ended
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.failures import MAX_TEXT, Failure
from spark_app.eventlog.parse.events import TaskEnd
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.spans import SparkSpan, Value, spanned_tasks
from spark_app.redaction import shortened
from spark_app.telemetry import spark_names as names
from spark_app.telemetry.names import Attribute

FOLDER: Final = ".python"
"""Hidden: neither Spark's history server nor a bridge takes it for a log."""
MOST_LINES: Final = 200_000
MOST_BYTES: Final = 48 * 2**20
"""Of one file that are read, whatever is reached first."""
LONGEST_LINE: Final = 4096
MOST_INDEXES: Final = 4
"""Stages whose late tasks are found without reading their files again."""
MOST_FUNCTIONS: Final = 20
"""Of one task or stage; their names come from the lines, which any program may write."""
CLOCKS_APART_MS: Final = 2000
"""How far a worker's clock may be from the driver's: lines further off are of another application of the same id."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**44)]


class Line(msgspec.Struct):
    """What a function did in a task since its last line.

    Attributes:
        rows_in: None where it is handed what has no rows.
        began_ms, ended_ms: Its first call and the end of the last one, since the epoch.
        wall_us, cpu_us: At work in it, without what it waited for.
        error: The class of what it raised.
    """

    task: int
    function: str
    batches: _Count
    rows_out: _Count
    began_ms: _Count
    ended_ms: _Count
    wall_us: _Count
    cpu_us: _Count
    rows_in: _Count | None = None
    error: str | None = None


_DECODER: Final = msgspec.json.Decoder(Line)


@dataclass(slots=True)
class Calls:
    """All that a function did in some tasks; names as in `Line`."""

    began_ms: int
    ended_ms: int = 0
    batches: int = 0
    rows_in: int | None = None
    rows_out: int = 0
    wall_us: int = 0
    cpu_us: int = 0
    error: str | None = None
    tasks: set[int] = field(default_factory=set)

    def add(self, line: Line) -> None:
        """Adds what it did since the last line."""
        self.began_ms, self.ended_ms = min(self.began_ms, line.began_ms), max(self.ended_ms, line.ended_ms)
        self.batches += line.batches
        self.rows_out += line.rows_out
        self.rows_in = self.rows_in if line.rows_in is None else line.rows_in + (self.rows_in or 0)
        self.wall_us += line.wall_us
        self.cpu_us += line.cpu_us
        self.error = line.error or self.error
        self.tasks.add(line.task)


@dataclass(slots=True)
class _Index:
    """Where the lines of each task start in the file of a stage, as far as it was read."""

    lines: int = 0
    end: int = 0
    starts: dict[int, "array[int]"] = field(default_factory=dict)


@dataclass(slots=True)
class _CallWindow:
    """The functions that were called in a time, in milliseconds since the epoch."""

    began: int
    ended: int
    functions: dict[str, Calls] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        first, last = self.began - CLOCKS_APART_MS, self.ended + CLOCKS_APART_MS
        is_new = line.function not in self.functions
        if not first <= line.began_ms <= line.ended_ms <= last or (is_new and len(self.functions) >= MOST_FUNCTIONS):
            return
        self.functions.setdefault(line.function, Calls(line.began_ms)).add(line)


class PythonFunctions:
    """The functions of an application, as spans below those of tasks.

    A task may end after its stage: the file of the stage is not read again for it, only its own lines are.
    """

    def __init__(self, app: Application, events: LogPath) -> None:
        """Reads nothing yet.

        Args:
            app: The application.
            events: The folder of event logs.
        """
        self._app, self._events = app, events
        self._indexes: dict[int, _Index] = {}

    def of_ended(self, ended: Ended) -> Iterator[SparkSpan]:
        """Spans of functions, below the spans of the tasks that something that has ended gets."""
        tasks = list(spanned_tasks(ended))
        if not tasks:
            return
        stage = tasks[0][0]
        wanted = {task.info.id: (task, _CallWindow(task.info.launched, task.info.finished)) for _, task in tasks}
        for line in self._lines(stage.info.id, wanted):
            wanted[line.task][1].add(line)
        for task, window in wanted.values():
            for name, calls in sorted(window.functions.items()):
                yield _span(self._app, stage, task, name, calls)

    def of_the_end(self) -> Iterator[SparkSpan]:
        """The same of stages that are still open when the log ends."""
        for stage in self._app.stages.values():
            if stage.info.completed is None:
                yield from self.of_ended(stage)

    def _lines(self, stage: int, tasks: Iterable[int]) -> Iterator[Line]:
        index = self._indexes.pop(stage, None) or _Index()
        self._indexes[stage] = index  # the youngest
        if len(self._indexes) > MOST_INDEXES:
            del self._indexes[next(iter(self._indexes))]
        with suppress(OSError), _opened(self._events, self._app.id, stage) as file:
            for start, line in _read(file, index):
                index.starts.setdefault(line.task, array("q")).append(start)
            for start in (start for task in tasks for start in index.starts.get(task, ())):
                file.seek(start)
                yield _DECODER.decode(file.readline(LONGEST_LINE))


def in_stages(app: Application, stages: Iterable[int], events: LogPath) -> Iterator[tuple[int, str, Calls]]:
    """For each stage and function: the number of the stage, the name of the function, and its calls in all tasks."""
    for stage in sorted(set(stages)):
        window = _CallWindow(app.began or app.last, app.last)
        with suppress(OSError), _opened(events, app.id, stage) as file:
            for _, line in _read(file, _Index()):
                window.add(line)
        yield from ((stage, name, calls) for name, calls in window.functions.items())


def _opened(events: LogPath, application: str, stage: int) -> BinaryIO:
    """The file of a stage; an empty one where it is missing, or where the id leads out of the folder.

    Workers leave such files only in folders of their machine.

    Raises:
        OSError: It cannot be opened.
    """
    if not isinstance(events, Path):
        return BytesIO()
    file = events / FOLDER / application / f"{stage}.jsonl"
    is_within = file.parent.parent == events / FOLDER and file.parent.name != ".."
    return file.open("rb") if is_within and file.is_file() else BytesIO()


def _read(file: BinaryIO, index: _Index) -> Iterator[tuple[int, Line]]:
    """The whole lines that follow those that an index has, with where each starts."""
    file.seek(index.end)
    while index.lines < MOST_LINES:
        start, text = index.end, file.readline(LONGEST_LINE)
        if not text or start + len(text) > MOST_BYTES:
            return
        index.lines, index.end = index.lines + 1, start + len(text)
        try:
            yield start, _DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # of a worker that was killed in the midst of it


def _span(app: Application, stage: StageAttempt, task: TaskEnd, name: str, calls: Calls) -> SparkSpan:
    """The span of a function, kept within the time of its task, whatever the worker's clock says."""
    info = task.info
    known: dict[Attribute, Value | None] = {
        names.PYTHON_FUNCTION: shortened(name, MAX_TEXT),
        names.PYTHON_BATCHES: calls.batches,
        names.PYTHON_ROWS_IN: calls.rows_in,
        names.PYTHON_ROWS_OUT: calls.rows_out,
        names.PYTHON_TIME: round(calls.wall_us / 1000),
        names.PYTHON_CPU_TIME: round(calls.cpu_us / 1000),
        names.TASK_ID: info.id,
    }
    began = min(max(info.launched, calls.began_ms), info.finished)
    return SparkSpan(
        names.PYTHON_SPAN,
        names.PYTHON_SPAN.of(shortened(name, MAX_TEXT)),
        span_ids.of_python_function(app, stage, info, name),
        began,
        min(max(began, calls.ended_ms), info.finished),
        {attribute.name: value for attribute, value in known.items() if value is not None},
        Failure(calls.error, "") if calls.error else None,
    )

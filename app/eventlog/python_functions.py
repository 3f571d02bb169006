"""What observed Python functions did in tasks (`workers/pyspark_observed.py`), as spans below those of the tasks.

Workers write lines beside the event logs, a file for each stage; the file of a stage that has ended is complete.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import msgspec

from app.eventlog import span_ids
from app.eventlog.model.application import Application, Ended
from app.eventlog.model.entities import StageAttempt
from app.eventlog.model.failures import Failure, shortened
from app.eventlog.parse.events import TaskEnd
from app.eventlog.parse.locations import LogPath
from app.eventlog.spans import SparkSpan, Value, spanned_tasks
from app.telemetry import spark_names as names
from app.telemetry.names import Attribute

FOLDER: Final = ".python"
"""Hidden: neither Spark's history server nor a bridge takes it for a log."""
MOST_LINES: Final = 200_000
MOST_BYTES: Final = 48 * 2**20
"""Of one file that are read, whatever is reached first."""
LONGEST_LINE: Final = 4096
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
class _Heard:
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


def of_ended(app: Application, ended: Ended, events: LogPath) -> Iterator[SparkSpan]:
    """Spans of functions, below the spans of the tasks that something that has ended gets.

    Args:
        app: The application.
        ended: What has ended in it.
        events: The folder of event logs.
    """
    tasks = list(spanned_tasks(ended))
    if tasks:
        stage = tasks[0][0]
        yield from _of_stage(app, stage, [task for _, task in tasks], events)


def of_the_end(app: Application, events: LogPath) -> Iterator[SparkSpan]:
    """The same of stages that are still open when the log ends."""
    for stage in app.stages.values():
        if stage.info.completed is None:
            yield from of_ended(app, stage, events)


def in_stages(app: Application, stages: Iterable[int], events: LogPath) -> Iterator[tuple[int, str, Calls]]:
    """For each stage and function: the number of the stage, the name of the function, and its calls in all tasks."""
    for stage in sorted(set(stages)):
        heard = _Heard(app.began or app.last, app.last)
        for line in _lines(events, app.id, stage):
            heard.add(line)
        yield from ((stage, name, calls) for name, calls in heard.functions.items())


def _of_stage(app: Application, stage: StageAttempt, tasks: Iterable[TaskEnd], events: LogPath) -> Iterator[SparkSpan]:
    wanted = {task.info.id: (task, _Heard(task.info.launched, task.info.finished)) for task in tasks}
    for line in _lines(events, app.id, stage.info.id):
        if line.task in wanted:
            wanted[line.task][1].add(line)
    for task, heard in wanted.values():
        for name, calls in sorted(heard.functions.items()):
            yield _span(app, stage, task, name, calls)


def _lines(events: LogPath, application: str, stage: int) -> Iterator[Line]:
    """The whole lines of a stage's file; none where it is missing, or where the id leads out of the folder.

    Workers leave such files only in folders of their machine.
    """
    if not isinstance(events, Path):
        return
    file = events / FOLDER / application / f"{stage}.jsonl"
    if file.parent.parent != events / FOLDER or file.parent.name == ".." or not file.is_file():
        return
    try:
        with file.open("rb") as lines:
            for _ in range(MOST_LINES):
                line = lines.readline(LONGEST_LINE)
                if not line or lines.tell() > MOST_BYTES:
                    return
                try:
                    yield _DECODER.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # of a worker that was killed in the midst of it
    except OSError:
        return


def _span(app: Application, stage: StageAttempt, task: TaskEnd, name: str, calls: Calls) -> SparkSpan:
    """The span of a function, kept within the time of its task, whatever the worker's clock says."""
    info = task.info
    known: dict[Attribute, Value | None] = {
        names.PYTHON_FUNCTION: shortened(name),
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
        names.PYTHON_SPAN.of(shortened(name)),
        span_ids.of_python_function(app, stage, info, name),
        began,
        min(max(began, calls.ended_ms), info.finished),
        {attribute.name: value for attribute, value in known.items() if value is not None},
        Failure(calls.error, "") if calls.error else None,
    )

"""What a Python function did in each task of Spark's: rows, batches and time, without touching what it does.

    from pyspark_observed import observed

    frame.mapInPandas(observed(function), schema)

A line per task and function goes to `<spark.eventLog.dir>/.python/<application>/<stage>.jsonl`, if the event log is on
and in a local folder; whoever reads the log makes spans of them. Nothing is sent, and no thread is started: a worker is
a fork. Workers need not have this module: it is pickled by value. When an application leaves its first lines, those of
applications whose logs are gone are removed.
"""

import functools
import inspect
import json
import os
import shutil
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote, urlsplit

from pyspark import SparkContext, TaskContext, cloudpickle

LONGEST_NAME: Final = 100
"""Characters of names; with them a line stays below 4 KiB, so that lines of several workers do not mix."""

Function = TypeVar("Function", bound=Callable[..., Any])


def observed(function: Function) -> Function:
    """The same function; what it did in a task is written down when the task ends.

    For `mapInPandas`, `mapInArrow`, `applyInPandas`, `applyInArrow` (also of cogroups) and pandas UDFs; it goes below
    `pandas_udf`. Not for UDFs of single values, where counting costs as much as the work.

    Rows are those of all frames or batches that it is handed; columns of one batch count once. Time is that within the
    function, without what it waits for its next batch.
    """
    return cast("Function", _Observed(function))  # it can be called, and has its signature


class _Observed:
    """An object and no closure: it is pickled as it is, and not as the name of a function in a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._folder: str | None = None
        self._tally: _Tally | None = None
        with suppress(TypeError, ValueError):  # what has no signature is no worse for it
            self.__signature__ = inspect.signature(function)

    def __getstate__(self) -> dict[str, Any]:
        """Where to write is known when a function leaves the driver, and not when it is decorated."""
        return {**self.__dict__, "_folder": _folder() or self._folder, "_tally": None}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tally = self._of_task()
        return self._function(*arguments, **named) if tally is None else tally.call(self._function, arguments, named)

    def _of_task(self) -> "_Tally | None":
        """The counts of the task in hand; None where nobody wants them: on the driver, or without an event log."""
        task = TaskContext.get()
        if task is None or self._folder is None:
            return None
        if self._tally is None or self._tally.task != task.taskAttemptId():
            name = str(getattr(self._function, "__qualname__", type(self._function).__name__))
            self._tally = _Tally(
                Path(self._folder, f"{task.stageId()}.jsonl"), task.taskAttemptId(), name[:LONGEST_NAME]
            )
            # A worker lets go of the context after the last call, and before it says that the task is done.
            weakref.finalize(task, self._tally.write)
        return self._tally


class _Tally:
    """What a function did in a task since it was last written; sums of lines are what it did in all."""

    def __init__(self, path: Path, task: int, function: str) -> None:
        self.task = task
        self._path, self._function = path, function
        self._outside: BaseException | None = None
        self._clear()

    def _clear(self) -> None:
        self._began, self._first, self._last = 0, 0, 0
        self._batches, self._rows_out = 0, 0
        self._rows_in: int | None = None  # until something has rows
        self._wall = self._cpu = self._waited = self._waited_cpu = 0
        self._error: str | None = None

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The function's own result; an iterator goes on being counted."""
        given = [self._given(argument) for argument in arguments]
        if all(mine is theirs for mine, theirs in zip(given, arguments, strict=True)):
            self._took((*arguments, *named.values()))
        try:
            result = self._timed(function, *given, **named)
        except BaseException:
            self.write()  # at once: the worker may end now
            raise
        if hasattr(type(result), "__next__"):
            return self._results(result)
        self._gave(result)
        return result

    def write(self) -> None:
        """Adds a line, if anything happened; what cannot be written is lost, and the task goes on."""
        if not self._began:
            return
        line = {
            "task": self.task, "function": self._function, "error": self._error, "batches": self._batches,
            "rows_in": self._rows_in, "rows_out": self._rows_out, "began_ms": self._began // 1_000_000,
            "ended_ms": (self._began + self._last - self._first) // 1_000_000,
            "wall_us": max(0, self._wall - self._waited) // 1000,
            "cpu_us": max(0, self._cpu - self._waited_cpu) // 1000,
        }  # fmt: skip
        self._clear()
        with suppress(OSError):  # also where the folder, which the driver has made, is not shared with this host
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            finally:
                os.close(file)

    def _given(self, argument: Any) -> Any:
        return self._batches_of(argument) if hasattr(type(argument), "__next__") else argument

    def _batches_of(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What Spark hands over, batch by batch: getting it is not the function's time."""
        while True:
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            try:
                batch = next(batches)
            except StopIteration:
                return
            except BaseException as error:
                self._outside = error
                raise
            finally:
                self._waited += time.perf_counter_ns() - wall
                self._waited_cpu += time.process_time_ns() - cpu
            self._took(batch if isinstance(batch, tuple) else (batch,))
            yield batch

    def _results(self, results: Iterator[Any]) -> Iterator[Any]:
        try:
            while True:
                try:
                    result = self._timed(next, results)
                except StopIteration:
                    return
                self._gave(result)
                yield result
        except BaseException:  # also where nobody wants the rest
            self.write()
            raise

    def _timed(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        if not self._began:
            self._began, self._first = time.time_ns(), wall
        try:
            return function(*arguments, **named)
        except StopIteration:
            raise
        except BaseException as error:
            if error is not self._outside:
                self._error = type(error).__name__[:LONGEST_NAME]
            raise
        finally:
            self._last = time.perf_counter_ns()
            self._wall += self._last - wall
            self._cpu += time.process_time_ns() - cpu

    def _took(self, batch: tuple[Any, ...]) -> None:
        self._batches += 1
        rows = _rows_of(batch)
        if rows is not None:
            self._rows_in = rows + (self._rows_in or 0)

    def _gave(self, result: Any) -> None:
        rows = _rows(result)
        self._rows_out += 1 if rows is None else rows  # what is no frame and no column is one value


def _rows_of(batch: tuple[Any, ...]) -> int | None:
    """Of frames all, of columns the longest, which are as long as each other; keys of groups have none."""
    frames: list[int] = []
    columns: list[int] = []
    for part in batch:
        rows = _rows(part)
        if rows is not None:
            (frames if hasattr(type(part), "columns") else columns).append(rows)
    return sum(frames) if frames else max(columns, default=None)


def _rows(part: Any) -> int | None:
    """Of a frame, a batch, a table or a column, of pandas or of Arrow, neither of which is loaded for it."""
    kind = type(part)  # an attribute that is missing is found out slowly of a frame, and quickly of its class
    is_sized = hasattr(kind, "iloc") or hasattr(kind, "num_rows") or hasattr(kind, "null_count")
    return len(part) if is_sized else None


def _folder() -> str | None:
    """Where the lines of the running application belong; None in a worker, over Connect and without a local log."""
    context = SparkContext._active_spark_context
    if context is None:
        return None
    conf = context.getConf()
    usual = str(Path("/", "tmp", "spark-events"))  # Spark's own default
    folder = conf.get("spark.eventLog.dir", usual) or usual
    there = urlsplit(folder)
    if conf.get("spark.eventLog.enabled", "false") != "true" or there.scheme not in ("", "file"):
        return None
    own = Path(unquote(there.path) if there.scheme else folder, ".python", context.applicationId)
    with suppress(OSError):
        if not own.exists():
            own.mkdir(parents=True)
            _forget(own.parent)
    return str(own)


def _forget(spool: Path) -> None:
    """Removes the lines of applications whose logs are gone: nobody will read them."""
    logs = [log.name for log in spool.parent.iterdir()]
    for left in spool.iterdir():
        if not any(left.name in log for log in logs):
            shutil.rmtree(left, ignore_errors=True)


cloudpickle.register_pickle_by_value(sys.modules[__name__])

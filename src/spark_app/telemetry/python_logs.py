"""Collects what a Python program logs, beside its own handlers, which stay as they are.

Each record that the program's loggers let through is seen once, whatever handlers, formats or propagation they have:
`Logger.callHandlers` is what every record passes. No handler and no level is changed, so that `basicConfig`,
`dictConfig` and the last resort of `logging` work as without it.

`spark-app observe` and the stack load a copy of this file into the programs of others (decision 11). So it imports
nothing of this project, runs on Python 3.8 and later, and raises nothing.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER: Final = "SPARK_PYTHON_LOGS"
"""Names the folder of the files of drivers, one for each launch of Spark; or, in a pod, the open file of its log."""
OPEN: Final = "/proc/"
"""What the name of an open file begins with: `/proc/1/fd/1`."""
LAUNCH: Final = "SPARK_OBSERVED_LAUNCH"
"""Names the launch of `spark-app observe` that started the JVM of a driver; its Python program has the same."""
TRACE: Final = "SPARK_TRACE_ID"
"""Names the trace of an application, where the stack has started it (`config/spark/spark-env.sh`)."""
MAX_HELD: Final = 1000
"""Records of a program that are kept until it starts Spark; of one that never does, none is written."""
MAX_BYTES: Final = 4 << 20
"""Size of a file; then it is renamed to `.1`, in the place of the one before."""
MAX_TEXT: Final = 8192
"""Characters of a message."""
MAX_STACK: Final = 4 * MAX_TEXT
"""The last characters of a stack trace, to which that of Java belongs."""
UNCAUGHT: Final = "uncaught exception"
"""The message of the record of an exception that ends a program."""
_LEVELS: Final = ((50, "FATAL"), (40, "ERROR"), (30, "WARN"), (20, "INFO"), (0, "DEBUG"))
_sinks: list[Callable[[logging.LogRecord], None]] = []
_busy = threading.local()


def install(sink: Callable[[logging.LogRecord], None]) -> None:
    """Gives each record of this process to a sink from now on, before the handlers of its logger get it.

    Args:
        sink: Takes a record; what it raises is dropped, and what it logs itself is not given to it.
    """
    _sinks.append(sink)
    original = logging.Logger.callHandlers
    if getattr(original, "python_logs", None) is _sinks:
        return

    @functools.wraps(original)
    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        _give(record)
        original(self, record)

    call_handlers.python_logs = _sinks  # type: ignore[attr-defined] # says that it is there
    logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign]


def remove(sink: Callable[[logging.LogRecord], None]) -> None:
    """Gives no more records to a sink."""
    _sinks.remove(sink)


def _give(record: logging.LogRecord) -> None:
    if getattr(_busy, "is_giving", False):
        return
    _busy.is_giving = True
    try:
        for sink in tuple(_sinks):
            with suppress(Exception):
                sink(record)
    finally:
        _busy.is_giving = False


def collect(redacted: Callable[[str], str] = str) -> None:
    """Writes what this program logs to a file of the launch of Spark that it is the driver of, or to an open file.

    Nothing happens where the environment names no folder. An exception that ends the program is written, too.

    Args:
        redacted: Masks the secrets of a text.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    file = DriverLog(folder, redacted)
    install(file.write)
    before = sys.excepthook

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        with suppress(Exception):
            if isinstance(error, Exception):
                record = logging.LogRecord(kind.__module__, 50, *_file_and_line(trace), UNCAUGHT, (), None)
                record.exc_info = (kind, error, trace)
                file.write(record)
        before(kind, error, trace)

    sys.excepthook = excepthook


def _file_and_line(trace: Any) -> tuple[str, int]:
    """The file and the line of the program's own frame that an exception passed first."""
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace else ("", 0)


class DriverLog:
    """The file of what a driver logs: JSON lines with the keys of Spark's own (`SparkLayout.json`), in the same folder.

    Which launch a program is the driver of is known once it has started Spark: until then its lines are held.
    """

    def __init__(self, folder: str, redacted: Callable[[str], str] = str) -> None:
        """Nothing is written yet."""
        self._folder, self._redacted = folder, redacted
        self._held: deque[dict[str, Any]] = deque(maxlen=MAX_HELD)
        self._lock = threading.RLock()
        self._name, self._trace, self._pid = "", "", 0

    def write(self, record: logging.LogRecord) -> None:
        """Writes a record, and what was held before it; or holds it."""
        line = line_of(record, self._redacted)
        if self._pid != os.getpid():  # a child may have inherited a lock that no thread releases
            self._pid, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            self._held.append(line)
            if self._name or self._find():
                held, self._held = self._held, deque(maxlen=MAX_HELD)
                self._append(b"".join(self._encoded(each) for each in held))

    def _find(self) -> bool:
        """Finds the launch of Spark that this program is the driver of: its JVM knows, or started this program."""
        variables = _of_gateway() or os.environ
        self._trace = variables.get(TRACE, "")
        if self._folder.startswith(OPEN):
            self._name = self._folder
            return True
        launch = variables.get(LAUNCH, "") or (self._trace and f"driver-{socket.gethostname()}-{self._trace}-python")
        self._name = os.path.join(self._folder, f"{launch}.jsonl") if launch else ""
        return bool(launch)

    def _encoded(self, line: dict[str, Any]) -> bytes:
        known = {**line, "trace_id": self._trace} if self._trace else line
        return json.dumps(known, ensure_ascii=True, default=str).encode() + b"\n"

    def _append(self, content: bytes) -> None:
        with suppress(OSError):
            if os.stat(self._name).st_size > MAX_BYTES:
                os.replace(self._name, f"{self._name}.1")
        number = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(number, content)
        finally:
            os.close(number)


def _of_gateway() -> dict[str, str]:
    """The environment of the JVM that PySpark has started for this program; empty without one, or without `/proc`."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    with suppress(OSError, AttributeError):
        with open(f"/proc/{process.pid}/environ", "rb") as file:  # type: ignore[union-attr]
            pairs = [entry.partition("=") for entry in os.fsdecode(file.read()).split("\0")]
        return {name: value for name, _, value in pairs}
    return {}


def line_of(record: logging.LogRecord, redacted: Callable[[str], str] = str) -> dict[str, Any]:
    """A record as a line of Spark's own log: time in UTC, level, message, logger, place in the code, exception."""
    created = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    line = {
        "ts": f"{created}.{int(record.created % 1 * 1000):03d}Z",
        "level": next(name for least, name in _LEVELS if record.levelno >= least or not least),
        "msg": redacted(_message(record)[:MAX_TEXT]),
        "logger": record.name,
        "code.file.path": record.pathname,
        "code.line.number": record.lineno,
        "thread.name": record.threadName,
    }
    kind, error, _ = record.exc_info or (None, None, None)
    if kind is not None:
        trace = "".join(traceback.format_exception(*record.exc_info))  # type: ignore[misc] # it is not None
        stacktrace = redacted(trace[-MAX_STACK:])
        line["exception"] = {"class": kind.__name__, "msg": redacted(str(error)[:MAX_TEXT]), "stacktrace": stacktrace}
    return line


def _message(record: logging.LogRecord) -> str:
    """The message; of one whose arguments do not fit, what `logging` could not format."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - the program gets the same error from its own handlers
        return f"{record.msg} {record.args}"

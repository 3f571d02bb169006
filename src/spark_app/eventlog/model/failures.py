"""Extracts the reason of a failure from the texts that Spark writes."""

import re
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.parse.events import RESUBMITTED, RESULT_LOST, TaskEndReason
from spark_app.redaction import shortened

MAX_TEXT: Final = 1000
"""Characters of a text on a span; longer ones are truncated."""
OUTPUT_LOST: Final = "its shuffle output was lost with its executor, and Spark runs it again"
FATAL: Final = frozenset({"OutOfMemoryError", "StackOverflowError", "InternalError", "UnknownError"})
"""The errors of a JVM (`VirtualMachineError`) with which a task ends its executor, by Spark's `Utils.isFatalError`."""
_HEAD: Final = 4000
"""How far into a text the class of an error is looked for."""
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_CLASS: Final = re.compile(r"\b(?:[a-z_]\w*\.)+([A-Z][\w$]*(?:Exception|Error|Throwable))\b")
TRACEBACK: Final = "Traceback (most recent call last):"
"""The line with which the traceback of a Python worker begins."""
_RAISED: Final = re.compile(r"^([A-Za-z_][\w.]*)(?:: ?(.*))?$", re.MULTILINE)
_AFTER: Final = re.compile(r"\n\s*(?:SQLSTATE: |Driver stacktrace|JVM stacktrace)|\n+\tat ")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed.

    Attributes:
        type: Of an error of a Python function its own class; else the condition that Spark names (`DIVIDE_BY_ZERO`),
            or the class in Java; None where the text names none.
        message: Its text; of a Python function first what it said, then the end of its traceback.
    """

    type: str | None
    message: str


def failure_of(text: str | None, *, error_type: str | None = None) -> Failure | None:
    """The failure that a text describes; None without a text."""
    if not text:
        return None
    python = _of_python(text)
    if python is not None:
        return python
    head = text[:_HEAD]
    named = _CONDITION.search(head)
    error_class = error_type or ((match := _CLASS.search(head)) and match[0])
    return Failure(named[1] if named else error_class or None, shortened(text, MAX_TEXT))


def failure_of_task(reason: TaskEndReason) -> Failure:
    """Why a task attempt failed; without an exception the type of the failure is Spark's own reason."""
    if reason.reason == RESUBMITTED:
        return Failure(RESUBMITTED, OUTPUT_LOST)
    failure = failure_of(reason.description, error_type=reason.error_type) if reason.error_type else None
    return failure or Failure(
        reason.error_type or reason.reason, shortened(reason.message or reason.kill or reason.loss or "", MAX_TEXT)
    )


def is_of_executor(reason: TaskEndReason) -> bool:
    """Whether a task attempt failed with an error that ends its executor, or because its result was lost there."""
    package, _, name = (reason.error_type or "").rpartition(".")
    return reason.reason == RESULT_LOST or (package == "java.lang" and name in FATAL)


def _of_python(text: str) -> Failure | None:
    """The last exception of a traceback; those before it are its causes."""
    _, is_there, traceback = text.rpartition(f"{TRACEBACK}\n")
    if not is_there:
        return None
    traceback = _AFTER.split(traceback, maxsplit=1)[0].rstrip()
    raised = _RAISED.search(traceback)
    if raised is None:
        return None
    said = traceback[raised.start(2) :] if raised[2] else ""
    room = MAX_TEXT - len(shortened(said, MAX_TEXT // 2)) - 1
    frames = traceback[: raised.start()]
    kept = frames if len(frames) <= room else "…" + frames[len(frames) - room + 1 :]
    return Failure(raised[1], f"{shortened(said, MAX_TEXT // 2)}\n{kept}".strip("\n"))

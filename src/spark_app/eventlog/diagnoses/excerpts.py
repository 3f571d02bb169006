"""Excerpts of the texts of programs and errors, without secrets."""

from typing import Final

from spark_app.redaction import redacted

PYTHON: Final = "Traceback (most recent call last):"
"""The line with which the traceback of a Python worker begins."""
_CAUSE: Final = "Caused by: "


def error(text: str) -> str:
    """The message of an error: the last line of a Python traceback; the first line and the last cause of a Java one."""
    _, _, trace = text.partition(PYTHON)
    raised = next((line for line in trace.splitlines() if line.strip() and not line.startswith(" ")), "")
    message, _, stack = text.partition("\n\tat ")
    causes = [line for line in stack.splitlines() if line.startswith(_CAUSE)]
    return excerpt(raised or "; ".join([message, *(line.removeprefix(_CAUSE) for line in causes[-1:])]))


def excerpt(text: str, most: int = 200) -> str:
    """A text on one line, truncated and with its secrets masked."""
    line = redacted(" ".join(text.split())[: most * 4])
    return line if len(line) <= most else line[: most - 1] + "…"

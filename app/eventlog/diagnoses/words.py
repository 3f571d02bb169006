"""How findings tell the texts of others."""

from typing import Final

from app.redaction import redacted

PYTHON: Final = "Traceback (most recent call last):"
"""What the text of an error of a Python worker has in it."""
_CAUSE: Final = "Caused by: "


def error(text: str) -> str:
    """What an error says, without where it was: of Python the last line, of Java the first one and the last cause."""
    _, _, trace = text.partition(PYTHON)
    raised = next((line for line in trace.splitlines() if line.strip() and not line.startswith(" ")), "")
    said, _, stack = text.partition("\n\tat ")
    causes = [line for line in stack.splitlines() if line.startswith(_CAUSE)]
    return cut(raised or "; ".join([said, *(line.removeprefix(_CAUSE) for line in causes[-1:])]))


def cut(text: str, most: int = 200) -> str:
    """A text on one line, without secrets, with its end cut off where it is long."""
    line = redacted(" ".join(text.split())[: most * 4])
    return line if len(line) <= most else line[: most - 1] + "…"

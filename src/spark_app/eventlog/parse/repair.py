"""Events of lines that do not decode as they are: a value that cannot be read costs that value, and not its event."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Event

REQUIRED: Final = "Task Info.Finish Time"
"""Has a default, since a task that starts has none: a task whose end is unknown is no task that has ended."""
MAX_VALUES: Final = 10
"""Values of a line that are left out; a line with more is unreadable."""
_PLACE: Final = re.compile(r"(?P<why>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_INDEX: Final = re.compile(r"\[(\d+)\]")


class Repaired(NamedTuple):
    """The event of a line, the paths of the values that it lacks, and whether bytes of it were no UTF-8."""

    event: Event | None
    left_out: list[str]
    has_replaced_bytes: bool


def repaired(line: bytes) -> Repaired:
    """The event of a line without the values that no event of its kind can have.

    Bytes of another encoding become the replacement character.

    Raises:
        ValueError: It is no event, or what an event must have cannot be read.
    """
    text, left_out = line.decode("utf-8", "replace").encode(), list[str]()
    has_replaced_bytes = text != line
    while True:
        try:
            return Repaired(events.event(text), left_out, has_replaced_bytes)
        except msgspec.ValidationError as error:
            path = (match["path"] if (match := _PLACE.match(str(error))) else None) or ""
            if path in ("", f".{REQUIRED}") or len(left_out) >= MAX_VALUES:
                raise
            text = _without(text, path)
            left_out.append(path.removeprefix("."))


def _without(line: bytes, path: str) -> bytes:
    """A line without the value at a path of msgspec, such as `.Stage Info.RDD Info[0].RDD ID`."""
    content = holder = msgspec.json.decode(line)
    key, rest = _step(holder, path)
    while rest:
        holder = holder[key]
        key, rest = _step(holder, rest)
    del holder[key]
    return msgspec.json.encode(content)


def _step(node: Any, path: str) -> tuple[Any, str]:
    """The key of an object or the index of an array that a path begins with, and the rest; keys may have dots."""
    index = _INDEX.match(path)
    if index is not None and isinstance(node, list):
        return int(index[1]), path[index.end() :]
    for key in sorted(node if isinstance(node, dict) else (), key=len, reverse=True):
        rest = path.removeprefix(f".{key}")
        if rest != path and (not rest or rest[0] in ".["):
            return key, rest
    raise ValueError(f"no value at {path}")

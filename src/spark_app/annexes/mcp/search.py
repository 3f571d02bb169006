"""Searches the events of a log, as Spark wrote them but with masked secrets."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from spark_app.eventlog.parse.events import name_of
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.parse.log_tailer import LogTailer
from spark_app.redaction import redacted, setting

_PAIR: Final = 2
_PLAIN: Final = re.compile(rb"[\w .:=,-]+")
"""What every writer of JSON writes as it is: a line without this part of the text need not be decoded."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An event: the number of its line, from 1, its name, and its JSON or an excerpt; `characters` if it was cut."""

    line: int
    event: str
    content: str
    characters: int | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched.

    Attributes:
        text: A part of the event; letters of ASCII in either case.
        event: A part of its name.
        after: The line after which the search begins.
        width: Characters that are shown of an event, around the first match.
    """

    text: str
    event: str
    after: int
    width: int


def search(log: LogPath, wanted: Wanted, most: int) -> list[Hit]:
    """The first events of a log that match, in the order of the log.

    The text is searched after secrets were masked, so that no search finds out a secret.

    Raises:
        InputError: The compression codec of the log is not supported.
    """
    with closing(LogTailer(log)) as tailer:
        return list(islice(_hits(enumerate(tailer.new(), start=1), wanted), most))


def _hits(lines: Iterator[tuple[int, bytes]], wanted: Wanted) -> Iterator[Hit]:
    needle = msgspec.json.encode(wanted.text)[1:-1].lower()
    part = max(_PLAIN.findall(wanted.text.encode().lower()), key=len, default=b"")
    for number, line in lines:
        if number <= wanted.after or part not in line.lower():
            continue
        name = name_of(line)
        content = _content(line, name) if name and wanted.event.lower() in name.lower() else b""
        if content and needle in content.lower():
            yield _hit(number, name, content.decode(), needle.decode(), wanted.width)


def _content(line: bytes, name: str) -> bytes:
    """An event with masked secrets; empty for a line that is not JSON."""
    try:
        return msgspec.json.encode(_masked(msgspec.json.decode(line)))
    except RecursionError:
        return msgspec.json.encode({"Event": name, "remark": "nested too deeply to be shown"})
    except ValueError:
        return b""


def _masked(value: Any, name: str = "") -> Any:
    """A value of JSON with its secrets masked, also those of settings, which are keys or pairs of texts."""
    match value:
        case str():
            return setting(name, value)
        case dict():
            return {redacted(key): _masked(each, key) for key, each in value.items()}
        case [str() as key, str() as text] if len(value) == _PAIR:
            return [redacted(key), setting(key, text)]
        case list():
            return [_masked(each, name) for each in value]
    return value


def _hit(number: int, name: str, content: str, needle: str, width: int) -> Hit:
    if len(content) <= width:
        return Hit(number, name, content, None)
    start = max(0, min(content.lower().find(needle) - width // 4, len(content) - width))
    return Hit(number, name, content[start : start + width], len(content))

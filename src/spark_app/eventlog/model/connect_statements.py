"""What an operation of Spark Connect runs, by the text of its request: SQL, or a plan with lines of the client.

The text is that of Protocol Buffers (`TextFormat`), with what lies deeper than eight messages left out. Source:
`ExecuteEventsManager.postStarted`, which Spark calls for each operation.
"""

import re
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.model.call_sites import CallSite

MAX_TEXT: Final = 2000
"""Characters of SQL that are kept of an operation."""
MAX_READ: Final = 100_000
"""Characters of a request that are read; Spark cuts the strings in it, but not their number."""
_STRING: Final = r'"((?:[^"\\]|\\.)*+)(?:"|\Z)'
"""A string; the end of one that is cut is missing."""
_SQL: Final = re.compile(rf"^ *(?:query|sql_text|sql): {_STRING}", re.MULTILINE)
_SUBJECT: Final = re.compile(rf"^ *(?:flow_name|output_name|sql_file_path): {_STRING}", re.MULTILINE)
_ORIGIN: Final = re.compile(rf"^( *)call_site: {_STRING}", re.MULTILINE)
_DEFINED: Final = re.compile(rf"^ *file_name: {_STRING}\n *line_number: (\d+)", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^( *)(\w+) \{", re.MULTILINE)
_LINE: Final = re.compile(r"(.+):(\d+)")
_ESCAPE: Final = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_WRAPPERS: Final = ("pipeline_command", "ml_command")
"""Messages that only say which family of commands the message in them belongs to."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What an operation runs.

    Attributes:
        kind: The outermost command or relation, by the name in Spark's protocol: `write_operation`, `aggregate`, `sql`.
        subject: The flow, the dataset or the file that a command of a pipeline defines.
        sql: Its SQL; cut at `MAX_TEXT`. None for a plan that the client has built.
        call_site: The outermost line of the client in the plan; Spark has lines of expressions, and not of actions.
    """

    kind: str = "unknown"
    subject: str | None = None
    sql: str | None = None
    call_site: CallSite | None = None


def parse(text: str) -> Statement:
    """The statement of a request."""
    text = text[:MAX_READ]
    kind, sql, subject = _kind(text), _SQL.search(text), _SUBJECT.search(text)
    return Statement(
        kind,
        _unescaped(subject[1])[:MAX_TEXT] if subject else None,
        _unescaped(sql[1][: 4 * MAX_TEXT])[:MAX_TEXT] if sql else None,
        _call_site(kind, text),
    )


def _kind(text: str) -> str:
    """The outermost message; that in it where the outermost one says nothing."""
    messages = [(len(match[1]), match[2]) for match in _MESSAGE.finditer(text[:MAX_TEXT]) if match[2] != "common"]
    outer = next((name for depth, name in messages if not depth), "unknown")
    inner = next((name for depth, name in messages if depth == 2), outer)
    return inner if outer in _WRAPPERS else "sql" if outer == "sql_command" else outer


def _call_site(kind: str, text: str) -> CallSite | None:
    """The line of the outermost expression that has one, the last of several; or that of a definition."""
    origins = [(-len(match[1]), number, match[2]) for number, match in enumerate(_ORIGIN.finditer(text))]
    line = _LINE.fullmatch(_unescaped(max(origins)[2])) if origins else None
    defined = _DEFINED.search(text)
    if defined is not None:
        return CallSite(kind, _unescaped(defined[1]), defined[2])
    return CallSite(kind, line[1], line[2]) if line else None


def _unescaped(text: str) -> str:
    """A string without the escapes of Protocol Buffers, which has octal numbers for the bytes of UTF-8."""
    return _ESCAPE.sub(_byte, text.encode()).decode(errors="replace")


def _byte(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    return bytes([int(escaped, 8) & 0xFF]) if escaped.isdigit() else _ESCAPED.get(escaped, escaped)
